package store

import (
	"dalmatiner/internal/store/drivetest"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// The matrix of what a device can refuse: files of every kind, operations of
// every kind, once and always, at a start and while the store runs.
var (
	eioFiles = map[string]string{ // a part of the path
		"LOCK": "/data/LOCK", "VERSION": "/data/VERSION", "MANIFEST": "/data/MANIFEST",
		"second copy": "/data/MANIFEST.2", "log": "/data/wal",
		"segments": "/data/flush", "windows": "/data/window", "overlays": "/data/overlay",
		"set aside": "/data/lost+found",
		"catalogue": "/data/catalogue", "table of the catalogue": ".sst",
		"MANIFEST of the catalogue": "/data/catalogue/MANIFEST",
		"marker of the catalogue":   "/data/catalogue/marker",
		"directory":                 "/data", // and everything below
	}
	eioOps = map[string][]errorfs.OpKind{
		"open":   {errorfs.OpOpen, errorfs.OpOpenDir},
		"create": {errorfs.OpCreate, errorfs.OpReuseForWrite},
		"read":   {errorfs.OpFileRead, errorfs.OpFileReadAt},
		"stat":   {errorfs.OpStat, errorfs.OpFileStat},
		"write":  {errorfs.OpFileWrite, errorfs.OpFileWriteAt, errorfs.OpFilePreallocate},
		"sync":   {errorfs.OpFileSync, errorfs.OpFileSyncData, errorfs.OpFileSyncTo, errorfs.OpFileFlush},
		"rename": {errorfs.OpRename}, "link": {errorfs.OpLink},
		"remove": {errorfs.OpRemove, errorfs.OpRemoveAll},
		"list":   {errorfs.OpList}, "mkdir": {errorfs.OpMkdirAll}, "lock": {errorfs.OpLock},
		"close": {errorfs.OpFileClose},
	}
)

// eioStore makes a directory in which files of most kinds are read by a start:
// segments, a window, tombstones, series that only the log has.
func eioStore(t *testing.T, clock *testClock) (*vfs.MemFS, *history) {
	t.Helper()
	mem := vfs.NewCrashableMem()
	o := testOptions(mem, clock)
	o.BackgroundMerge = false
	s := mustOpen(t, o)
	h, r := new(history), rand.New(rand.NewPCG(11, 5))
	sendSome(t, s, h, r, clock)
	mustFlush(t, s)
	sendSome(t, s, h, r, clock)
	mustFlush(t, s)
	if _, err := s.Merge(t.Context()); err != nil {
		t.Fatal(err)
	}
	sendSome(t, s, h, r, clock)
	if err := s.disk.Log.Sync(); err != nil {
		t.Fatal(err)
	}
	s.Crash()
	return mem, h
}

// eioRule fails the operations of a kind on files of a kind, always or the n-th
// time only, and counts how often it did.
func eioRule(f *faults, part string, kinds []errorfs.OpKind, only int32) *atomic.Int32 {
	var met, failed atomic.Int32
	f.Set(func(op errorfs.Op) error {
		for _, k := range kinds {
			if op.Kind == k && strings.Contains(op.Path, part) {
				if n := met.Add(1); only > 0 && n != only {
					return nil
				}
				failed.Add(1)
				return &injected{op.Path}
			}
		}
		return nil
	})
	return &failed
}

// injected is what a device says, as the system wraps it.
type injected struct{ path string }

func (e *injected) Error() string { return e.path + ": input/output error" }
func (e *injected) Unwrap() error { return syscall.EIO }

// checkServed: every slot holds what was sent or, where damage was named, nothing.
func (h *history) checkServed(t *testing.T, s *Store, what string) (missing int) {
	t.Helper()
	info, err := s.BucketByName("b")
	if err != nil {
		if _, n := s.Damage(); n == 0 {
			t.Errorf("%s: the bucket is gone without a word", what)
		}
		return 1
	}
	want := h.state(len(h.writes))
	sent := map[uint64]bool{}
	for _, w := range want {
		sent[w] = true
	}
	dst := make([]uint64, modelSlots)
	for series := range modelSeries {
		if err := s.ReadWithStale(t.Context(), info, key(series), modelFrom, dst, nil); err != nil {
			if !errors.Is(err, syscall.EIO) {
				t.Errorf("%s: read: %v", what, err)
			}
			continue
		}
		for i, got := range dst {
			if w := want[[2]int64{int64(series), modelFrom + int64(i)}]; got != w {
				if missing++; got != 0 && !h.wrote(series, modelFrom+int64(i), got) {
					t.Errorf("%s: series %d slot %d holds %x, which was never sent", what, series, i, got)
				}
			}
		}
	}
	if _, n := s.Damage(); missing > 0 && n == 0 && len(s.Account().Losses()) == 0 {
		t.Errorf("%s: %d points are missing without a word", what, missing)
	}
	return missing
}

// wrote reports whether a word was ever sent for a slot: where a newer segment
// cannot be read, the older one shows.
func (h *history) wrote(series int, slot int64, word uint64) bool {
	for _, w := range h.writes {
		if i := slot - w.Slot; w.Series == series && i >= 0 && i < int64(len(w.Words)) &&
			w.Words[i] == word {
			return true
		}
	}
	return false
}

// A start while the device refuses anything serves the rest, or says which file
// it was. Afterwards all is there but what was named and set aside.
func TestADeviceThatFailsAtAStart(t *testing.T) {
	t.Parallel()
	clock := newTestClock()
	origin, h := eioStore(t, clock)
	eachFault(t, 35, func(t *testing.T, part string, kinds []errorfs.OpKind) (met bool) {
		for only := int32(0); only < eioTimes() &&
			failAtAStart(t, clock, origin, h, part, kinds, only); only++ {
			met = true
		}
		return met
	})
}

// whole returns a copy of a file system with all that was written.
func whole(fs *vfs.MemFS) *vfs.MemFS {
	return fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: rand.New(rand.NewPCG(1, 1))})
}

