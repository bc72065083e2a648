//go:build amd64 && !purego

package kernel

// picks are, for zigzags of 1, 2 and 4 bytes, which bytes of a register go where:
// those of the upper half behind those of the lower one. 0x80 stands for a zero.
var picks = [3][32]byte{
	picksOf(1), picksOf(2), picksOf(4),
}

func picksOf(bytes int) (pick [32]byte) {
	for i := range pick {
		pick[i] = 0x80
	}
	for value := range 4 {
		half := value / 2
		for b := range bytes {
			pick[16*half+value*bytes+b] = byte(value%2*8 + b)
		}
	}
	return pick
}

func intBits(words []uint64) (tags, bits uint64, done int) {
	n := inFours(len(words))
	if n == 0 {
		return 0, 0, 0
	}
	tags, bits = intBitsAVX2(&words[0], uint64(n))
	return tags, bits, n
}

func zigzags(dst []byte, words []uint64, bytes int) (done int) {
	n := inFours(len(words))
	if n == 0 {
		return 0
	}
	switch bytes {
	case 1:
		zigzags8AVX2(&dst[0], &words[0], &picks[0][0], uint64(n))
	case 2:
		zigzags16AVX2(&dst[0], &words[0], &picks[1][0], uint64(n))
	case 4:
		zigzags32AVX2(&dst[0], &words[0], &picks[2][0], uint64(n))
	default:
		return 0
	}
	return n
}
