package store

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/cockroachdb/errors/oserror"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/disk/datadir"
	"dalmatiner/internal/disk/wal"
	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/store/compaction"
	"dalmatiner/internal/store/drivetest"
	"dalmatiner/internal/store/fsck"
	"dalmatiner/internal/store/snapshot"
	"dalmatiner/internal/testkit/filetest"
	"dalmatiner/internal/write/head"
)

// faultyDevice returns what a store on a device with faults is opened with, which
// flushes and merges only when it is told to.
func faultyDevice() (*testClock, *vfs.MemFS, *faults, Options) {
	clock, mem := newTestClock(), vfs.NewMem()
	f := newFaults(mem)
	o := testOptions(f.FS, clock)
	byHand(&o)
	return clock, mem, f, o
}

// fatal counts the calls of OnFatal.
func fatal(o *Options) *atomic.Int32 {
	n := new(atomic.Int32)
	o.OnFatal = func(error) { n.Add(1) }
	return n
}

// However the file of a segment cannot be written, nothing is lost: the flush
// fails, everything stays readable, and the next flush writes it all.
func TestAFailedSegmentIsWrittenByTheNextFlush(t *testing.T) {
	t.Parallel()
	kinds := map[string]errorfs.OpKind{
		"create": errorfs.OpCreate, "write": errorfs.OpFileWrite, "sync": errorfs.OpFileSync,
		"rename": errorfs.OpRename, "sync of the directory": errorfs.OpOpenDir, "open": errorfs.OpOpen,
	}
	for name, kind := range kinds {
		t.Run(name, func(t *testing.T) {
			clock, r := newTestClock(), rand.New(rand.NewPCG(5, uint64(kind)))
			mem := vfs.NewCrashableMem()
			f := newFaults(mem)
			o := testOptions(f.FS, clock)
			fatals := fatal(&o)
			s := mustOpen(t, o)
			var h history
			sendSome(t, s, &h, r, clock)
			f.Fail("/flush", kind)
			if _, err := s.Flush(context.Background()); !errors.Is(err, errorfs.ErrInjected) {
				t.Fatalf("flush: %v", err)
			}
			h.check(t, s, "b", len(h.writes))
			sendSome(t, s, &h, r, clock) // late points over what the flush put back
			h.check(t, s, "b", len(h.writes))
			f.Clear()
			if _, err := s.Flush(context.Background()); err != nil {
				t.Fatal(err)
			}
			h.check(t, s, "b", len(h.writes))
			// a sealer counts what it sealed a moment later
			drivetest.Eventually(t, "no sealed blocks and no late points are left", func() bool {
				u := s.Stats()
				return u.Head.Sealed == 0 && u.Head.Late == 0
			})
			if n := fatals.Load(); n != 0 {
				t.Errorf("%d fatal errors", n)
			}
			o.FS = mem.CrashClone(vfs.CrashCloneCfg{})
			s.Crash()
			s = mustOpen(t, o)
			defer s.Crash()
			h.check(t, s, "b", len(h.writes))
		})
	}
}

