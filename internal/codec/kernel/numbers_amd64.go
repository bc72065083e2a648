//go:build amd64 && !purego

package kernel

func numbers(dst []float64, src []uint64) int {
	n := inFours(len(src))
	if n == 0 {
		return 0
	}
	return int(numbersAVX2(&dst[0], &src[0], uint64(n)))
}

func addTo(sum, v []float64) int {
	n := inFours(len(v))
	if n > 0 {
		addToAVX2(&sum[0], &v[0], uint64(n))
	}
	return n
}
