package kernel

import "math"

// Numbers writes the values of the words src to dst, which is not shorter, and
// returns how many come before the first word that is 0.
func Numbers(dst []float64, src []uint64) int {
	dst = dst[:len(src)]
	for i := numbers(dst, src); i < len(src); i++ {
		if src[i] == 0 {
			return i
		}
		dst[i] = number(src[i])
	}
	return len(src)
}

// number is the value of a word. An integer is rounded once.
func number(w uint64) float64 {
	if w >= firstFloat {
		return math.Float64frombits(bitsOf(w))
	}
	return float64(intOf(w))
}

// AddTo adds the values of v to those of sum, which is not shorter.
func AddTo(sum, v []float64) {
	sum = sum[:len(v)]
	for i := addTo(sum, v); i < len(v); i++ {
		sum[i] += v[i]
	}
}
