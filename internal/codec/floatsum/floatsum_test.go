package floatsum

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
)

// exact is the sum of numbers, rounded once at its end.
func exact(numbers []float64) float64 {
	sum := new(big.Float).SetPrec(2500)
	for _, v := range numbers {
		sum.Add(sum, new(big.Float).SetPrec(2500).SetFloat64(v))
	}
	f, _ := sum.Float64()
	return f
}

// Decimals as people send them add up to the double that is nearest to their sum, where plain
// addition misses it.
func TestSumsOfDecimals(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 37))
	missed := 0
	for range 2000 {
		numbers := make([]float64, 1+r.IntN(3000))
		var sum Sum
		plain := 0.0
		for i := range numbers {
			numbers[i] = float64(r.IntN(100_000)) / 100
			sum.Add(numbers[i])
			plain += numbers[i]
		}
		want := exact(numbers)
		if got := sum.Value(); got != want {
			t.Fatalf("%d numbers: %v, want %v", len(numbers), got, want)
		}
		if plain != want {
			missed++
		}
	}
	if missed == 0 {
		t.Fatal("plain addition never missed: these numbers prove nothing")
	}
}

// What cancels leaves what is small.
func TestSumsThatCancel(t *testing.T) {
	for _, c := range []struct {
		numbers []float64
		want    float64
	}{
		{nil, 0},
		{[]float64{math.Copysign(0, -1)}, 0},
		{[]float64{1, 1e100, 1, -1e100}, 2},
		{[]float64{1e16, 1, 1, 1, -1e16}, 3},
		{[]float64{math.MaxFloat64, 1e291, -math.MaxFloat64}, 1e291},
		{[]float64{5e-324, 1, -1}, 5e-324},
		{[]float64{math.Inf(1), 1, -1e308}, math.Inf(1)},
		{[]float64{math.MaxFloat64, math.MaxFloat64}, math.Inf(1)},
	} {
		var sum Sum
		for _, v := range c.numbers {
			sum.Add(v)
		}
		if got := sum.Value(); math.Float64bits(got) != math.Float64bits(c.want) {
			t.Errorf("%v: %v, want %v", c.numbers, got, c.want)
		}
	}
	var sum Sum
	for _, v := range []float64{math.Inf(1), 1, math.Inf(-1)} {
		sum.Add(v)
	}
	if v := sum.Value(); v == v {
		t.Errorf("infinities of both signs: %v, want NaN", v)
	}
}

// Parts that are joined have what both lack.
func TestJoin(t *testing.T) {
	var a, b Sum
	a.Add(1e16)
	a.Add(1)
	b.Add(1)
	b.Add(-1e16)
	b.Add(1)
	a.Join(b)
	if got := a.Value(); got != 3 {
		t.Errorf("%v, want 3", got)
	}
	if got := a.Scale(0x1p-64).Value(); got != 3*0x1p-64 {
		t.Errorf("scaled %v, want 3 × 2^-64", got)
	}
}
