package store

import (
	"errors"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/disk/datadir"
	"dalmatiner/internal/disk/manifest"
	"dalmatiner/internal/model/account"
	"dalmatiner/internal/store/drivetest"
)

// noRoomFor makes the disk full for what is written below a path, and leaves it as it is
// for the rest: GetDiskUsage says nothing of it, as with a quota.
func noRoomFor(parts ...string) func(errorfs.Op) error {
	kinds := []errorfs.OpKind{errorfs.OpCreate, errorfs.OpFileWrite, errorfs.OpFileWriteAt,
		errorfs.OpFilePreallocate}
	return func(op errorfs.Op) error {
		if slices.Contains(kinds, op.Kind) && slices.ContainsFunc(parts, func(p string) bool {
			return strings.HasPrefix(op.Path, p)
		}) {
			return syscall.ENOSPC
		}
		return nil
	}
}

// A MANIFEST without room for an edit, whether or not a copy of it waits for its repair,
// ends nothing: flushes, merges and deletions fail as if they had not been, points are
// refused, reads go on. With room all of it goes on by itself.
func TestAManifestWithoutRoom(t *testing.T) {
	t.Parallel()
	t.Run("running", func(t *testing.T) { testManifestWithoutRoom(t, false) })
	t.Run("before a repair", func(t *testing.T) { testManifestWithoutRoom(t, true) })
}

func testManifestWithoutRoom(t *testing.T, repair bool) {
	clock, mem := newTestClock(), vfs.NewCrashableMem()
	f := newFaults(mem)
	o := testOptions(f.FS, clock)
	byHand(&o)
	fatals := fatal(&o)
	s := mustOpen(t, o)
	defer func() { s.Crash() }()
	drivetest.FlushToMerge(t, s, passing(s, clock))
	if repair {
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		flipByte(t, mem, "/data/MANIFEST.2", fileSize(t, mem, "/data/MANIFEST.2")-3)
		f.Set(noRoomFor("/data/MANIFEST"))
		s = mustOpen(t, o)
	}
	from := int64(epoch + 13*3600)
	pass(s, clock, 2*time.Hour)
	drivetest.SendNoise(t, s, "a", from, from+60)
	f.Set(noRoomFor("/data/MANIFEST"))
	nothingWritten(t, s, mem)
	x := mustSession(t, s, "a")
	x.Point(key(1), uint64(from+60), point.FromInt(1))
	if err := x.Close(); err != nil || x.Totals().Refused != 1 {
		t.Errorf("a point is not refused: %+v, %v", x.Totals(), err)
	}
	read := func(when string) {
		t.Helper()
		if n := drivetest.MissingNoise(t, s, "a", epoch, epoch+1440) +
			drivetest.MissingNoise(t, s, "a", from, from+60); n != 0 {
			t.Fatalf("%s: %d words are missing", when, n)
		}
		if n := fatals.Load(); n != 0 {
			t.Fatalf("%s: the store ended: %v", when, s.pressure.Failure())
		}
	}
	read("without room")
	crashed := mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 0})
	f.Clear()
	drivetest.Eventually(t, "points are taken again", func() bool { return !s.Stats().DiskFull })
	read("with room")
	if r, err := s.Merge(t.Context()); err != nil || r.Removed == 0 {
		t.Fatalf("a merge with room: %+v, %v", r, err)
	}
	read("merged")
	if counts := s.Account().Total(mustBucket(t, s, "a")); counts.Refused[account.DiskFull] != 1 {
		t.Errorf("%+v", counts)
	}
	s.Crash()
	for _, fs := range []vfs.FS{crashed, mem} {
		o.FS = fs
		s = mustOpen(t, o)
		n := drivetest.MissingNoise(t, s, "a", epoch, epoch+1440)
		if n != 0 || len(s.Account().Losses()) > 0 {
			t.Fatalf("opened again: %d words are missing, lost %v", n, s.Account().Losses())
		}
		s.Crash()
	}
	s = mustOpen(t, o)
}

