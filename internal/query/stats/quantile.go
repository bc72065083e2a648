// Package stats computes numbers from lists of others: quantiles without sorting, sums and means
// without rounding that piles up, moving sums without subtracting.
package stats

import (
	"math"
	"math/bits"
	"slices"
)

// Quantile returns the quantile q of v, which holds no NaN, and reorders it; NaN for no values.
func Quantile(v []float64, q float64) float64 {
	if len(v) == 0 {
		return math.NaN()
	}
	return Ranked(v, int(float64(len(v)-1)*q))
}

// smallRank is up to how many values sorting is quicker than choosing.
const smallRank = 32

// Ranked returns the value that stands at position k of v when it is sorted.
// It reorders v, which holds no NaN. The middle of three values parts v, and
// after as many steps as good parts would need the rest is sorted, so that no
// order of values costs more than that.
func Ranked(v []float64, k int) float64 {
	for steps := 2 * bits.Len(uint(len(v))); len(v) > smallRank && steps > 0; steps-- {
		low, high := part(v)
		switch {
		case k < low:
			v = v[:low]
		case k >= high:
			v, k = v[high:], k-high
		default:
			return v[low]
		}
	}
	slices.Sort(v)
	return v[k]
}

// part orders v into values less than one of them, those equal to it, from low
// to high, and those greater.
func part(v []float64) (low, high int) {
	a, b, c := v[0], v[len(v)/2], v[len(v)-1]
	pivot := max(min(a, b), min(max(a, b), c))
	high = len(v)
	for i := 0; i < high; {
		switch {
		case v[i] < pivot:
			v[i], v[low] = v[low], v[i]
			low++
			i++
		case v[i] > pivot:
			high--
			v[i], v[high] = v[high], v[i]
		default:
			i++
		}
	}
	return low, high
}