// Senders that wait for room go on by themselves when the disk takes segments
// again, and are let go when the node ends though it does not.
func TestHeldBackSendersGoOn(t *testing.T) {
	t.Parallel()
	for _, release := range []bool{false, true} {
		clock := newTestClock()
		f := newFaults(vfs.NewMem())
		o := testOptions(f.FS, clock)
		o.LateMemory = 64
		s := mustOpen(t, o)
		x := mustSession(t, s, "b")
		f.Fail("/flush", errorfs.OpCreate)
		done := make(chan error, 1)
		go func() {
			var err error
			send := func(slot, value uint64) {
				x.Point(key(1), slot, point.FromInt(int64(value)))
				_, failed := x.Commit()
				err = errors.Join(err, failed)
			}
			for i := range uint64(head.MaxOpen + 1) { // the first block is closed
				send(epoch-3600+i*60, 1)
			}
			for i := range uint64(30) { // late, and each a run of its own
				send(epoch-7200+2*i, 2)
			}
			done <- errors.Join(err, x.Close())
		}()
		drivetest.Eventually(t, "a sender is held back", func() bool {
			return s.Stats().Senders.Waits > 0
		})
		if release {
			s.ReleaseSenders()
		} else {
			f.Clear()
		}
		drivetest.Within(t, "the sender", func() {
			if err := <-done; err != nil {
				t.Error(err)
			}
		})
		f.Clear()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// A log that fails is not tried again: one fatal error, no further promise, and
// the store still closes.
func TestAFailedLogEndsTheStore(t *testing.T) {
	t.Parallel()
	clock := newTestClock()
	mem := vfs.NewCrashableMem()
	f := newFaults(mem)
	o := testOptions(f.FS, clock)
	o.WALSync = wal.Always
	fatals := fatal(&o)
	s := mustOpen(t, o)
	x := mustSession(t, s, "b")
	x.Point(key(1), epoch, point.FromInt(1))
	lsn, err := x.Commit()
	if err == nil {
		err = s.intake.WaitDurable(t.Context(), lsn)
	}
	if err != nil {
		t.Fatal(err)
	}
	f.Fail("/wal", errorfs.OpFileSyncData, errorfs.OpFileSync)
	x.Point(key(1), epoch+1, point.FromInt(2))
	if lsn, err = x.Commit(); err == nil {
		err = s.intake.WaitDurable(t.Context(), lsn)
	}
	if err == nil {
		t.Fatal("a point was acknowledged whose fsync failed")
	}
	f.Clear()
	drivetest.Eventually(t, "the fatal error is reported", func() bool { return fatals.Load() > 0 })
	// Blocks are opened and closed by writes that the log refuses.
	for i := range uint64(8) {
		y := mustSession(t, s, "b")
		y.Point(key(1), epoch-600+i*60, point.FromInt(3))
		if lsn, err := y.Commit(); err == nil {
			t.Errorf("write %d was taken up to LSN %d", i, lsn)
		}
		_ = y.Close() // the same error
	}
	if _, err := s.CreateBucket(buckets.Info{Name: "new", Resolution: 1000, PPF: 1}); err == nil {
		t.Error("a bucket was created without a log")
	}
	drivetest.Within(t, "Close", func() {
		if s.Close() == nil {
			t.Error("closing a store whose log failed is no error")
		}
	})
	if n := fatals.Load(); n != 1 {
		t.Errorf("%d fatal errors, want 1", n)
	}
	o.FS = mem.CrashClone(vfs.CrashCloneCfg{})
	s = mustOpen(t, o)
	defer s.Crash()
	if got := readAll(t, s, "b", 1, epoch, 1)[0]; got != point.FromInt(1) {
		t.Errorf("the acknowledged point reads %x", got)
	}
}

// A MANIFEST that cannot be written ends the store: what is committed is not
// known. The restart finds everything, once.
func TestAFailedCommitEndsTheStore(t *testing.T) {
	t.Parallel()
	for _, kind := range []errorfs.OpKind{errorfs.OpFileWrite, errorfs.OpFileSync,
		errorfs.OpFileSyncData} {
		clock, r := newTestClock(), rand.New(rand.NewPCG(3, 4))
		mem := vfs.NewCrashableMem()
		f := newFaults(mem)
		o := testOptions(f.FS, clock)
		fatals := fatal(&o)
		s := mustOpen(t, o)
		var h history
		sendSome(t, s, &h, r, clock)
		f.Fail("/data/MANIFEST", kind)
		_, err := s.Flush(context.Background())
		f.Clear()
		if err == nil {
			s.Crash() // this kind is not used for the MANIFEST
			continue
		}
		h.check(t, s, "b", len(h.writes))
		if _, err := s.Flush(context.Background()); err == nil {
			t.Error("a second flush succeeds after a failed commit")
		}
		if n := fatals.Load(); n != 1 {
			t.Errorf("%d fatal errors, want 1", n)
		}
		drivetest.Within(t, "Close", func() { _ = s.Close() })
		for _, percent := range []int{0, 50, 100} {
			o.FS = mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: r})
			s = mustOpen(t, o)
			h.check(t, s, "b", len(h.writes))
			s.Crash()
		}
	}
}

// A segment that the system does not let us open now is not given up, and one
// that is damaged or missing does not keep the store from starting (I6).
func TestSegmentsThatDoNotOpen(t *testing.T) {
	t.Parallel()
	clock, r := newTestClock(), rand.New(rand.NewPCG(6, 4))
	mem := vfs.NewMem()
	f := newFaults(mem)
	o := testOptions(f.FS, clock)
	s := mustOpen(t, o)
	var h history
	sendSome(t, s, &h, r, clock)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	path := s.path(datadir.Flush, "0000000000000001.seg")
	f.Set(func(op errorfs.Op) error {
		if op.Kind == errorfs.OpOpen && op.Path == path {
			return syscall.EMFILE
		}
		return nil
	})
	if s, err := Open(o); err == nil {
		s.Crash()
		t.Fatal("a store opens without a segment that it could not open for want of file descriptors")
	}
	f.Clear()
	s = mustOpen(t, o)
	h.check(t, s, "b", len(h.writes))
	s.Crash()

	if err := mem.Remove(path); err != nil {
		t.Fatal(err)
	}
	stored := uint64(0)
	for range 2 {
		s = mustOpen(t, o)
		lost := s.Account().Losses()
		if len(lost) != 1 || lost[0].Cause != compaction.LostSegment || stored != 0 &&
			lost[0].Points != stored {
			t.Errorf("lost points: %+v", lost)
		}
		stored = lost[0].Points
		s.Crash()
	}
}

