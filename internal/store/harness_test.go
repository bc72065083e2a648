package store

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"go.uber.org/goleak"

	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/disk/datadir"
	"dalmatiner/internal/model/account"
	"dalmatiner/internal/model/metric"
	"dalmatiner/internal/write"
	"dalmatiner/internal/write/intake"
)

// An Open of pebble that fails leaves one goroutine behind.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		goleak.IgnoreTopFunction(
			"github.com/cockroachdb/pebble/v2.(*ConcurrencyLimitScheduler).periodicGranter"))
}

// Crash closes the store as a kill would leave it, but for what the operating
// system holds: nothing is sealed, flushed or synced.
func (s *Store) Crash() {
	_ = s.shutdown(false) // the log's last sync is part of what a crash may or may not keep
}

// epoch is where the tests' clock starts: a multiple of a chunk.
const epoch = 1_500_000_480

// testClock is a clock that only moves when told.
type testClock struct{ now atomic.Int64 }

func newTestClock() *testClock {
	c := &testClock{}
	c.now.Store(epoch * int64(time.Second))
	return c
}

func (c *testClock) Now() time.Time          { return time.Unix(0, c.now.Load()) }
func (c *testClock) advance(d time.Duration) { c.now.Add(int64(d)) }

// fataler is what *testing.T and *rapid.T have in common.
type fataler interface {
	Helper()
	Fatalf(format string, args ...any)
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

func mustSession(t fataler, s *Store, bucket string) *intake.Session {
	t.Helper()
	return mustSessionWith(t, s, bucket, write.Options{Stale: true})
}

func mustSessionWith(t fataler, s *Store, bucket string, how write.Options) *intake.Session {
	t.Helper()
	info, err := s.EnsureBucket(bucket)
	if err != nil {
		t.Fatalf("bucket: %v", err)
	}
	x, err := s.intake.NewSession(info, how)
	if err != nil {
		t.Fatalf("session: %v", err)
	}
	return x
}

func key(i int) []byte {
	k, err := metric.Key("series", fmt.Sprint(i))
	if err != nil {
		panic(err)
	}
	return k
}

func readAll(t fataler, s *Store, bucket string, series int, from int64, n int) []uint64 {
	t.Helper()
	info, err := s.BucketByName(bucket)
	if err != nil {
		t.Fatalf("bucket: %v", err)
	}
	dst := make([]uint64, n)
	if err := s.ReadWithStale(context.Background(), info, key(series), from, dst, nil); err != nil {
		t.Fatalf("read: %v", err)
	}
	return dst
}

// call is one call of a session in the model's history.
type call struct {
	series     int
	slot       int64
	words      []uint64 // 0 is an explicit unset point
	timestamps []uint64 // in a bucket with timestamps; nil is a plain write into it
}

func (w *call) send(x *intake.Session) {
	if w.timestamps != nil {
		w.sendTimestamped(x)
		return
	}
	if len(w.words) == 1 {
		x.Point(key(w.series), uint64(w.slot), w.words[0])
		return
	}
	var data []byte
	for _, v := range w.words {
		data = point.Append(data, v)
	}
	x.Points(key(w.series), uint64(w.slot), data)
}

// history is the naive truth: what was sent, in order.
type history struct {
	writes  []call
	points  []int // total points after each write
	commits []int // writes that had been sent at each commit, where the test has noted them
}

func (h *history) add(w call) {
	total := len(w.words)
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
		for i, v := range w.words {
			at := [2]int64{int64(w.series), w.slot + int64(i)}
			if v > point.Stale || v == point.Stale && m[at] == point.Unset {
				m[at] = v
			}
		}
	}
	return m
}

const (
	modelSeries = 6
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
	if whole, _ := h.around(int(counts.Received())); whole < acked {
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
	checkMinutes(t, s, info.ID, counts)
}

// checkMinutes: the minutes of a bucket sum to its total.
func checkMinutes(t fataler, s *Store, bucket uint64, total account.Counts) {
	t.Helper()
	var sum account.Counts
	for _, row := range s.Account().Minutes(bucket) {
		sum.Add(&row.Counts)
	}
	if sum != total {
		t.Fatalf("the minutes sum to %+v, the total is %+v", sum, total)
	}
}

func randWrite(r *rand.Rand, now int64) call {
	w := call{series: r.IntN(modelSeries), slot: now - int64(r.IntN(20))}
	n := 1
	switch r.IntN(12) {
	case 0:
		w.slot = now - int64(r.IntN(1400)) // late
	case 1:
		n = 1 + r.IntN(150)
		w.slot = now - int64(n) - int64(r.IntN(1000))
	case 2:
		n = 1 + r.IntN(20)
	}
	for range n {
		v := point.FromInt(int64(r.IntN(5)))
		switch r.IntN(10) {
		case 0:
			v = point.Unset
		case 1:
			v = point.FromFloat(float64(r.IntN(100)) / 4)
		case 2:
			v = point.Stale
		}
		w.words = append(w.words, v)
	}
	return w
}
