package store

import (
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"dalmatiner/internal/store/drivetest"
)

// closedBuckets leaves flushes of two buckets with closed windows, while merges
// fail as the rule has it.
func closedBuckets(t *testing.T, s *Store, clock *testClock, rule func()) {
	t.Helper()
	drivetest.SendNoise(t, s, "a", epoch, epoch+300)
	drivetest.SendNoise(t, s, "b", epoch, epoch+300)
	mustFlush(t, s)
	pass(s, clock, 12*time.Hour)
	drivetest.SendNoise(t, s, "a", epoch+12*3600, epoch+12*3600+10)
	drivetest.SendNoise(t, s, "b", epoch+12*3600, epoch+12*3600+10)
	rule() // before the flush asks for a merge
	mustFlush(t, s)
}

// mergedFiles returns the files of merges while none is under way.
func mergedFiles(t *testing.T, s *Store, fs vfs.FS) (files []string) {
	t.Helper()
	defer s.merges.Pause()()
	return drivetest.MergedFiles(t, fs)
}

// Wherever the second of two windows fails, nothing is lost and nothing is left
// of the merge: on a full disk further tries would fill it up. The next merge
// does it all.
func TestAFailedMergeLeavesNothing(t *testing.T) {
	t.Parallel()
	kinds := map[string]errorfs.OpKind{
		"create": errorfs.OpCreate, "write": errorfs.OpFileWrite, "sync": errorfs.OpFileSync,
		"rename": errorfs.OpRename, "sync of the directory": errorfs.OpOpenDir, "open": errorfs.OpOpen,
	}
	for name, kind := range kinds {
		t.Run(name, func(t *testing.T) {
			clock, mem := newTestClock(), vfs.NewMem()
			f := newFaults(mem)
			o := testOptions(f.FS, clock)
			fatals := fatal(&o)
			s := mustOpen(t, o)
			defer func() { s.Crash() }()
			closedBuckets(t, s, clock, func() {
				var first atomic.Pointer[string] // each merge writes other files: every second one fails
				f.Set(func(op errorfs.Op) error {
					if op.Kind != kind || !strings.Contains(op.Path, "/window") {
						return nil
					}
					if p := first.Load(); p == nil {
						first.Store(&op.Path)
						return nil
					} else if *p == op.Path && kind != errorfs.OpOpenDir {
						return nil
					}
					first.Store(nil)
					return errorfs.ErrInjected
				})
			})
			for range 3 {
				if _, err := s.Merge(t.Context()); !errors.Is(err, errorfs.ErrInjected) {
					t.Fatalf("merge: %v", err)
				}
				if files := mergedFiles(t, s, mem); len(files) > 0 {
					t.Fatalf("left: %v", files)
				}
			}
			f.Clear()
			if _, err := s.Merge(t.Context()); err != nil {
				t.Fatal(err)
			}
			if files := mergedFiles(t, s, mem); len(files) < 2 || fatals.Load() != 0 {
				t.Errorf("the next merge leaves %v, %d fatal errors", files, fatals.Load())
			}
			for _, bucket := range []string{"a", "b"} {
				if n := drivetest.MissingNoise(t, s, bucket, epoch, epoch+300); n != 0 {
					t.Errorf("%s: %d words are missing", bucket, n)
				}
			}
		})
	}
}

// smallDisk is a file system on a disk with so much space.
type smallDisk struct {
	vfs.FS
	free *atomic.Uint64
}

func (d smallDisk) GetDiskUsage(string) (vfs.DiskUsage, error) {
	return vfs.DiskUsage{AvailBytes: d.free.Load()}, nil
}

// A merge does not write into what storage.min_free holds for the log; what
// has expired is removed all the same.
func TestMergesKeepOffTheReserve(t *testing.T) {
	t.Parallel()
	clock, mem, free := newTestClock(), vfs.NewMem(), new(atomic.Uint64)
	free.Store(1 << 40)
	o := testOptions(smallDisk{mem, free}, clock)
	o.MinFree = 1 << 30
	s := mustOpen(t, o)
	defer func() { s.Crash() }()
	closedBuckets(t, s, clock, func() {})
	if _, err := s.Merge(t.Context()); err != nil {
		t.Fatal(err)
	}
	windows := mergedFiles(t, s, mem)
	pass(s, clock, 36*time.Hour)
	drivetest.SendNoise(t, s, "a", epoch+48*3600, epoch+48*3600+10)
	free.Store(1<<30 + 1000)
	mustFlush(t, s)
	if err := s.SetTTL("b", 3600); err != nil {
		t.Fatal(err)
	}
	_, err := s.Merge(t.Context())
	if err == nil || !strings.Contains(err.Error(), "storage.min_free is 1073741824") {
		t.Errorf("a merge without space: %v", err)
	}
	left := mergedFiles(t, s, mem)
	gone := slices.DeleteFunc(slices.Clone(windows), func(name string) bool {
		return slices.Contains(left, name)
	})
	if len(gone) == 0 {
		t.Errorf("the windows were %v and are %v, want those of b to go", windows, left)
	}
	free.Store(1 << 40)
	if _, err := s.Merge(t.Context()); err != nil {
		t.Error(err)
	}
	if n := drivetest.MissingNoise(t, s, "a", epoch, epoch+300); n != 0 {
		t.Errorf("%d words are missing", n)
	}
}
