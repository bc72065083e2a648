package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"dalmatiner/internal/disk/datadir"
	"dalmatiner/internal/disk/manifest"
	"dalmatiner/internal/model/account"
	"dalmatiner/internal/store/compaction"
	"dalmatiner/internal/store/drivetest"
)

func pass(s *Store, clock *testClock, d time.Duration) {
	clock.Advance(d)
	s.clock.Advance()
}

// passing returns a function that moves the clock on, and the store follows.
func passing(s *Store, clock *testClock) func(time.Duration) {
	return func(d time.Duration) { pass(s, clock, d) }
}

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

// mergedFiles returns what is in the directories of merges while none is under
// way.
func mergedFiles(t *testing.T, s *Store, fs vfs.FS) (files []string) {
	t.Helper()
	defer s.merges.Pause()()
	for _, kind := range []manifest.Kind{manifest.Window, manifest.Overlay} {
		names, err := fs.List("/data/" + datadir.SegmentDirs[kind])
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			files = append(files, datadir.SegmentDirs[kind]+"/"+name)
		}
	}
	return files
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

// A flush in which a window met damage is set aside when it goes, also when
// that is later, after a restart, and nothing more is read of the damaged part.
func TestADamagedSourceIsSetAside(t *testing.T) {
	t.Parallel()
	for _, restart := range []bool{false, true} {
		t.Run(fmt.Sprintf("restart=%v", restart), func(t *testing.T) { testDamagedSource(t, restart) })
	}
}

func testDamagedSource(t *testing.T, restart bool) {
	clock, mem := newTestClock(), vfs.NewMem()
	o := testOptions(mem, clock)
	// A merge or a flush of the store's own would take the points out of the
	// segment that is damaged, or leave only some of them in it.
	byHand(&o)
	s := mustOpen(t, o)
	defer func() { s.Crash() }()
	drivetest.SendNoise(t, s, "a", epoch, epoch+60)
	mustFlush(t, s)
	pass(s, clock, 12*time.Hour)
	drivetest.SendNoise(t, s, "a", epoch+60, epoch+660) // fills the first blocks
	drivetest.SendNoise(t, s, "a", epoch+12*3600, epoch+12*3600+1)
	drivetest.SendNoise(t, s, "b", epoch+12*3600, epoch+12*3600+600) // still open
	flushed := drivetest.Flush(t, s)
	flipByte(t, mem, s.path(flushed), 100)
	if _, err := s.Merge(t.Context()); err != nil {
		t.Fatal(err)
	}
	if names, n := s.Damage(); n == 0 || !strings.Contains(strings.Join(names, " "), flushed) {
		t.Fatalf("%d damages: %v, want %s", n, names, flushed)
	}
	if restart {
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		s = mustOpen(t, o)
	}
	pass(s, clock, 12*time.Hour)
	for _, bucket := range []string{"a", "b"} {
		drivetest.SendNoise(t, s, bucket, epoch+24*3600, epoch+24*3600+1)
	}
	mustFlush(t, s)
	if _, err := s.Merge(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := mem.Stat(s.path(flushed)); err == nil {
		t.Fatalf("%s is still there", flushed)
	}
	if _, err := mem.Stat(s.path(datadir.LostFound, mem.PathBase(flushed))); err != nil {
		t.Errorf("it was not set aside: %v", err)
	}
	missing := drivetest.MissingNoise(t, s, "a", epoch, epoch+660) +
		drivetest.MissingNoise(t, s, "a", epoch+12*3600, epoch+12*3600+1)
	lost := s.Account().Lost()
	if missing == 0 ||
		!slices.Equal(lost, []account.Loss{{Cause: compaction.LostBlocks, Points: uint64(missing)}}) {
		t.Errorf("%d words are missing, the account says %+v", missing, lost)
	}
	if n := drivetest.MissingNoise(t, s, "b", epoch+12*3600, epoch+12*3600+600); n != 0 {
		t.Errorf("%d words of the undamaged part are missing", n)
	}
}

// sendHour writes two points a minute.
func sendHour(t *testing.T, s *Store, bucket string, hour int64) {
	t.Helper()
	x := mustSession(t, s, bucket)
	for slot := epoch + hour*3600; slot < epoch+(hour+1)*3600; slot += 30 {
		for series := range 3 {
			x.Point(key(series), uint64(slot), noise(series, slot))
		}
	}
	if err := x.Close(); err != nil {
		t.Error(err)
	}
}

// Readers beside merges, deletions and a changing TTL find every point of the
// bucket that stays, and Close ends a merge under way.
func TestReadersBesideMerges(t *testing.T) {
	t.Parallel()
	clock, mem := newTestClock(), vfs.NewMem()
	s := mustOpen(t, testOptions(mem, clock))
	var sent atomic.Int64 // hours
	done := make(chan struct{})
	var readers sync.WaitGroup
	pass(s, clock, time.Hour)
	sendHour(t, s, "a", 0)
	sent.Store(1)
	for series := range 2 {
		readers.Go(func() {
			for {
				n := sent.Load() * 3600
				for i, got := range readAll(t, s, "a", series, epoch, int(n)) {
					if i%30 == 0 && got != noise(series, epoch+int64(i)) {
						t.Errorf("series %d slot %d of %d holds %x beside a merge", series, i, n, got)
						return
					}
				}
				select {
				case <-done:
					return
				default:
				}
			}
		})
	}
	for hour := int64(1); hour < 36; hour++ {
		pass(s, clock, time.Hour)
		sendHour(t, s, "a", hour)
		sendHour(t, s, "gone", hour)
		sent.Store(hour + 1)
		mustFlush(t, s) // merges in the background
		switch hour % 5 {
		case 2:
			if err := s.SetTTL("gone", hour*100); err != nil {
				t.Error(err)
			}
		case 4:
			if err := s.DeleteBucket("gone"); err != nil {
				t.Error(err)
			}
		}
		if hour%7 == 0 {
			if _, err := s.Merge(context.Background()); err != nil {
				t.Error(err)
			}
		}
	}
	close(done)
	readers.Wait()
	within(t, "Close", func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	if _, n := s.Damage(); n != 0 {
		t.Errorf("%d damages", n)
	}
}
