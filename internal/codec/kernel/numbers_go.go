//go:build !amd64 || purego

package kernel

func numbers(_ []float64, _ []uint64) int { return 0 }
func addTo(_, _ []float64) int            { return 0 }