// failAtAStart is one start with failures and one behind it. It reports whether
// there were any.
func failAtAStart(t *testing.T, clock *testClock, origin *vfs.MemFS, h *history, part string,
	kinds []errorfs.OpKind, only int32) bool {
	f := newFaults(whole(origin))
	o := testOptions(f.FS, clock)
	o.BackgroundMerge, o.Logger = false, slog.New(slog.NewTextHandler(io.Discard, nil))
	failed := eioRule(f, part, kinds, only)
	what := fmt.Sprintf("failure %d", only)
	s, err := Open(o)
	hit, named := failed.Load() > 0, false
	if err == nil {
		h.checkServed(t, s, what)
		_, n := s.Damage()
		named = n > 0
		f.Clear()
		s.Crash()
	} else if !strings.Contains(err.Error(), "/data") {
		t.Errorf("%s: the error names no file: %v", what, err)
	}
	f.Clear()
	if s, err = Open(o); err != nil {
		t.Errorf("%s: a start after it: %v", what, err)
		return false
	}
	if missing := h.checkServed(t, s, what+", after it"); missing > 0 {
		t.Errorf("%s: %d points are missing after it, named %t", what, missing, named)
	}
	if lost := s.Account().Losses(); len(lost) > 0 {
		t.Errorf("%s: nothing is lost, the account says %v", what, lost)
	}
	s.Crash()
	return hit
}

// eioTimes is how many failures are tried: always, the first, the second …
func eioTimes() int32 {
	if testing.Short() {
		return 2
	}
	return 3
}

// checkpoint reports whether a part of a path is that of the catalogue alone: of
// which nothing is lost, because it is rebuilt.
func checkpoint(part string) bool {
	return strings.Contains(part, "catalogue") || part == ".sst"
}

// eachFault runs fn for the cells of the matrix; it reports whether the operation
// was met. At least so many cells must have been.
func eachFault(t *testing.T, cells int,
	fn func(t *testing.T, part string, kinds []errorfs.OpKind) bool) {
	t.Helper()
	met := 0
	for file, part := range eioFiles {
		for name, kinds := range eioOps {
			t.Run(file+", "+name, func(t *testing.T) {
				if fn(t, part, kinds) {
					met++
				}
			})
		}
	}
	if met < cells {
		t.Errorf("%d cells of the matrix were met, want %d", met, cells)
	}
}

// A device that refuses anything while the store runs: what was acknowledged is
// there while it runs or after a restart, and nothing else is.
func TestADeviceThatFailsWhileRunning(t *testing.T) {
	t.Parallel()
	origin, h := eioStore(t, newTestClock())
	eachFault(t, 20, func(t *testing.T, part string, kinds []errorfs.OpKind) (met bool) {
		for only := int32(0); only < eioTimes() && failWhileRunning(t, origin, h.fork(), part, kinds,
			only); only++ {
			met = true
		}
		return met
	})
}

func failWhileRunning(t *testing.T, origin *vfs.MemFS, h *history, part string,
	kinds []errorfs.OpKind, only int32) bool {
	clock := newTestClock()
	f := newFaults(whole(origin))
	o := testOptions(f.FS, clock)
	o.BackgroundMerge, o.OnFatal = false, func(error) {}
	o.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
	s := mustOpen(t, o)
	x := mustSession(t, s, "b")
	r := rand.New(rand.NewPCG(3, uint64(only)))
	failed := eioRule(f, part, kinds, only)
	acked := len(h.writes)
	for range 3 {
		for range 20 {
			w := drivetest.RandCall(r, clock.Now().Unix())
			w.Send(x)
			h.add(w)
		}
		_, err := x.Commit()
		if err == nil {
			err = s.disk.Log.Sync()
		}
		if err == nil {
			acked = len(h.writes)
		} else {
			// Callers of the log hear of its end a moment before the store does.
			drivetest.Eventually(t, "the store has failed with its log", func() bool {
				return s.pressure.Failure() != nil
			})
		}
		_, flushErr := s.Flush(t.Context())
		_, mergeErr := s.Merge(t.Context())
		if s.pressure.Failure() == nil {
			h.checkServed(t, s, fmt.Sprintf("failure %d", only))
		} else if err := errors.Join(err, flushErr, mergeErr); err == nil ||
			!strings.Contains(err.Error(), "/data") {
			t.Errorf("failure %d: the store has failed and says %v", only, err)
		}
	}
	set, _ := s.Damage()
	f.Clear()
	s.Crash()
	s, err := Open(o)
	if err != nil {
		t.Fatalf("failure %d: a start after it: %v", only, err)
	}
	if len(set) == 0 || checkpoint(part) {
		h.check(t, s, "b", acked)
		if lost := s.Account().Losses(); len(lost) > 0 {
			t.Errorf("failure %d: nothing is lost, the account says %v", only, lost)
		}
	} else {
		h.checkServed(t, s, "after it")
	}
	s.Crash()
	return failed.Load() > 0
}
