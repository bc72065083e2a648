package store

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/model/account"
	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/store/drivetest"
	"dalmatiner/internal/store/flush"
)

// Buckets come and go, senders are refused and flushes run: nobody waits for
// ever, and every point is in the account of its bucket or of the deleted ones
// (I3).
func TestBucketsFlushesAndSendersDoNotBlock(t *testing.T) {
	s := mustOpen(t, testOptions(vfs.NewMem(), newTestClock()))
	defer s.Crash()
	var sent atomic.Uint64
	var all sync.WaitGroup
	for worker := range 3 {
		all.Go(func() {
			for i := range 150 {
				name := fmt.Sprintf("b%d-%d", worker, i%2)
				info, err := s.EnsureBucket(name)
				if err != nil {
					t.Error(err)
					return
				}
				x, err := s.NewSession(info)
				if errors.Is(err, buckets.ErrUnknown) {
					continue // deleted a moment ago
				}
				x.Point(key(i), epoch, point.FromInt(1))
				x.Point(key(i), epoch+1e6, point.FromInt(1)) // refused: future
				_ = s.DeleteBucket(fmt.Sprintf("b%d-%d", (worker+1)%3, i%2))
				if err := x.Close(); err != nil {
					t.Error(err)
				}
				sent.Add(2)
			}
		})
	}
	all.Go(func() {
		for range 60 {
			if _, err := s.Flush(context.Background()); err != nil {
				t.Error(err)
			}
		}
	})
	drivetest.Within(t, "the load", all.Wait)
	var received uint64
	for id, c := range s.Account().Totals() {
		if id != account.DeletedBuckets && s.buckets.ID(id) == nil {
			t.Errorf("bucket %d is deleted and has an account of its own: %+v", id, c)
		}
		received += c.ReceivedPoints()
	}
	if received != sent.Load() {
		t.Errorf("%d points sent, %d in the account", sent.Load(), received)
	}
}

// A change of a bucket whose record a flush lets the log forget is in the
// MANIFEST: the flush begins while the change waits for its fsync.
func TestABucketChangeBesideAFlushIsKept(t *testing.T) {
	changes := map[string]func(s *Store) error{
		"delete": func(s *Store) error { return s.DeleteBucket("b") },
		"ttl":    func(s *Store) error { return s.SetTTL("b", 1234) },
		"create": func(s *Store) error {
			_, err := s.CreateBucket(buckets.Info{Name: "new", Resolution: 1000, PPF: 1})
			return err
		},
	}
	for name, change := range changes {
		t.Run(name, func(t *testing.T) {
			mem := vfs.NewCrashableMem()
			f := newFaults(mem)
			o := testOptions(f.FS, newTestClock())
			s := mustOpen(t, o)
			for _, bucket := range []string{"b", "other"} {
				x := mustSession(t, s, bucket)
				x.Point(key(1), epoch, point.FromInt(1))
				if err := x.Close(); err != nil {
					t.Fatal(err)
				}
			}
			captured := func() bool { return s.columns.Unflushed.Len() == 0 }
			flushed := make(chan error, 1)
			var once sync.Once
			f.Set(func(op errorfs.Op) error {
				if strings.Contains(op.Path, "/wal/") &&
					(op.Kind == errorfs.OpFileSyncData || op.Kind == errorfs.OpFileSync) {
					once.Do(func() {
						go func() {
							_, err := s.Flush(context.Background())
							flushed <- err
						}()
						drivetest.Eventually(t, "the flush has taken what it writes", captured)
					})
				}
				return nil
			})
			if err := change(s); err != nil {
				t.Fatal(err)
			}
			if err := <-flushed; err != nil {
				t.Fatal(err)
			}
			want := s.Buckets()
			f.Clear()
			o.FS = mem.CrashClone(vfs.CrashCloneCfg{})
			s.Crash()
			s = mustOpen(t, o)
			defer s.Crash()
			if got := s.Buckets(); fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("buckets after the crash %+v, before %+v", got, want)
			}
		})
	}
}

// A replay that does not fit the memory flushes on its way; a crash right after
// it, or in the middle, still finds every record once.
func TestACrashAfterAFlushDuringReplay(t *testing.T) {
	// Not beside other tests: a flush must come while a replay runs.
	clock, r := newTestClock(), rand.New(rand.NewPCG(8, 8))
	fs := vfs.NewCrashableMem()
	o := testOptions(fs, clock)
	o.CachePoints = 60
	s := mustOpen(t, o)
	var h history
	for range 30 {
		sendSome(t, s, &h, r, clock)
		clock.Advance(40 * time.Second)
		s.clock.Advance()
	}
	if err := s.disk.Log.Sync(); err != nil {
		t.Fatal(err)
	}
	o.FS = fs.CrashClone(vfs.CrashCloneCfg{})
	s.Crash()
	o.FlushBytes, o.LateMemory = 256, 256
	flushes := 0
	for range 4 {
		fs = o.FS.(*vfs.MemFS)
		var midway *vfs.MemFS
		o.flushStep = func(step int) {
			if step == flush.StepLogTrimmed {
				flushes++
				midway = fs.CrashClone(vfs.CrashCloneCfg{})
			}
		}
		s = mustOpen(t, o)
		h.check(t, s, "b", len(h.writes))
		s.Crash()
		if midway == nil {
			midway = fs.CrashClone(vfs.CrashCloneCfg{})
		}
		o.FS = midway
	}
	if flushes == 0 {
		t.Error("no flush during a replay")
	}
	o.flushStep = func(int) {}
	s = mustOpen(t, o)
	defer s.Crash()
	h.check(t, s, "b", len(h.writes))
}

