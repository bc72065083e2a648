package manifest

import (
	"math/rand/v2"
	"testing"
)

// TestOutlived asks a model for the clock up to which deletions can be forgotten.
// This is the lowest one that takes all expired deletions and leaves no more series
// than allowed.
func TestOutlived(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	forgotten := 0
	for round := range 5000 {
		m := &Manifest{}
		kept := int64(0)
		for range r.IntN(3) {
			n := r.IntN(4)
			kept += int64(n)
			m.state.Tombstones = append(m.state.Tombstones,
				Tombstones{Incarnation: 100, Series: make([]DeletedSeries, n)})
		}
		for range r.IntN(6) {
			m.state.Remembered = append(m.state.Remembered,
				Tombstones{Incarnation: 1 + r.Uint64N(8), Series: make([]DeletedSeries, r.IntN(4))})
		}
		expired, limit := r.Uint64N(8), r.Int64N(14)
		series := func(after, upTo uint64) (n int64) {
			for _, d := range m.state.Remembered {
				if d.Incarnation > after && d.Incarnation <= upTo {
					n += int64(len(d.Series))
				}
			}
			return n
		}
		want := uint64(0)
		for _, d := range m.state.Remembered {
			if d.Incarnation <= expired {
				want = max(want, d.Incarnation)
			}
		}
		for kept+series(want, 100) > limit && want < 9 {
			want++
		}
		clock, early := m.ForgettableClock(expired, limit)
		if clock > 0 {
			forgotten++
		}
		// Clocks between two deletions are one.
		if series(0, clock) != series(0, want) || series(expired, max(clock, expired)) != early ||
			clock < min(want, 8) && series(clock, want) > 0 {
			t.Fatalf("round %d: up to %d, %d early; want %d; expired %d, limit %d, %d kept, %+v",
				round, clock, early, want, expired, limit, kept, m.state.Remembered)
		}
		if clock > want && series(want, clock) > 0 {
			t.Fatalf("round %d: up to %d, want %d", round, clock, want)
		}
	}
	if forgotten < 1000 {
		t.Errorf("something was forgotten in %d rounds", forgotten)
	}
}
