package chunk

import (
	"math"
	"math/big"
	"testing"

	"dalmatiner/internal/codec/point"
	"pgregory.net/rapid"
)

func TestSumFloat64RoundsOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := Sum{
			Hi: rapid.Int64().Draw(t, "hi") >> rapid.IntRange(0, 63).Draw(t, "shift"),
			Lo: rapid.Uint64().Draw(t, "lo") &^ (1<<rapid.IntRange(0, 64).Draw(t, "zeros") - 1),
		}
		want, _ := new(big.Float).SetInt(bigOf(s)).Float64()
		if got := s.Float64(); got != want {
			t.Fatalf("%d:%d is %v, want %v", s.Hi, s.Lo, got, want)
		}
	})
}

// A mean lies between the extremes, and that of equal words is their value.
func TestMean(t *testing.T) {
	inf := math.Inf(1)
	for _, c := range []struct {
		of   []float64
		want float64
		told bool
	}{
		{[]float64{1, 2, 6}, 3, true},
		{[]float64{inf, 1}, inf, true},
		{[]float64{-inf, 1}, -inf, true},
		{[]float64{inf, -inf}, 0, false},
		{[]float64{1.7e308, 1.7e308, -1.7e308}, 0, false},
		{[]float64{1, math.NaN()}, 0, false},
		{[]float64{math.NaN()}, 0, false},
		{nil, 0, false},
	} {
		words := make([]uint64, len(c.of))
		for i, f := range c.of {
			words[i] = point.FromFloat(f)
		}
		h := Summarize(words, 0)
		if got, told := h.Mean(); told != c.told || told && got != c.want {
			t.Errorf("mean of %v is %v %v, want %v %v", c.of, got, told, c.want, c.told)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		w := point.FromFloat(rapid.Float64Range(-1e300, 1e300).Draw(t, "value"))
		words := make([]uint64, rapid.IntRange(1, Slots).Draw(t, "n"))
		for i := range words {
			words[i] = w
		}
		h := Summarize(words, 0)
		if got, told := h.Mean(); !told || got != point.Float(w) {
			t.Fatalf("mean of %d × %v is %v %v", len(words), point.Float(w), got, told)
		}
	})
}

func TestLess(t *testing.T) {
	words := append([]uint64{}, special...)
	for _, v := range []float64{0.5, -0.5, 1 << 56, -(1 << 56), 1<<56 - 8, 36028797018963966, 3} {
		words = append(words, point.FromFloat(v))
	}
	for _, a := range words {
		for _, b := range words {
			nan := math.IsNaN(point.Float(a)) || math.IsNaN(point.Float(b))
			want := !nan && exact(a).Cmp(exact(b)) < 0
			if got := Less(a, b); got != want {
				t.Errorf("Less(%016x, %016x) = %v (%v, %v)", a, b, got, point.Float(a), point.Float(b))
			}
		}
	}
}
