package stats

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// What is chosen by rank is what sorting finds, for values of any kind of
// order and with many equal ones.
func TestRanks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 2000).Draw(t, "n")
		kinds := rapid.SampledFrom([]int{1, 2, 30, 1 << 20}).Draw(t, "kinds")
		step := rapid.IntRange(1, 1<<16).Draw(t, "step")
		v := make([]float64, n)
		for i := range v {
			v[i] = float64(i * step % kinds)
		}
		sorted := slices.Clone(v)
		slices.Sort(sorted)
		k := rapid.IntRange(0, n-1).Draw(t, "k")
		if got := Ranked(v, k); got != sorted[k] {
			t.Fatalf("%v at %d of %d, want %v", got, k, n, sorted[k])
		}
		slices.Sort(v)
		if !slices.Equal(v, sorted) {
			t.Fatal("values were lost")
		}
	})
}
