package store

import (
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"dalmatiner/internal/disk/wal"
	"dalmatiner/internal/model/account"
	"dalmatiner/internal/store/compaction"
	"dalmatiner/internal/store/drivetest"
)

// badStart makes the beginning of a file one that the device cannot read.
func badStart(file string) func(errorfs.Op) error {
	return func(op errorfs.Op) error {
		if op.Kind == errorfs.OpFileReadAt && strings.HasSuffix(op.Path, file) && op.Offset == 0 {
			return syscall.EIO
		}
		return nil
	}
}

// What the device cannot read is named, counted and left out of a read; the
// rest is served. A merge leaves nothing out for it, but waits for better times.
func TestADeviceThatCannotRead(t *testing.T) {
	t.Parallel()
	clock, mem, f, o := faultyDevice()
	s := mustOpen(t, o)
	defer func() { s.Crash() }()
	flushed := drivetest.FlushToMerge(t, s, passing(s, clock))
	// The reads load the indexes.
	if n := drivetest.MissingNoise(t, s, "a", epoch, epoch+1440); n != 0 {
		t.Fatalf("%d words are missing before", n)
	}
	f.Set(badStart(flushed))
	missing := drivetest.MissingNoise(t, s, "a", epoch, epoch+1440)
	if missing == 0 || missing >= 3*720 {
		t.Errorf("%d words are missing; one block of several cannot be read", missing)
	}
	names, n := s.Damage()
	if st := s.Stats(); n == 0 || st.ReadErrors == 0 ||
		!strings.Contains(strings.Join(names, " "), flushed) {
		t.Errorf("%d damages, %d read errors: %v", n, st.ReadErrors, names)
	}
	before := s.Stats().Segments.Count
	if _, err := s.Merge(t.Context()); !errors.Is(err, syscall.EIO) {
		t.Errorf("a merge of what cannot be read: %v", err)
	}
	if files := mergedFiles(t, s, mem); len(files) > 0 || s.Stats().Segments.Count != before {
		t.Errorf("left: %v, %d segments", files, s.Stats().Segments.Count)
	}
	f.Clear()
	if r, err := s.Merge(t.Context()); err != nil || r.Windows == 0 {
		t.Errorf("a merge when it can be read again: %+v, %v", r, err)
	}
	if n := drivetest.MissingNoise(t, s, "a", epoch, epoch+1440); n != 0 {
		t.Errorf("%d words are missing in the end", n)
	}
	if lost := s.Account().Lost(); len(lost) > 0 {
		t.Errorf("lost: %v", lost)
	}
}

// A range that the device never reads again does not keep the rest from being
// merged: after some tries it is left out as damage is, and its segment is set
// aside.
func TestABadSectorDoesNotEndMerging(t *testing.T) {
	t.Parallel()
	clock, mem, f, o := faultyDevice()
	s := mustOpen(t, o)
	defer func() { s.Crash() }()
	flushed := drivetest.FlushToMerge(t, s, passing(s, clock))
	f.Set(badStart(flushed))
	for n := range compaction.MaxUnread {
		if _, err := s.Merge(t.Context()); !errors.Is(err, syscall.EIO) {
			t.Fatalf("merge %d of what cannot be read: %v", n, err)
		}
	}
	if r, err := s.Merge(t.Context()); err != nil || r.Windows == 0 {
		t.Fatalf("a merge after %d tries: %+v, %v", compaction.MaxUnread, r, err)
	}
	missing := drivetest.MissingNoise(t, s, "a", epoch, epoch+1440)
	if missing == 0 || missing >= 3*720 {
		t.Errorf("%d words are missing; one block of several cannot be read", missing)
	}
	if lost := s.Account().Lost(); !slices.Equal(lost,
		[]account.Loss{{Cause: compaction.LostBlocks, Points: uint64(missing)}}) {
		t.Errorf("%d words are missing, the account says %+v", missing, lost)
	}
	if _, err := mem.Stat(s.lostPath(flushed)); err != nil {
		t.Errorf("the segment was not set aside: %v", err)
	}
}

// However the log fails, it is not tried again: one fatal error that says so,
// nothing acknowledged afterwards, reads go on, and a restart has everything
// that was acknowledged.
func TestHoweverTheLogFails(t *testing.T) {
	t.Parallel()
	for name, kinds := range map[string][]errorfs.OpKind{
		"write": {errorfs.OpFileWrite}, "sync": {errorfs.OpFileSync, errorfs.OpFileSyncData},
		"create": {errorfs.OpCreate}, "sync of the directory": {errorfs.OpOpenDir},
	} {
		t.Run(name, func(t *testing.T) { testFailingLog(t, kinds) })
	}
}

func testFailingLog(t *testing.T, kinds []errorfs.OpKind) {
	clock, mem := newTestClock(), vfs.NewCrashableMem()
	f := newFaults(mem)
	o := testOptions(f.FS, clock)
	o.WALSync, o.WALMaxSize = wal.Always, 8*minLogFile // new files come soon
	fatals := fatal(&o)
	s := mustOpen(t, o)
	x := mustSession(t, s, "a")
	send := func(slot int64) error {
		x.Point(key(0), uint64(slot), noise(0, slot))
		lsn, err := x.Commit()
		if err != nil {
			return err
		}
		return s.intake.WaitDurable(t.Context(), lsn)
	}
	slot := int64(epoch)
	for ; slot < epoch+100; slot++ {
		if err := send(slot); err != nil {
			t.Fatal(err)
		}
	}
	var failed, retried atomic.Int32
	f.Set(func(op errorfs.Op) error {
		if !strings.Contains(op.Path, "/data/wal") || op.Kind.ReadOrWrite() == errorfs.OpIsRead &&
			op.Kind != errorfs.OpOpenDir {
			return nil
		}
		if failed.Load() > 0 && op.Kind != errorfs.OpFileClose {
			retried.Add(1)
		}
		if slices.Contains(kinds, op.Kind) {
			failed.Add(1)
			return syscall.EIO
		}
		return nil
	})
	var err error
	for ; err == nil; slot++ {
		if slot > epoch+2000 {
			t.Fatal("nothing ever failed")
		}
		err = send(slot)
	}
	acked := slot - 1
	eventually(t, "the fatal error is reported", func() bool { return fatals.Load() == 1 })
	if !errors.Is(s.pressure.Failed(), syscall.EIO) ||
		!strings.Contains(s.pressure.Failed().Error(), "takes no more records until a restart") {
		t.Errorf("the failure reads %q", s.pressure.Failed())
	}
	if err := send(slot); err == nil {
		t.Error("a point was acknowledged by a failed log")
	}
	checkNoise(t, s, acked)
	within(t, "Close", func() { _ = s.Close() })
	if n := retried.Load(); n != 0 || fatals.Load() != 1 {
		t.Errorf("%d operations on the log after its failure, %d fatal errors", n, fatals.Load())
	}
	o.FS = mem.CrashClone(vfs.CrashCloneCfg{})
	s = mustOpen(t, o)
	defer s.Crash()
	checkNoise(t, s, acked)
}

// checkNoise reads what was acknowledged of series 0 (I1).
func checkNoise(t *testing.T, s *Store, past int64) {
	t.Helper()
	for i, got := range readAll(t, s, "a", 0, epoch, int(past-epoch)) {
		if got != noise(0, epoch+int64(i)) {
			t.Fatalf("slot %d holds %x", i, got)
		}
	}
}