// A crash between catalogue and MANIFEST leaves names that the catalogue has
// and no segment: the next flush brings them, so that the catalogue can be lost.
func TestNamesAheadOfTheirSegmentAreWrittenAgain(t *testing.T) {
	clock, r := newTestClock(), rand.New(rand.NewPCG(2, 8))
	fs := vfs.NewCrashableMem()
	o := testOptions(fs, clock)
	var clone *vfs.MemFS
	o.flushStep = func(step int) {
		if step == flush.StepCatalogue {
			clone = fs.CrashClone(vfs.CrashCloneCfg{})
		}
	}
	s := mustOpen(t, o)
	if _, err := s.EnsureBucket("b"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Flush(context.Background()); err != nil {
		t.Fatal(err)
	}
	var h history
	sendSome(t, s, &h, r, clock)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	o.FS, o.flushStep = clone, func(int) {}
	s = mustOpen(t, o)
	if err := s.Close(); err != nil { // trims the log
		t.Fatal(err)
	}
	if err := clone.RemoveAll("/data/catalogue"); err != nil {
		t.Fatal(err)
	}
	s = mustOpen(t, o)
	defer s.Crash()
	h.check(t, s, "b", len(h.writes))
}

// Without a MANIFEST the segments are taken in with the buckets of the newest:
// what was deleted stays deleted, also under a name that was used again, and
// the next start knows them still.
func TestALostManifestBringsNothingBack(t *testing.T) {
	mem := vfs.NewMem()
	o := testOptions(mem, newTestClock())
	s := mustOpen(t, o)
	put := func(bucket string, v int64) {
		t.Helper()
		x := mustSession(t, s, bucket)
		x.Point(key(1), epoch, point.FromInt(v))
		if err := x.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Flush(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	put("again", 1)
	put("gone", 2)
	for _, name := range []string{"again", "gone"} {
		if err := s.DeleteBucket(name); err != nil {
			t.Fatal(err)
		}
	}
	put("again", 3)
	want := s.Buckets()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	// The log has been trimmed: nothing in it says what became of the buckets.
	if err := errors.Join(mem.Remove("/data/MANIFEST"), mem.RemoveAll("/data/wal")); err != nil {
		t.Fatal(err)
	}
	for start := range 3 {
		s = mustOpen(t, o)
		if got := s.Buckets(); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("start %d: buckets %+v, want %+v", start, got, want)
		} else if got := readAll(t, s, "again", 1, epoch, 1)[0]; got != point.FromInt(3) {
			t.Errorf("start %d: read %x", start, got)
		}
		s.Crash()
	}
	s = mustOpen(t, o)
	defer s.Crash()
	info, err := s.EnsureBucket("gone")
	if err != nil || info.ID <= want[0].ID {
		t.Errorf("a new bucket has id %d, %v: ids up to %d were given", info.ID, err, want[0].ID)
	}
}

// Every use after Close is an error and none a panic: an HTTP request may be
// under way for longer than the node waits.
func TestUseAfterClose(t *testing.T) {
	s := mustOpen(t, testOptions(vfs.NewMem(), newTestClock()))
	x := mustSession(t, s, "b")
	x.Point(key(1), epoch, point.FromInt(1))
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
	info, _ := s.BucketByName("b")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Flush(context.Background()); !errors.Is(err, ErrClosed) {
		t.Errorf("flush: %v", err)
	}
	if _, err := s.CreateBucket(buckets.Info{Name: "x", Resolution: 1, PPF: 1}); err == nil {
		t.Error("a bucket was created")
	}
	if err := s.DeleteBucket("b"); err == nil {
		t.Error("a bucket was deleted")
	}
	if err := s.Read(context.Background(), info, key(1), epoch, make([]uint64, 10)); !errors.Is(err,
		ErrClosed) {
		t.Errorf("read: %v", err)
	}
	_ = s.Stats()
}

// A clock that is set back by a day keeps neither blocks open nor flushes away.
func TestAClockSetBackStillSealsAndFlushes(t *testing.T) {
	clock := newTestClock()
	s := mustOpen(t, testOptions(vfs.NewMem(), clock))
	defer s.Crash()
	x := mustSession(t, s, "b")
	x.Point(key(1), epoch, point.FromInt(1))
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
	clock.Advance(-24 * time.Hour)
	s.clock.Advance()
	for range 14 {
		clock.Advance(time.Minute)
		s.clock.Advance()
		s.upkeep.EverySecond()
	}
	drivetest.Eventually(t, "the point is in a segment", func() bool {
		s.upkeep.EverySecond()
		return s.Stats().Segments.Points == 1
	})
}
