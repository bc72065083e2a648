package store

import (
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"dalmatiner/internal/disk/datadir"
	"dalmatiner/internal/store/drivetest"
	"dalmatiner/internal/store/snapshot"
)

// TestALogThatIsGoneIsSaid: where all of the log is removed, before the first flush or behind one,
// a check and the start say so, once; a store that never wrote to it, its snapshot and what is
// restored from that are whole.
func TestALogThatIsGoneIsSaid(t *testing.T) {
	t.Parallel()
	for _, flushed := range []bool{false, true} {
		fs := vfs.NewMem()
		o := testOptions(fs, newTestClock())
		byHand(&o)
		s := mustOpen(t, o)
		drivetest.SendNoise(t, s, "a", epoch, epoch+30)
		if flushed {
			mustFlush(t, s)
		}
		if err := s.disk.Log.Sync(); err != nil {
			t.Fatal(err)
		}
		s.Crash()
		if err := fs.RemoveAll("/data/" + datadir.WAL); err != nil {
			t.Fatal(err)
		}
		if r := mustCheck(t, fs, "/data"); r.Damaged == 0 ||
			!strings.Contains(r.Damages[0].Detail, "all of it is missing") {
			t.Errorf("flushed %t: the check says %v", flushed, r.Damages)
		}
		s = mustOpen(t, o)
		if named, n := s.Damage(); n == 0 ||
			!strings.Contains(strings.Join(named, ";"), "log: all of it is missing") {
			t.Errorf("flushed %t: the start says %q", flushed, named)
		}
		s.Crash()
		s = mustOpen(t, o)
		if named, _ := s.Damage(); strings.Contains(strings.Join(named, ";"), "all of it is missing") {
			t.Errorf("flushed %t: the next start says %q", flushed, named)
		}
		s.Crash()
	}
}

func TestALogWithoutARecordIsWhole(t *testing.T) {
	t.Parallel()
	fs := vfs.NewMem()
	o := testOptions(fs, newTestClock())
	byHand(&o)
	s := mustOpen(t, o)
	if _, err := NewOperations(s).Snapshot(t.Context(), "x"); err != nil {
		t.Fatal(err)
	}
	s.Crash()
	for range 2 {
		s = mustOpen(t, o)
		if named, n := s.Damage(); n != 0 {
			t.Errorf("the start says %q", named)
		}
		s.Crash()
	}
	if _, err := snapshot.Restore(t.Context(),
		snapshot.RestoreOptions{FS: fs, From: "/data/snapshots/x", To: "/restored"}); err != nil {
		t.Error(err)
	}
}
