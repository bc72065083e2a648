//go:build !amd64 || purego

package kernel

// The following tell how many they have done: none.

func intBits(_ []uint64) (tags, bits uint64, done int) { return 0, 0, 0 }
func zigzags(_ []byte, _ []uint64, _ int) int          { return 0 }
