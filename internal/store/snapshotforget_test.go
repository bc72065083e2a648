package store

import (
	"fmt"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"dalmatiner/internal/disk/datadir"
	"dalmatiner/internal/model/metric"
	"dalmatiner/internal/store/deletion"
	"dalmatiner/internal/store/snapshot"
)

// What is restored from a snapshot does not show series that were deleted before it
// and not merged away yet, be the deletion in the MANIFEST or in the log only, nor
// after its merges, nor with its catalogue lost; what the store does afterwards is
// not in it.
func TestRestoreShowsNoDeletedSeries(t *testing.T) {
	t.Parallel()
	for _, flushed := range []bool{false, true} {
		for _, merged := range []bool{false, true} {
			t.Run(fmt.Sprintf("flushed %v, merged %v", flushed, merged), func(t *testing.T) {
				testRestoreDeleted(t, flushed, merged)
			})
		}
	}
}

func testRestoreDeleted(t *testing.T, flushed, merged bool) {
	fs, clock := vfs.NewMem(), newTestClock()
	o := testOptions(fs, clock)
	o.BackgroundMerge = false
	s := mustOpen(t, o)
	slot := int64(epoch)
	send := func(buried bool) {
		x := mustSession(t, s, "b")
		for range 60 {
			for i := range 8 {
				if i != buriedSeries || buried {
					x.Point(key(i), uint64(slot), noise(i, slot))
				}
			}
			slot++
		}
		if err := x.Close(); err != nil {
			t.Fatal(err)
		}
	}
	remove := func(i int) {
		if _, err := s.DeleteSeries(t.Context(), "b", deletion.Choice{Key: key(i)}, false); err != nil {
			t.Fatal(err)
		}
	}
	send(true)
	mustFlush(t, s)
	send(true) // in memory when they are deleted
	remove(buriedSeries)
	remove(anewSeries)
	anew := slot
	if flushed {
		mustFlush(t, s)
	}
	send(false)
	if merged {
		if _, err := s.merges.Merge(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := NewOperations(s).Snapshot(t.Context(), "one"); err != nil {
		t.Fatal(err)
	}
	past := slot
	if !merged && s.Stats().Deleted.Tombstones == 0 {
		t.Error("no tombstone is left: nothing is tried")
	}
	remove(0)
	if _, err := s.Merge(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for _, lost := range []bool{false, true} {
		to := fmt.Sprint("/restored", lost)
		if _, err := snapshot.Restore(t.Context(),
			snapshot.RestoreOptions{FS: fs, From: s.path(datadir.Snapshots, "one"), To: to}); err != nil {
			t.Fatal(err)
		}
		if lost {
			if err := fs.RemoveAll(fs.PathJoin(to, datadir.Catalogue)); err != nil {
				t.Fatal(err)
			}
		}
		r := o
		r.Dir = to
		checkBuriedTwice(t, r, metric.Quote(to), anew, past)
	}
}
