package store

import (
	"testing"

	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/model/account"
	"dalmatiner/internal/model/metric"
	"dalmatiner/internal/write/logrecord"
)

// A name whose hash another series has is refused and counted, be that series in
// a column or inactive: its points must not become the other's.
func TestSameHash(t *testing.T) {
	t.Parallel()
	for _, inactive := range []bool{false, true} {
		s := openPressed(t, nil)
		x := mustSession(t, s.Store, "b")
		x.Point(key(0), epoch, point.FromInt(1))
		b := s.buckets.Get("b")
		owners := s.columns.NewOwnership(0, &s.damage)
		define := func(key []byte, column int) {
			owners.Define(b, &logrecord.Record{Bucket: b.ID, Group: 0, Column: column, Key: key}, 0, 0,
				false)
		}
		define(key(7), 9)
		if inactive {
			define(key(8), 9)
		}
		ref, _ := s.columns.Index.Lookup(metric.Series(b.ID, key(7)))
		if ref.Inactive() != inactive {
			t.Fatalf("the other series is at %x", ref)
		}
		s.columns.Index.Define(metric.Series(b.ID, key(1)), ref) // as if key(7) had the hash
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
