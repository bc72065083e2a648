package storetest

import (
	"context"
	"math"
	"strings"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"dalmatiner/internal/disk/datadir"
	"dalmatiner/internal/store"
	"dalmatiner/internal/store/drivetest"
	"dalmatiner/internal/store/fsck"
	"dalmatiner/internal/store/snapshot"
)

// OptionsAt returns Options with a file system and a clock. The log is synced when a test wants it.
func OptionsAt(fs vfs.FS, clock *drivetest.Clock) store.Options {
	o := Options()
	o.FS, o.Now = fs, clock.Now
	o.WALInterval = time.Hour
	return o
}

// ByHand makes a store flush and merge when the test says so only, however far its clock goes: for
// tests that handle its files, or count what is in them.
func ByHand(o *store.Options) { o.BackgroundMerge, o.FlushInterval = false, math.MaxInt64 }

// Store is a store that a test can crash. The test ends it, by Close or by Crash.
type Store struct {
	*store.Store
	crashed *atomic.Bool
}

// Start opens a store.
func Start(t drivetest.TB, o store.Options) *Store {
	t.Helper()
	s, err := TryStart(o)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	return s
}

// TryStart is Start where the store may refuse.
func TryStart(o store.Options) (*Store, error) {
	crashed, onFatal := new(atomic.Bool), o.OnFatal
	o.FS = errorfs.Wrap(o.FS, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if crashed.Load() && op.Kind.ReadOrWrite() == errorfs.OpIsWrite && !kept(op.Path) {
			return errorfs.ErrInjected
		}
		return nil
	}))
	o.OnFatal = func(err error) {
		if !crashed.Load() {
			onFatal(err)
		}
	}
	s, err := store.Open(o)
	if err != nil {
		return nil, err
	}
	return &Store{s, crashed}, nil
}

// FillRows starts a store that drivetest.FillRows has filled.
func FillRows(t drivetest.TB, o store.Options) *Store {
	t.Helper()
	s := Start(t, o)
	drivetest.FillRows(t, s)
	return s
}

// Merged returns the file system of a store that drivetest.FillMerged has filled, which has been
// closed, and what it was opened with.
func Merged(t drivetest.TB) (*vfs.MemFS, store.Options) {
	t.Helper()
	clock, mem := drivetest.NewClock(), vfs.NewCrashableMem()
	o := OptionsAt(mem, clock)
	ByHand(&o)
	s := Start(t, o)
	drivetest.FillMerged(t, s, s.Passing(t, clock))
	if err := s.Close(); err != nil {
		t.Fatalf("close: %v", err)
	}
	return mem, o
}

// Restore restores a snapshot into a directory and starts a store there.
func Restore(t drivetest.TB, fs vfs.FS, from, to string, clock *drivetest.Clock) *Store {
	t.Helper()
	if _, err := snapshot.Restore(context.Background(),
		snapshot.RestoreOptions{FS: fs, From: from, To: to}); err != nil {
		t.Fatalf("restore: %v", err)
	}
	o := OptionsAt(fs, clock)
	o.Dir = to
	return Start(t, o)
}

// kept says whether what a crashed store writes there stays: the end of its log, and what the
// catalogue cannot close without.
func kept(path string) bool {
	return strings.Contains(path, "/"+datadir.WAL+"/") ||
		strings.Contains(path, "/"+datadir.Catalogue+"/")
}

// Crash ends the store as a kill would, but for what the operating system holds: the log has all
// that was sent, and nothing is flushed, as when the kill comes at the begin of a flush.
func (s *Store) Crash() {
	s.crashed.Store(true)
	_ = s.Close() // the flush fails
}

// Check returns what a check of the running store finds.
func (s *Store) Check(t drivetest.TB) fsck.Report {
	t.Helper()
	r, err := store.NewOperations(s.Store).Check(context.Background(), fsck.Options{})
	if err != nil {
		t.Fatalf("check: %v", err)
	}
	return r
}

// CheckSound fails the test if a check of the running store finds damage.
func (s *Store) CheckSound(t drivetest.TB) {
	t.Helper()
	if r := s.Check(t); r.Damaged > 0 {
		t.Fatalf("check: %v", r.Damages)
	}
}

// Follow waits until the store, which looks at the clock every tenth of a second, has seen its
// time.
func (s *Store) Follow(t drivetest.TB, clock *drivetest.Clock) {
	t.Helper()
	drivetest.Eventually(t, "the store sees the time of the clock", func() bool {
		return !s.Now().Before(clock.Now())
	})
}

// Pass moves the clock, and the store follows.
func (s *Store) Pass(t drivetest.TB, clock *drivetest.Clock, d time.Duration) {
	t.Helper()
	clock.Advance(d)
	s.Follow(t, clock)
}

// Passing returns a function that does Pass.
func (s *Store) Passing(t drivetest.TB, clock *drivetest.Clock) func(time.Duration) {
	return func(d time.Duration) { s.Pass(t, clock, d) }
}
