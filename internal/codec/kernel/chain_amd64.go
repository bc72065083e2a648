//go:build amd64 && !purego

package kernel

// scale and chain report whether they did it.
func scale(dst, res []uint64, factor, base uint64) bool {
	if avx512 {
		scaleAVX512(&dst[0], &res[0], factor, base, 0, uint64(len(res)))
	}
	return avx512
}

func chain(dst, res []uint64, factor, base, start uint64) bool {
	if avx512 {
		chainAVX512(&dst[0], &res[0], factor, base, start, uint64(len(res)))
	}
	return avx512
}
