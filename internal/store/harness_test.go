package store

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/disk/datadir"
	"dalmatiner/internal/store/drivetest"
	"dalmatiner/internal/store/fsck"
	"dalmatiner/internal/testkit/filetest"
	"dalmatiner/internal/write/intake"
)

func TestMain(m *testing.M) { drivetest.Main(m) }

// Names that the tests here have for what they share with those of the rooms.
type (
	testClock = drivetest.Clock
	fataler   = drivetest.TB
	call      = drivetest.Call
	faults    = filetest.Faults
)

const epoch = drivetest.Epoch

func newTestClock() *testClock { return drivetest.NewClock() }

func newFaults(fs vfs.FS) *faults { return filetest.NewFaults(fs) }

func key(i int) []byte { return drivetest.Key(i) }

func noise(series int, slot int64) uint64 { return drivetest.Noise(series, slot) }

func mustSession(t fataler, s *Store, bucket string) *intake.Session {
	t.Helper()
	return drivetest.Session(t, s, bucket)
}

func readAll(t fataler, s *Store, bucket string, series int, from int64, n int) []uint64 {
	t.Helper()
	return drivetest.Words(t, s, bucket, series, from, n)
}

func mustFlush(t fataler, s *Store) {
	t.Helper()
	drivetest.Flush(t, s)
}

func pass(s *Store, clock *testClock, d time.Duration) {
	clock.Advance(d)
	s.clock.Advance()
}

// passing returns a function that moves the clock on, and the store follows.
func passing(s *Store, clock *testClock) func(time.Duration) {
	return func(d time.Duration) { pass(s, clock, d) }
}

func mustCheck(t fataler, fs vfs.FS, dir string) fsck.Report {
	t.Helper()
	return drivetest.Check(t, fs, dir)
}

// Crash closes the store as a kill would leave it, but for what the operating
// system holds: nothing is sealed, flushed or synced.
func (s *Store) Crash() {
	_ = s.shutdown(false) // the log's last sync is part of what a crash may or may not keep
}

func testOptions(fs vfs.FS, clock *testClock) Options {
	o := DefaultOptions("/data")
	o.FS, o.Now = fs, clock.Now
	o.MinFree = 0
	o.WALInterval = time.Hour // the tests sync when they want to
	return o
}

// byHand makes a store flush and merge when the test says so only, however far its
// clock goes: for tests that handle its files, or count what is in them.
func byHand(o *Options) { o.BackgroundMerge, o.FlushInterval = false, math.MaxInt64 }

// atSteps has f called after the steps of the flushes and merges that begin from now
// on. Those of the store's own may be under way.
func atSteps(s *Store, f func(step int)) {
	defer s.merges.Pause()()
	s.flusher.Gate().Lock()
	defer s.flusher.Gate().Unlock()
	s.o.flushStep = f
}

// path is where a file of the directory lies.
func (s *Store) path(elem ...string) string {
	return s.o.FS.PathJoin(append([]string{s.o.Dir}, elem...)...)
}

// lostPath is where a segment goes that is set aside.
func (s *Store) lostPath(file string) string {
	return s.path(datadir.LostFound, s.o.FS.PathBase(file))
}

func mustOpen(t fataler, o Options) *Store {
	t.Helper()
	s, err := Open(o)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	return s
}

// fillRows opens a store, fills it with rows and syncs the log.
func fillRows(t fataler, o Options) *Store {
	t.Helper()
	s := mustOpen(t, o)
	drivetest.FillRows(t, s)
	if err := s.disk.Log.Sync(); err != nil {
		t.Fatalf("sync: %v", err)
	}
	return s
}

// history is the naive truth: what was sent, in order.
type history struct {
	writes  []call
	points  []int // total points after each write
	commits []int // writes that had been sent at each commit, where the test has noted them
}

func (h *history) add(w call) {
	total := len(w.Words)
	if n := len(h.points); n > 0 {
		total += h.points[n-1]
	}
	h.writes = append(h.writes, w)
	h.points = append(h.points, total)
}

// fork returns a history that begins with this one and leaves it as it is.
func (h *history) fork() *history {
	return &history{writes: slices.Clone(h.writes), points: slices.Clone(h.points),
		commits: slices.Clone(h.commits)}
}

// state returns the last value of every (series, slot) after n writes, or its stale marker.
func (h *history) state(n int) map[[2]int64]uint64 {
	m := make(map[[2]int64]uint64)
	for _, w := range h.writes[:n] {
		for i, v := range w.Words {
			at := [2]int64{int64(w.Series), w.Slot + int64(i)}
			if v > point.Stale || v == point.Stale && m[at] == point.Unset {
				m[at] = v
			}
		}
	}
	return m
}

const (
	modelSeries = drivetest.CallSeries
	modelFrom   = epoch - 1500
	modelSlots  = 3000
)

// check compares every slot of every series with the history, of which the acked
// first writes must be there.
func (h *history) check(t fataler, s *Store, bucket string, acked int) {
	t.Helper()
	info, err := s.BucketByName(bucket)
	if err != nil {
		if acked == 0 {
			return
		}
		t.Fatalf("%v after %d acknowledged writes", err, acked)
	}
	counts := s.Account().Total(info.ID)
	if whole, _ := h.around(int(counts.ReceivedPoints())); whole < acked {
		t.Fatalf("%d writes were durable, %d are in the account (I1)", acked, whole)
	}
	left := h.left(t, s, info)
	n := len(left.writes)
	want := left.state(n)
	for series := range modelSeries {
		for i, got := range readAll(t, s, bucket, series, modelFrom, modelSlots) {
			slot := modelFrom + int64(i)
			if w := want[[2]int64{int64(series), slot}]; got != w {
				t.Fatalf("series %d slot %d (epoch%+d) holds %x, want %x after %d of %d writes",
					series, slot, slot-epoch, got, w, n, len(h.writes))
			}
		}
	}
	if info.HPTS {
		left.checkTimestamps(t, s, info, n)
	}
	drivetest.CheckMinutes(t, s, info.ID, counts)
}
