package plan

import "dalmatiner/internal/query/function"

// oldWeights returns with which weight the confidence of each of n inputs goes
// into that of a combination of the original: it folds three at a time from
// the left, and in sums of three counts the first twice and leaves out the
// third.
func oldWeights(fn function.Op, n int) []float64 {
	w := make([]float64, n)
	w[0] = 1
	scale := func(by float64) {
		for i := range w {
			w[i] *= by
		}
	}
	for i := 1; i < n; i += 2 {
		switch {
		case i+1 == n:
			scale(1. / 2)
			w[i] = 1. / 2
		case fn == function.Sum || fn == function.Avg:
			scale(2. / 3)
			w[i] = 1. / 3
		default:
			scale(1. / 3)
			w[i], w[i+1] = 1./3, 1./3
		}
	}
	return w
}

// oldReadSlots is how many slots the original moved on with every read of a
// series. It read one less, and filled gaps anew.
const oldReadSlots = 100_000
