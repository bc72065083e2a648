package hold_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"dalmatiner/internal/query/hold"
)

// A series is held as long as the largest of the last three distances says, and five minutes where
// fewer than three values are near each other.
func TestHowLongValuesAreHeld(t *testing.T) {
	for _, c := range []struct {
		resolution int64
		series     string // a value, or so many gaps
		held       int    // of the gaps behind it
	}{
		{1000, "1 1 1 1", 2},
		{1000, "1 -9 1 -9 1 -9 1", 25},
		{1000, "1 -9 1 -4 1 -4 1", 25},
		{1000, "1 -9 1 -4 1 -4 1 -4 1", 12},
		{1000, "1", 300},
		{1000, "1 1", 300},
		{1000, "1 1 1 -120 1", 300},
		{1000, "1 1 1 -119 1", 300},
		{1000, "1 -60 1 -60 1", 152},
		{60_000, "1 1 1 1", 2},
		{600_000, "1 1 1 1", 2},
		{200_000, "1", 2},
	} {
		var v []float64
		for _, item := range strings.Fields(c.series) {
			n := 0
			if _, err := fmt.Sscan(item, &n); err != nil {
				t.Fatal(err)
			}
			for range -n {
				v = append(v, math.NaN())
			}
			if n > 0 {
				v = append(v, 7)
			}
		}
		from := len(v)
		for range 1000 {
			v = append(v, math.NaN())
		}
		var s hold.Series
		s.Fill(v, nil, c.resolution)
		held := 0
		for ; from+held < len(v) && v[from+held] == 7; held++ {
		}
		if held != c.held || !hold.IsGap(v[len(v)-1]) {
			t.Errorf("%d ms, %s: held for %d outputs, want %d", c.resolution, c.series, held, c.held)
		}
	}
}

// BenchmarkFill takes in an hour by the minute without gaps, as most series are.
func BenchmarkFill(b *testing.B) {
	v := make([]float64, 60)
	var s hold.Series
	for b.Loop() {
		s.Fill(v, nil, 60_000)
	}
}
