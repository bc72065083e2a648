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
	"dalmatiner/internal/store/drivetest"
)

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
	drivetest.Eventually(t, "the fatal error is reported", func() bool { return fatals.Load() == 1 })
	if !errors.Is(s.pressure.Failure(), syscall.EIO) ||
		!strings.Contains(s.pressure.Failure().Error(), "takes no more records until a restart") {
		t.Errorf("the failure reads %q", s.pressure.Failure())
	}
	if err := send(slot); err == nil {
		t.Error("a point was acknowledged by a failed log")
	}
	checkNoise(t, s, acked)
	drivetest.Within(t, "Close", func() { _ = s.Close() })
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
