package tags

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestRecent: rows of the newest hour and of the one before are kept, whatever the order in which
// they come, and those of the hours that a question is about are given.
func TestRecent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var r recentRows
		hours := map[uint32]uint64{} // of the rows that are there
		newest := uint64(0)
		for id := range uint32(rapid.IntRange(0, 40).Draw(t, "rows")) {
			hour := newest + uint64(rapid.SampledFrom([]int{0, 0, 0, 1, 2, 5}).Draw(t, "later"))
			if back := rapid.SampledFrom([]uint64{0, 0, 1, 2}).Draw(t, "earlier"); back <= hour {
				hour -= back
			}
			newest = max(newest, hour)
			r.add(id, hour*hourNS+7)
			hours[id] = hour
			if rapid.IntRange(0, 9).Draw(t, "remove") == 0 {
				r.remove(id)
				delete(hours, id)
			}
		}
		now := newest + uint64(rapid.IntRange(0, 3).Draw(t, "now"))
		var want []uint32
		for id, hour := range hours {
			if hour+1 >= newest && hour+1 >= now {
				want = append(want, id)
			}
		}
		slices.Sort(want)
		set := r.rowsSince(now*hourNS + 9)
		for id := range uint32(40) {
			if set.Contains(id) != slices.Contains(want, id) {
				t.Fatalf("at hour %d, the newest being %d, row %d of hour %d is in it: %t", now, newest, id,
					hours[id], set.Contains(id))
			}
		}
	})
}
