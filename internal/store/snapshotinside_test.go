package store

import (
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"dalmatiner/internal/disk/datadir"
	"dalmatiner/internal/disk/manifest"
)

// A merge that replaces segments while they are linked makes the snapshot start
// over; it holds what the MANIFEST names at its end.
func TestSnapshotBesideAReplacedSegment(t *testing.T) {
	t.Parallel()
	f, clock := newFaults(vfs.NewMem()), newTestClock()
	s := fillRows(t, testOptions(f.FS, clock))
	defer s.Crash()
	first := datadir.Segment(manifest.Flush, 1)
	replaced := 0
	f.Set(func(op errorfs.Op) error {
		if op.Kind != errorfs.OpLink || !strings.HasSuffix(op.Path, first) || replaced > 0 {
			return nil
		}
		replaced++
		if err := s.disk.Manifest.Commit(manifest.Edit{RemoveSegments: []uint64{1}}); err != nil {
			t.Error(err)
		}
		return f.FS.Remove("/data/" + first)
	})
	snap, err := NewOperations(s).Snapshot(t.Context(), "x")
	if err != nil || replaced != 1 {
		t.Fatalf("%v after %d replacements", err, replaced)
	}
	f.Clear()
	r := mustCheck(t, f.FS, snap.Dir)
	for _, d := range r.Damages {
		if strings.Contains(d.String(), first) {
			t.Errorf("the snapshot names a replaced segment: %v", d)
		}
	}
	if r.Chunks == 0 {
		t.Errorf("%+v", r)
	}
}

// No flush moves the beginning of the log between the MANIFEST of a snapshot and the end of its
// log: records that the MANIFEST needs would be missing.
func TestNoFlushInsideASnapshot(t *testing.T) {
	t.Parallel()
	f, copies := newFaults(vfs.NewMem()), 0
	o := testOptions(f.FS, newTestClock())
	byHand(&o)
	s := fillRows(t, o)
	defer s.Crash()
	f.Set(func(op errorfs.Op) error {
		if op.Kind != errorfs.OpCreate || !strings.Contains(op.Path, "x"+datadir.TempSuffix) {
			return nil
		}
		copies++
		if s.flusher.Gate().TryLock() {
			s.flusher.Gate().Unlock()
			t.Errorf("a flush could begin before %s is there", op.Path)
		}
		return nil
	})
	if _, err := NewOperations(s).Snapshot(t.Context(), "x"); err != nil {
		t.Fatal(err)
	}
	f.Clear()
	if copies < 3 {
		t.Errorf("%d files were written", copies)
	}
}