// A damaged table of the catalogue is found when it is read; the series come
// from the segments then (I6).
func TestADamagedCatalogueIsRebuilt(t *testing.T) {
	t.Parallel()
	clock, r := newTestClock(), rand.New(rand.NewPCG(1, 9))
	mem := vfs.NewMem()
	o := testOptions(mem, clock)
	s := mustOpen(t, o)
	var h history
	sendSome(t, s, &h, r, clock)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	names, err := mem.List(s.path(datadir.Catalogue))
	if err != nil {
		t.Fatal(err)
	}
	damaged := 0
	for _, name := range names {
		if strings.HasSuffix(name, ".sst") {
			flipByte(t, mem, s.path(datadir.Catalogue, name), 20)
			damaged++
		}
	}
	if damaged == 0 {
		t.Fatalf("no table among %v", names)
	}
	s = mustOpen(t, o)
	defer s.Crash()
	h.check(t, s, "b", len(h.writes))
	if _, n := s.Damage(); n == 0 {
		t.Error("the damage was not counted")
	}
}

func flipByte(t *testing.T, fs vfs.FS, path string, at int64) {
	t.Helper()
	filetest.FlipBit(t, fs, path, 8*at+6)
}

// A block damaged under a running store is named, counted and left out (I5).
func TestADamagedBlockIsNotServed(t *testing.T) {
	t.Parallel()
	mem := vfs.NewMem()
	o := testOptions(mem, newTestClock())
	o.BackgroundMerge = false // the file is damaged behind the store's back
	s := mustOpen(t, o)
	defer s.Crash()
	x := mustSession(t, s, "b")
	x.Point(key(1), epoch, point.FromInt(77))
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
	res, err := s.Flush(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if got := readAll(t, s, "b", 1, epoch, 1)[0]; got != point.FromInt(77) {
		t.Fatalf("read %x before the damage", got)
	}
	flipByte(t, mem, s.path(res.Segment), 1)
	if got := readAll(t, s, "b", 1, epoch, 1)[0]; got != 0 {
		t.Errorf("a damaged block gave %x", got)
	}
	names, n := s.Damage()
	if n == 0 || len(names) != 1 || !strings.Contains(names[0], res.Segment) {
		t.Errorf("damage: %d, %v", n, names)
	}
}

// A directory that the process may not use is not called foreign, in use or
// without a store.
func TestNoPermissionSaysWhatToDo(t *testing.T) {
	t.Parallel()
	f := newFaults(vfs.NewMem())
	s := fillRows(t, testOptions(f.FS, newTestClock()))
	s.Crash()
	for _, kind := range []errorfs.OpKind{errorfs.OpList, errorfs.OpMkdirAll, errorfs.OpLock} {
		f.Set(func(op errorfs.Op) error {
			if op.Kind == kind {
				return oserror.ErrPermission
			}
			return nil
		})
		if kind == errorfs.OpList {
			_, err := fsck.CheckDir(t.Context(), f.FS, "/data", fsck.Options{})
			_, rerr := snapshot.Restore(t.Context(),
				snapshot.RestoreOptions{FS: f.FS, From: "/data", To: "/new"})
			for _, err := range []error{err, rerr} {
				if !errors.Is(err, oserror.ErrPermission) || errors.Is(err, fsck.ErrNoStore) ||
					!strings.Contains(err.Error(), "run this as the user that owns it") {
					t.Errorf("reading: %v", err)
				}
			}
			continue
		}
		if _, err := Open(testOptions(f.FS, newTestClock())); !errors.Is(err, oserror.ErrPermission) ||
			!strings.Contains(err.Error(), "data directory /data: ") ||
			!strings.Contains(err.Error(), "give it to the user that runs ddb") {
			t.Errorf("start: %v", err)
		}
	}
}
