package stats

import (
	"math"
	"math/big"
	"testing"

	"pgregory.net/rapid"
)

func sumOf(v ...float64) *Sum {
	var s Sum
	for _, f := range v {
		s.Add(f)
	}
	return &s
}

func repeated(v float64, n int) []float64 {
	list := make([]float64, n)
	for i := range list {
		list[i] = v
	}
	return list
}

func TestSumOfEqualValues(t *testing.T) {
	for _, c := range []struct{ v, sum float64 }{
		{0.1, 6}, {-0.1, -6}, {1.7e308, math.Inf(1)}, {-1.7e308, math.Inf(-1)},
		{math.Inf(1), math.Inf(1)}, {0x1p-1074, 60 * 0x1p-1074}, {0x1p960, 60 * 0x1p960},
	} {
		s := sumOf(repeated(c.v, 60)...)
		if got := s.Value(); got != c.sum {
			t.Errorf("sum of 60 × %v is %v, want %v", c.v, got, c.sum)
		}
		if got := s.Mean(); got != c.v {
			t.Errorf("mean of 60 × %v is %v", c.v, got)
		}
	}
}

func TestSumOfExtremes(t *testing.T) {
	for _, c := range []struct {
		of        []float64
		sum, mean float64
	}{
		{[]float64{1, 1e100, 1, -1e100}, 2, 0.5},
		{[]float64{1.7e308, 1.7e308, -1.7e308, -1.7e308}, 0, 0},
		{[]float64{1.7e308, 1.7e308, -1.7e308}, 1.7e308, 1.7e308 / 3},
		{[]float64{1, math.NaN(), 3}, 4, 2},
		{[]float64{math.Inf(1), 1}, math.Inf(1), math.Inf(1)},
		{[]float64{math.Inf(1), math.Inf(-1)}, math.NaN(), math.NaN()},
		{nil, 0, math.NaN()},
	} {
		s := sumOf(c.of...)
		if got := s.Value(); !same(got, c.sum) {
			t.Errorf("sum of %v is %v, want %v", c.of, got, c.sum)
		}
		if got := s.Mean(); !same(got, c.mean) {
			t.Errorf("mean of %v is %v, want %v", c.of, got, c.mean)
		}
	}
}

func same(a, b float64) bool { return a == b || a != a && b != b }

// A sum of values of one magnitude is the exact one, rounded, whether its parts were joined
// or not; the mean lies between the least and the greatest and is finite.
func TestSumIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := math.Ldexp(1, rapid.IntRange(-1000, 1020).Draw(t, "size"))
		v := rapid.SliceOfN(rapid.Float64Range(1, 2), 1, 300).Draw(t, "values")
		cut := rapid.IntRange(0, len(v)).Draw(t, "cut")
		exact := new(big.Float).SetPrec(4000)
		low, high := math.Inf(1), math.Inf(-1)
		for i := range v {
			v[i] *= size
			low, high = min(low, v[i]), max(high, v[i])
			exact.Add(exact, big.NewFloat(v[i]))
		}
		want, _ := exact.Float64()
		wantMean, _ := exact.Quo(exact, big.NewFloat(float64(len(v)))).Float64()
		joined := sumOf(v[:cut]...)
		joined.Join(sumOf(v[cut:]...))
		for _, s := range []*Sum{sumOf(v...), joined} {
			if got := s.Value(); got != want || s.Count() != int64(len(v)) {
				t.Fatalf("sum of %d values is %v, want %v", s.Count(), got, want)
			}
			mean := s.Mean()
			if !(low <= mean && mean <= high) || math.Abs(mean-wantMean) > math.Abs(wantMean)*0x1p-52 {
				t.Fatalf("mean is %v, want %v in [%v, %v]", mean, wantMean, low, high)
			}
		}
	})
}

// The sums of a sliding window are those of its numbers alone, however many windows went by.
func TestSliding(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := rapid.SliceOfN(rapid.OneOf(
			rapid.Float64Range(-1, 1),
			rapid.SampledFrom([]float64{math.NaN(), 0.1, 1.7e308, -1.7e308, math.Inf(1)}),
		), 1, 60).Draw(t, "values")
		size := rapid.IntRange(1, 70).Draw(t, "size")
		s := Sliding{Size: size}
		for i, f := range v {
			got := s.Take(f)
			want := sumOf(v[max(0, i+1-size) : i+1]...)
			if got.Count() != want.Count() || !near(got.Value(), want.Value()) ||
				!near(got.Mean(), want.Mean()) {
				t.Fatalf("at %d: %+v, want %+v", i, got, *want)
			}
		}
	})
}

// near tolerates that parts were joined in another order.
func near(a, b float64) bool {
	return same(a, b) || math.Abs(a-b) <= 0x1p-50*max(1, math.Abs(b))
}

func BenchmarkSum(b *testing.B) {
	v := repeated(0.1, 1000)
	b.Run("plain", func(b *testing.B) {
		for b.Loop() {
			sum := 0.0
			for _, f := range v {
				sum += f
			}
			sink = sum
		}
	})
	b.Run("compensated", func(b *testing.B) {
		for b.Loop() {
			sink = sumOf(v...).Mean()
		}
	})
	b.Run("sliding", func(b *testing.B) {
		s := Sliding{Size: 60}
		for b.Loop() {
			for _, f := range v {
				got := s.Take(f)
				sink = got.Mean()
			}
		}
	})
}

var sink float64
