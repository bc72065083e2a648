//go:build !amd64 || purego

package kernel

// The following tell how many they have done: none.

func bitLengths(c *BitLengths, _ []uint64, _ uint64, _ bool) (all uint64, done int) {
	clear(c[:])
	return 0, 0
}

func excess(_, _ []uint64, _ uint64, _ bool) (all uint64, done int) { return 0, 0 }
func quotients(_ []uint64, _ uint) (sum uint64, done int)           { return 0, 0 }
func sides(_ []uint64, _, _ uint64) (s Sides, done int)             { return Sides{}, 0 }
