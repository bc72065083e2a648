package store

import (
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"dalmatiner/internal/disk/datadir"
	"dalmatiner/internal/store/deletion"
	"dalmatiner/internal/store/drivetest"
	"dalmatiner/internal/store/fsck"
)

// A deletion that the catalogue has, the MANIFEST not yet and the log no more is no damage: a
// check that begins inside the flush between the two, and reads the log behind it, finds its
// tombstone in the store.
func TestCheckBesideTheFlushOfADeletion(t *testing.T) {
	t.Parallel()
	o := testOptions(vfs.NewMem(), newTestClock())
	o.WALMaxSize = 256 << 10 // files of 32 KiB, so that some are trimmed, and room for all records
	byHand(&o)
	s := fillRows(t, o)
	defer s.Crash()
	if _, err := s.DeleteSeries(t.Context(), "rows", deletion.Choice{Key: key(1)}, false); err != nil {
		t.Fatal(err)
	}
	drivetest.SendRows(t, s, drivetest.RowSlots, 2*drivetest.RowSlots)
	flushed, atLog, done := make(chan struct{}), make(chan struct{}), make(chan struct{})
	var r fsck.Report
	var err error
	check := func() {
		defer close(done)
		r, err = NewOperations(s).Check(t.Context(), fsck.Options{Progress: func(p fsck.Progress) {
			if p.File == datadir.WAL {
				close(atLog)
				<-flushed
			}
		}})
	}
	first := firstLogFile(t, o)
	atSteps(s, func(step int) {
		if step == 3 {
			go check()
			<-atLog
		}
	})
	mustFlush(t, s)
	close(flushed)
	<-done
	if err != nil || r.Damaged != 0 {
		t.Errorf("%v, %v", err, r.Damages)
	}
	if firstLogFile(t, o) == first {
		t.Error("no file of the log is gone")
	}
}

func firstLogFile(t *testing.T, o Options) string {
	t.Helper()
	names, err := o.FS.List(o.FS.PathJoin(o.Dir, datadir.WAL))
	if err != nil || len(names) == 0 {
		t.Fatal(names, err)
	}
	return slices.Min(names)
}