// nothingWritten wants flushes and merges refused, and nothing left of them.
func nothingWritten(t *testing.T, s *Store, mem *vfs.MemFS) {
	t.Helper()
	segments := s.Stats().Segments.Count
	for range 2 {
		if _, err := s.Flush(t.Context()); !errors.Is(err, manifest.ErrUnwritten) {
			t.Fatalf("a flush: %v", err)
		}
		if _, err := s.Merge(t.Context()); !errors.Is(err, manifest.ErrUnwritten) {
			t.Fatalf("a merge: %v", err)
		}
	}
	s.flusher.Gate().Lock() // a flush of the store's own may be under way
	defer s.flusher.Gate().Unlock()
	if files := mergedFiles(t, s, mem); len(files) > 0 || s.Stats().Segments.Count != segments {
		t.Errorf("left: %v, %d segments", files, s.Stats().Segments.Count)
	}
	if names, err := mem.List(s.path(datadir.Flush)); err != nil || int64(len(names)) != segments {
		t.Errorf("%d segments, and in flush %v, %v", segments, names, err)
	}
}

// A disk with 0 bytes free at a start, with and without the files that a log begins with:
// it starts, serves all there is, refuses points, and takes them when there is room,
// without a restart.
func TestAStartWithNothingFree(t *testing.T) {
	t.Parallel()
	for _, lost := range []string{"nothing", "LAST", "the log", "a copy of the MANIFEST"} {
		t.Run(lost, func(t *testing.T) {
			clock, mem := newTestClock(), vfs.NewMem()
			q := &quota{FS: mem, size: 64 << 20}
			o := testOptions(q, clock)
			o.MinFree, o.WALMaxSize, o.WALInterval = 1<<20, 4<<20, time.Millisecond
			fatals := fatal(&o)
			s := mustOpen(t, o)
			defer func() { s.Crash() }()
			drivetest.SendNoise(t, s, "a", epoch, epoch+300)
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			switch lost {
			case "LAST":
				if err := mem.Remove("/data/wal/LAST"); err != nil {
					t.Fatal(err)
				}
			case "the log":
				if err := mem.RemoveAll("/data/wal"); err != nil {
					t.Fatal(err)
				}
			case "a copy of the MANIFEST":
				flipByte(t, mem, "/data/MANIFEST", 30)
			}
			q.reserved.Clear()
			q.others.Store(q.size - q.used())
			s = mustOpen(t, o)
			for range 3 {
				s.upkeep.EverySecond() // what is tried every second ends nothing
				_, _ = s.Flush(t.Context())
			}
			x := mustSession(t, s, "a")
			x.Point(key(0), epoch+300, point.FromInt(1))
			if err := x.Close(); err != nil || x.Totals().Refused != 1 {
				t.Errorf("a point is not refused: %+v, %v", x.Totals(), err)
			}
			if n := drivetest.MissingNoise(t, s, "a", epoch, epoch+300); n != 0 || fatals.Load() != 0 {
				t.Fatalf("%d words are missing, %d fatal errors: %v", n, fatals.Load(), s.pressure.Failure())
			}
			q.others.Store(0)
			drivetest.Eventually(t, "points are taken again", func() bool { return !s.Stats().DiskFull })
			drivetest.SendNoise(t, s, "a", epoch+301, epoch+400)
			mustFlush(t, s)
			if n := fatals.Load(); n != 0 {
				t.Fatalf("the store ended: %v", s.pressure.Failure())
			}
			s.Crash()
			s = mustOpen(t, o)
			if n := drivetest.MissingNoise(t, s, "a", epoch, epoch+300) +
				drivetest.MissingNoise(t, s, "a", epoch+301, epoch+400); n != 0 {
				t.Errorf("%d words are missing after a restart", n)
			}
		})
	}
}
