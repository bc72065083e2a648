package haggar

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// increments returns the steps of a series over n slots.
func increments(it Iter, n int) []int64 {
	const start = 1_790_000_000
	last := it.At(start)
	out := make([]int64, n)
	for i := range out {
		v := it.Next()
		out[i] = v - last
		last = v
	}
	return out
}

func TestIncrementsAreAsPublished(t *testing.T) {
	const n = 200_000
	f := func(kind Kind, lo, hi int64, mean, moved float64) {
		t.Helper()
		var sum, moves, pairs float64
		steps := increments(Series(kind, 1, 2, 3), n)
		for i, d := range steps {
			if d < lo || d > hi {
				t.Fatalf("kind %d adds %d, want %d to %d", kind, d, lo, hi)
			}
			sum += float64(d)
			if d != 0 {
				moves++
			}
			if i > 0 {
				pairs += (float64(d) - mean) * (float64(steps[i-1]) - mean)
			}
		}
		if got := sum / n; math.Abs(got-mean) > 0.05 {
			t.Errorf("kind %d adds %.3f on average, want %.3f", kind, got, mean)
		}
		if got := moves / n; math.Abs(got-moved) > 0.01*moved+0.0005 {
			t.Errorf("kind %d moves in %.4f of the steps, want %.4f", kind, got, moved)
		}
		if got := pairs / n; math.Abs(got) > 0.25 {
			t.Errorf("kind %d: neighbours have a covariance of %.3f, want 0", kind, got)
		}
	}
	f(Gauge, -5, 5, 0, 10.0/11/60)
	f(Counter, 0, 20, 10, 20.0/21)
	f(Sparse, 0, 1, 0.1, 0.1)
	f(Walk, -8, 8, 0, 16.0/17)
	f(Constant, 0, 0, 0, 0)
}

// entropy returns the bits per symbol of blocks of the steps, each block one
// symbol.
func entropy(steps []int64, block int) float64 {
	counts := map[int64]int{}
	for i := 0; i+block <= len(steps); i += block {
		sym := int64(0)
		for _, d := range steps[i : i+block] {
			sym = sym*64 + d + 20
		}
		counts[sym]++
	}
	total, bits := float64(len(steps)/block), 0.0
	for _, c := range counts {
		p := float64(c) / total
		bits -= p * math.Log2(p)
	}
	return bits
}

func TestIncrementsDoNotPredictTheNext(t *testing.T) {
	// A pair carries twice the entropy of one step, less the bias of counting
	// 441 cells with 250,000 samples.
	f := func(kind Kind, want float64) {
		t.Helper()
		steps := increments(Series(kind, 5, 0, 9), 500_000)
		one, two := entropy(steps, 1), entropy(steps, 2)
		if math.Abs(one-want) > 0.01 || two < 2*one-0.01 {
			t.Errorf("kind %d: %.4f bits per step, %.4f per pair, want %.4f and twice that", kind, one, two,
				want)
		}
	}
	f(Counter, math.Log2(21))
	f(Walk, math.Log2(17))
	f(Sparse, 0.469)
	// 1/60 · 10/11 moves.
	f(Gauge, 0.166)
}

func TestUniformIsUniform(t *testing.T) {
	var counts [1000]int
	const n = 1_000_000
	for i := range n / 1000 {
		it := Series(Uniform, 7, 3, i)
		for s := range int64(1000) {
			counts[it.At(1_790_000_000+s)]++
		}
	}
	chi := 0.0
	for _, c := range counts {
		d := float64(c) - n/1000
		chi += d * d / (n / 1000)
	}
	// 999 degrees of freedom: six standard deviations.
	if chi < 730 || chi > 1270 {
		t.Errorf("chi square %.0f, want about 999", chi)
	}
}

func TestCountersAreMonotone(t *testing.T) {
	for _, kind := range []Kind{Counter, Sparse} {
		it := Series(kind, 1, 1, 4)
		last := it.At(Origin)
		if last < 0 || last > 1_000_000+windowSize*20 {
			t.Errorf("kind %d starts at %d, want about 0 to 10^6", kind, last)
		}
		for range 100_000 {
			v := it.Next()
			if v < last {
				t.Fatalf("kind %d falls from %d to %d", kind, last, v)
			}
			last = v
		}
	}
}

// valueAt is the value of an iterator that has not been anywhere else.
func valueAt(fresh Iter, slot int64) int64 { return fresh.At(slot) }

func TestValuesDoNotDependOnTheWay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		kind := Kind(rapid.IntRange(0, int(Walk)).Draw(t, "kind"))
		seed := rapid.Uint64().Draw(t, "seed")
		it := Series(kind, seed, rapid.IntRange(0, 1000).Draw(t, "agent"),
			rapid.IntRange(0, 1000).Draw(t, "metric"))
		fresh := it
		for range rapid.IntRange(1, 20).Draw(t, "seeks") {
			slot := Origin + rapid.Int64Range(-10_000, 10_000).Draw(t, "slot")
			got, want := it.At(slot), valueAt(fresh, slot)
			if got != want {
				t.Fatalf("kind %d, slot %d: %d after other slots, %d at once", kind, slot, got, want)
			}
			if got, want := it.Next(), valueAt(fresh, slot+1); got != want {
				t.Fatalf("kind %d, slot %d: %d as the next one, %d at once", kind, slot+1, got, want)
			}
		}
	})
}

func TestPermutationsOfAWindow(t *testing.T) {
	for order := range uint64(200) {
		var seen [windowSize]bool
		for j := range uint64(windowSize) {
			x := permute(j, mix(order))
			if seen[x] {
				t.Fatalf("order %d gives rank %d twice", order, x)
			}
			seen[x] = true
		}
	}
}

func TestCounterSum(t *testing.T) {
	sum := int64(0)
	for r := range int64(windowSize) {
		sum += r * 21 >> windowBits
	}
	if sum != counterSum {
		t.Errorf("a window of a counter adds %d, counterSum is %d", sum, counterSum)
	}
}
