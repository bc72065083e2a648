//go:build !amd64 || purego

package kernel

func decode(dst []uint64, c *Codes, p *codePlace, k uint64) { decodeGo(dst, c, p, k) }
func decodeWide([]uint64, *Codes, *CodeEnds) bool           { return false }
func sums(s *[Lanes]uint64, res *Residuals, _, n int)       { sumsGo(s, res, n) }
