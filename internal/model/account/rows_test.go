package account

import (
	"maps"
	"testing"
)

// Rows have what was added until it is taken: all of it, or as much as there is place for.
func TestRowsAreTakenOnce(t *testing.T) {
	type key struct {
		bucket uint64
		minute int64
	}
	var r Rows
	r.Take(func(uint64, int64, *Counts) bool {
		t.Error("a row of no rows")
		return true
	})
	want := make(map[key]uint64)
	for i := range uint64(60) {
		k := key{i / 20, int64(i % 3)}
		r.Add(k.bucket, k.minute, &Counts{Accepted: i})
		want[k] += i
	}
	got := make(map[key]uint64)
	take := func(most int) {
		r.Take(func(bucket uint64, minute int64, c *Counts) bool {
			if most--; most < 0 {
				return false
			}
			got[key{bucket, minute}] += c.Accepted
			return true
		})
	}
	if take(4); len(got) != 4 || r.Len() != len(want)-4 {
		t.Fatalf("%d rows were taken and %d are left, want 4 of %d", len(got), r.Len(), len(want))
	}
	r.Add(2, 2, &Counts{Accepted: 1000}) // the one that was added last may be gone
	want[key{2, 2}] += 1000
	if take(len(want)); r.Len() != 0 || !maps.Equal(got, want) {
		t.Errorf("%d rows are left; taken were %v, want %v", r.Len(), got, want)
	}
}
