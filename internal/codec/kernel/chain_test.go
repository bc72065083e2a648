//go:build unix

package kernel

import (
	"math/rand/v2"
	"testing"
)

// Residuals, and what is written, end where nothing may be touched.
func TestChainIsNaive(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 5))
	for n := range 150 {
		res, dst := wordsAtPageEnd(n), wordsAtPageEnd(n)
		factor, base, start := r.Uint64(), r.Uint64(), r.Uint64()
		scaled, chained := make([]uint64, n), make([]uint64, n)
		for i := range res {
			res[i] = r.Uint64() >> r.IntN(64)
			scaled[i] = base + factor*res[i]
			chained[i] = start + scaled[i]
			if i > 0 {
				chained[i] = chained[i-1] + scaled[i]
			}
		}
		Scale(dst, res, factor, base)
		requireEqual(t, "scaled", dst, scaled, nil)
		Chain(dst, res, factor, base, start)
		requireEqual(t, "chained", dst, chained, nil)
		Chain(res, res, factor, base, start)
		requireEqual(t, "chained in place", res, chained, nil)
	}
}
