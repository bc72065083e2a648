package store

import (
	"testing"

	"dalmatiner/internal/account"
	"dalmatiner/internal/metric"
	"dalmatiner/internal/point"
	"dalmatiner/internal/series"
)

// A name whose hash another series has is refused and counted, be that series in
// a column or inactive: its points must not become the other's.
func TestSameHash(t *testing.T) {
	for _, inactive := range []bool{false, true} {
		s := openPressed(t, nil)
		x := mustSession(t, s.Store, "b")
		x.Point(key(0), epoch, point.FromInt(1))
		b := s.buckets.Get("b")
		id := metric.Series(b.info.ID, key(1)) // as if key(7) had it
		b.mu.Lock()
		if inactive {
			s.deactivate(b, series.At(0, 9), key(7), id)
		} else {
			g := b.groups[0]
			s.define(b, g, g.Columns().Len(), id, key(7), 0, 0, false)
		}
		b.mu.Unlock()
		x.Point(key(1), epoch, point.FromInt(2))
		x.Point(key(0), epoch+1, point.FromInt(3))
		if err := x.Close(); err != nil {
			t.Fatal(err)
		}
		if c := s.total(t, "b"); c.Accepted != 2 || c.Refused[account.SameHash] != 1 {
			t.Errorf("inactive %v: %+v", inactive, c)
		}
	}
}
