package query_test

import (
	"fmt"
	"math"
	"slices"

	"pgregory.net/rapid"

	"dalmatiner/internal/query"
	"dalmatiner/internal/query/reference"
)

// sameBits compares bit by bit, but one NaN with another.
func sameBits(a, b []float64) bool {
	return slices.EqualFunc(a, b, func(a, b float64) bool {
		return math.Float64bits(a) == math.Float64bits(b) || a != a && b != b
	})
}

func compareFloats(t *rapid.T, what string, got, want []float64, tolerance float64) {
	if len(got) != len(want) {
		t.Fatalf("%s: %d, want %d", what, len(got), len(want))
	}
	for i, w := range want {
		if g := got[i]; g != w && !(g != g && w != w) && !(math.Abs(g-w) <= tolerance) {
			t.Fatalf("%s: %v at %d, want %v", what, g, i, w)
		}
	}
}

func (g *generator) compare(r *query.Result, got query.Series, want reference.Series) error {
	if got.Resolution != want.Resolution || len(got.Values) != len(want.Values) {
		return fmt.Errorf("%d values at %d ms, want %d at %d ms", len(got.Values), got.Resolution,
			len(want.Values), want.Resolution)
	}
	if got, want := aboutGot(r, got), aboutWant(want); got != want {
		return fmt.Errorf("it says of itself %+v, want %+v", got, want)
	}
	// Every step of a computation rounds relative to the greatest magnitude
	// in it; a division by as little as 1/8 makes an error eight times as big.
	allowed := 0.0
	if !g.exact {
		allowed = float64(want.Slots+100) * 0x1p-52 * (want.Scale + 1) * 512
	}
	for i, w := range want.Values {
		if c := want.Confidence[i]; math.Abs(got.Confidence[i]-c) > 1e-9 {
			return fmt.Errorf("confidence %d is %v, want %v", i, got.Confidence[i], c)
		}
		if math.Abs(got.Values[i]-w) > allowed || math.IsNaN(got.Values[i]) != math.IsNaN(w) {
			return fmt.Errorf("value %d is %v, want %v ± %v", i, got.Values[i], w, allowed)
		}
	}
	return nil
}

// about is what a series says of itself beside its values.
type about struct {
	coverage          float64
	points, lastPoint int64
	ended             bool
	interval          int64
}

func aboutGot(r *query.Result, s query.Series) about {
	return about{s.Coverage, s.Points, s.LastPoint, r.Ended(&s), s.Interval}
}

func aboutWant(s reference.Series) about {
	return about{s.Coverage(), s.Points, s.LastPoint, s.Ended, s.Interval}
}
