package store

import (
	"slices"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"dalmatiner/internal/codec/chunk"
	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/disk/segment"
	marks "dalmatiner/internal/model/history"
	"dalmatiner/internal/store/deletion"
	"dalmatiner/internal/store/drivetest"
	"dalmatiner/internal/store/flush"
)

// TestMarksKnowWhatAMergeLeftOut: rollups of a damaged window can be read until a merge has
// replaced it by what it could read of the chunks. What was read meanwhile holds no longer.
func TestMarksKnowWhatAMergeLeftOut(t *testing.T) {
	t.Parallel()
	fs, clock := vfs.NewMem(), newTestClock()
	o := testOptions(fs, clock)
	byHand(&o)
	clock.Advance(72 * time.Minute) // to the begin of a unit
	s := mustOpen(t, o)
	begin, x := clock.Now().Unix(), mustSession(t, s, "rows")
	must := func(_ any, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	send := func(key []byte, slot int64) {
		x.Point(key, uint64(slot), point.FromInt(slot%1000))
		must(x.Commit())
	}
	pass := func(d time.Duration) {
		clock.Advance(d)
		s.clock.Advance()
	}
	send(key(2), begin)
	for range 300 {
		send(key(1), clock.Now().Unix())
		pass(time.Minute)
	}
	mustFlush(t, s)
	pass(5 * time.Hour)
	send(key(1), clock.Now().Unix()) // the bucket goes on
	mustFlush(t, s)
	must(s.Merge(t.Context()))
	s.Crash()
	damageWindow(t, fs)
	s = mustOpen(t, o)
	t.Cleanup(func() { s.Crash() })
	x = mustSession(t, s, "rows")
	h, err := s.Bucket("rows")
	must(h, err)
	look := func() (Mark, int) {
		m, got := h.Mark(), make([]chunk.Header, 1)
		if _, err := s.Series(h.Info(), key(1)).Aggregate(t.Context(), begin,
			segment.FewChunks*chunk.Slots, got); err != nil {
			t.Error(err)
		}
		return m, got[0].Count
	}
	// so that the window is written anew
	must(s.DeleteSeries(t.Context(), "rows", deletion.Choice{Key: key(2)}, false))
	pass(5 * time.Hour)
	send(key(1), clock.Now().Unix())
	mustFlush(t, s)
	under, points := Mark{}, -1
	atSteps(s, func(step int) {
		if step == flush.StepMerged && points < 0 {
			under, points = look()
		}
	})
	must(s.Merge(t.Context()))
	behind, left := look()
	if points <= left {
		t.Fatalf("%d points under the merge, %d behind it: it left nothing out", points, left)
	}
	if below := h.Since(under, begin).Below; below != marks.Nothing {
		t.Errorf("the merge left points out, and nothing changed up to %d", below-begin)
	}
	if h.Since(behind, begin).Below == marks.Nothing {
		t.Error("nothing is known since a mark behind the merge")
	}
}

// damageWindow damages the data of the oldest window.
func damageWindow(t *testing.T, fs *vfs.MemFS) {
	t.Helper()
	names, err := fs.List("/data/window")
	if err != nil || len(names) == 0 {
		t.Fatal(names, err)
	}
	drivetest.DamagePart(t, fs, "/data/window/"+slices.Min(names), "data")
}
