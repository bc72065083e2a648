//go:build unix && amd64 && !purego

package kernel

import (
	"math/rand/v2"
	"testing"
)

// What an older processor does is the same as what this one chooses.
func TestFoldWithoutAVX512(t *testing.T) {
	if !avx512 {
		t.Skip("this processor has AVX2 at most, which the other tests use")
	}
	r := rand.New(rand.NewPCG(3, 3))
	var res Residuals
	for range 2000 {
		for i := range res {
			res[i] = random(r)
		}
		p := Prediction{Order: r.IntN(3), Base: random(r)}
		from := r.IntN(MaxLane)
		n := 1 + r.IntN(MaxLane-from)
		var start Fold
		for l := range Lanes {
			start.Value[l], start.Step[l] = random(r), random(r)
			start.NoInts(l)
		}
		got, want := start, start
		foldIntsAVX2(&got.Value[0], &res[Lanes*from], p.Base, uint64(p.Order), uint64(n))
		foldIntsGo(&want, &res, p, from, from+n)
		sameFold(t, "ints", false, &got, &want)
		// Beyond 2^51 sums have no meaning, and are still the same.
		got, want = start, start
		foldDecimalsAVX2(&got.Value[0], &res[Lanes*from], p.Base, uint64(p.Order), uint64(n), 100)
		foldDecimalsAVX512(&want.Value[0], &res[Lanes*from], p.Base, uint64(p.Order), uint64(n), 100)
		sameFold(t, "decimals", true, &got, &want)
	}
}
