package store

import (
	"bytes"
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"pgregory.net/rapid"

	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/model/account"
	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/store/drivetest"
	"dalmatiner/internal/store/fsck"
	"dalmatiner/internal/write/intake"
)

const second = uint64(time.Second)

// timestampsAt returns the timestamp of the last set word of every (series, slot) after
// n writes.
func (h *history) timestampsAt(n int) map[[2]int64]uint64 {
	m := make(map[[2]int64]uint64)
	for _, w := range h.writes[:n] {
		for i, v := range w.Words {
			slot := w.Slot + int64(i)
			at := [2]int64{int64(w.Series), slot}
			switch _, there := m[at]; {
			case v == point.Unset, v == point.Stale && there:
			case w.Timestamps == nil, v == point.Stale:
				m[at] = uint64(slot) * second
			default:
				m[at] = w.Timestamps[i]
			}
		}
	}
	return m
}

// checkTimestamps compares every value with its timestamp with the first n writes.
func (h *history) checkTimestamps(t fataler, s *Store, info buckets.Info, n int) {
	t.Helper()
	words, timestamps := h.state(n), h.timestampsAt(n)
	gotWords, gotTimestamps := make([]uint64, modelSlots), make([]uint64, modelSlots)
	for series := range modelSeries {
		if err := s.ReadWithStale(context.Background(), info, key(series), modelFrom, gotWords,
			gotTimestamps); err != nil {
			t.Fatalf("read: %v", err)
		}
		for i := range gotWords {
			at := [2]int64{int64(series), modelFrom + int64(i)}
			if gotWords[i] != words[at] || gotTimestamps[i] != timestamps[at] {
				t.Fatalf("series %d slot %d (epoch%+d) holds %x at %d, want %x at %d",
					series, at[1], at[1]-epoch, gotWords[i], gotTimestamps[i], words[at], timestamps[at])
			}
		}
	}
}

// randTimestamped is a random write into a bucket with timestamps: most of it
// timestamped near the slot, some of it days off, and some of it plain.
func randTimestamped(r *rand.Rand, now int64) call {
	w := drivetest.RandCall(r, now)
	if r.IntN(8) == 0 {
		return w
	}
	for i := range w.Words {
		timestamp := uint64(w.Slot+int64(i))*second + uint64(r.IntN(int(second)))
		switch r.IntN(12) {
		case 0:
			timestamp -= uint64(r.Int64N(416 * 24 * 3600 * 1e9))
		case 1:
			timestamp += uint64(r.Int64N(416 * 24 * 3600 * 1e9))
		}
		w.Timestamps = append(w.Timestamps, timestamp)
	}
	return w
}

// sendTimestamped sends some random writes, by batches of one slot too: adjacent
// series in one run.
func (h *history) sendTimestamped(t fataler, s *Store, r *rand.Rand, clock *testClock) {
	x := mustSession(t, s, "b")
	for range 1 + r.IntN(40) {
		now := min(clock.Now().Unix(), epoch+1400) // where the model looks
		if r.IntN(3) > 0 {
			w := randTimestamped(r, now)
			w.Send(x)
			h.add(w)
			continue
		}
		slot := now - int64(r.IntN(30))
		for series := r.IntN(3); series < modelSeries; series++ {
			w := randTimestamped(r, now)
			w.Series, w.Slot, w.Words = series, slot, w.Words[:1]
			w.Timestamps = []uint64{uint64(slot)*second + uint64(r.IntN(int(second)))}
			w.Send(x)
			h.add(w)
		}
	}
	if err := x.Close(); err != nil {
		t.Fatalf("session: %v", err)
	}
}

// Random streams with timestamps, flushes, merges, restarts and crashes: a value
// and its timestamp are there together or not at all (I1, I2), and the account
// counts them as one point (I3).
func TestTimestampsStayWithTheirValues(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 11))
		l := newLived(t, r, func(o *Options) {
			o.FlushBytes = int64(rapid.SampledFrom([]int{1 << 10, 64 << 20}).Draw(t, "flush bytes"))
			o.WALMaxSize = rapid.SampledFrom([]int64{8 << 10, 1 << 30}).Draw(t, "wal.max_size")
		})
		defer func() { l.s.Crash() }()
		drivetest.TimestampedBucket(t, l.s)
		crashed := false
		for range rapid.IntRange(1, 20).Draw(t, "steps") {
			step := rapid.SampledFrom([]string{"send", "send", "send", "tick", "flush", "hours", "merge",
				"crash", "reopen"}).Draw(t, "step")
			crashed = crashed || step == "crash"
			switch {
			case l.step(step):
			case step == "send":
				l.h.sendTimestamped(t, l.s, r, l.clock)
			case step == "hours": // that close windows
				pass(l.s, l.clock, 6*time.Hour)
				x := mustSession(t, l.s, "b")
				w := call{Slot: l.clock.Now().Unix(), Words: []uint64{point.FromInt(1)}}
				w.Send(x)
				l.h.add(w)
				if err := x.Close(); err != nil {
					t.Fatalf("session: %v", err)
				}
			case step == "merge":
				l.step("flush")
				if _, err := l.s.Merge(context.Background()); err != nil {
					t.Fatalf("merge: %v", err)
				}
			}
			l.check()
		}
		if !crashed { // unsynced holes in the log are what a check calls damage
			mustBeSound(t, l.s)
		}
	})
}

func mustBeSound(t fataler, s *Store) {
	t.Helper()
	r, err := NewOperations(s).Check(context.Background(), fsck.Options{})
	if err != nil || r.Damaged > 0 {
		t.Fatalf("check: %v, %v", err, r.Damages)
	}
}

// Nobody sees that a metric is two series: names, counts of series and of
// points are those of metrics, before and after flush, merge, restart and the
// loss of the catalogue.
func TestTimestampsAreNoSeries(t *testing.T) {
	t.Parallel()
	clock := newTestClock()
	o := testOptions(vfs.NewMem(), clock)
	s := mustOpen(t, o)
	defer func() { s.Crash() }()
	info := drivetest.TimestampedBucket(t, s)
	const metrics, slots = 200, 50
	sendNanos(t, s, metrics, slots)
	wantMetrics(t, s, info, metrics, metrics*slots)
	f, err := s.Flush(context.Background())
	if err != nil || f.Points != metrics*slots || f.Series != metrics {
		t.Fatalf("the flush wrote %d points of %d series: %v", f.Points, f.Series, err)
	}
	clock.Advance(48 * time.Hour)
	s.clock.Advance()
	x := mustSession(t, s, "b") // what closes the windows
	x.TimestampedPoint(key(0), uint64(clock.Now().Unix()), point.FromInt(1),
		uint64(clock.Now().UnixNano()))
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
	mustFlush(t, s)
	if _, err := s.Merge(context.Background()); err != nil {
		t.Fatal(err)
	}
	if n := s.Stats().Merges.Count; n == 0 {
		t.Fatal("nothing was merged")
	}
	if n := s.Stats().Segments.Points; n != metrics*slots+1 {
		t.Fatalf("the segments hold %d points, want %d", n, metrics*slots+1)
	}
	list, err := NewOperations(s).Segments(context.Background(), "")
	if err != nil {
		t.Fatal(err)
	}
	for _, seg := range list {
		if seg.Series > metrics {
			t.Fatalf("%s holds %d series, there are %d", seg.File, seg.Series, metrics)
		}
	}
	mustBeSound(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := o.FS.RemoveAll("/data/catalogue"); err != nil {
		t.Fatal(err)
	}
	s = mustOpen(t, o)
	wantMetrics(t, s, info, metrics, metrics*slots+1)
	values, timestamps := make([]uint64, slots), make([]uint64, slots)
	for i := range metrics {
		if err := s.ReadTimestamped(context.Background(), info, key(i), epoch, values,
			timestamps); err != nil {
			t.Fatal(err)
		}
		for slot := range slots {
			if values[slot] != point.FromInt(int64(i)) ||
				timestamps[slot] != uint64(epoch+slot)*second+uint64(i) {
				t.Fatalf("metric %d slot %d holds %x at %d", i, slot, values[slot], timestamps[slot])
			}
		}
	}
}

// sendNanos sends a value and a timestamp that tell the metric, from the epoch on.
func sendNanos(t *testing.T, s *Store, metrics, slots int) {
	t.Helper()
	x := mustSession(t, s, "b")
	for slot := uint64(epoch); slot < uint64(epoch+slots); slot++ {
		for i := range metrics {
			x.TimestampedPoint(key(i), slot, point.FromInt(int64(i)), slot*second+uint64(i))
		}
	}
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
}

// wantMetrics compares the listing, the number of series and the account.
func wantMetrics(t *testing.T, s *Store, info buckets.Info, metrics int, points uint64) {
	t.Helper()
	seen := make(map[string]bool)
	if err := s.Metrics(context.Background(), info, nil, func(key []byte) bool {
		seen[string(key)] = true
		return true
	}); err != nil {
		t.Fatal(err)
	}
	for i := range metrics {
		if !seen[string(key(i))] {
			t.Fatalf("metric %d is not listed", i)
		}
	}
	if n := s.BucketStats(info.ID).Series; len(seen) != metrics || n != int64(metrics) {
		t.Fatalf("%d metrics are listed, %d counted, want %d", len(seen), n, metrics)
	}
	if c := s.Account().Total(info.ID); c.Accepted != points || c.ReceivedPoints() != points {
		t.Fatalf("the account holds %+v, want %d points", c, points)
	}
}

// countedSend is what is sent into a bucket with timestamps, and how its points are counted.
type countedSend struct {
	send func(x *intake.Session)
	want account.Counts
}

func countedSends() map[string]countedSend {
	const far = 418 * 24 * 3600 * second
	slot := uint64(epoch)
	begin := slot * second
	one, two := point.FromInt(1), point.FromInt(2)
	send := func(points ...[3]uint64) func(x *intake.Session) {
		return func(x *intake.Session) {
			for _, p := range points {
				x.TimestampedPoint(key(0), p[0], p[1], p[2])
			}
		}
	}
	entry := func(k []byte, slot uint64, words ...uint64) func(x *intake.Session) {
		var data []byte
		for _, w := range words {
			data = point.Append(data, w)
		}
		return func(x *intake.Session) { x.TimestampedPoints(k, slot, data) }
	}
	refused := func(c account.Counts, r account.Reason, n uint64) account.Counts {
		c.Refused[r] = n
		return c
	}
	return map[string]countedSend{
		"the same value and timestamp": {
			send([3]uint64{slot, one, begin + 5}, [3]uint64{slot, one, begin + 5}),
			account.Counts{Accepted: 1, Duplicate: 1}},
		"another timestamp": {
			send([3]uint64{slot, one, begin + 5}, [3]uint64{slot, one, begin + 6}),
			account.Counts{Accepted: 1, Conflicting: 1}},
		"another value": {
			send([3]uint64{slot, one, begin + 5}, [3]uint64{slot, two, begin + 5}),
			account.Counts{Accepted: 1, Conflicting: 1}},
		"unset with a timestamp": {
			send([3]uint64{slot, point.Unset, begin + 5}, [3]uint64{slot, point.Unset, 1}),
			account.Counts{Unset: 2}},
		"a timestamp of another year": {
			send([3]uint64{slot, one, begin + far}, [3]uint64{slot, one, begin - far},
				[3]uint64{slot, one, 0}), refused(account.Counts{}, account.BadTimestamp, 3)},
		"a slot of the future": {send([3]uint64{slot + 5000, one, begin}),
			refused(account.Counts{}, account.Future, 1)},
		"a slot beyond the timestamps": {send([3]uint64{1 << 60, one, begin}),
			refused(account.Counts{}, account.Future, 1)},
		"an undefined type": {send([3]uint64{slot, 3 << 56, begin}),
			refused(account.Counts{}, account.BadType, 1)},
		"an entry": {entry(key(0), slot, one, begin, two, begin+second+1, 0, 9),
			account.Counts{Accepted: 2, Unset: 1}},
		"an entry with a bad one": {entry(key(0), slot, one, begin, two, 7, 3<<56, 0, one, begin),
			refused(refused(account.Counts{Accepted: 2}, account.BadTimestamp, 1), account.BadType, 1)},
		"an entry into the future": {entry(key(0), slot+599, one, begin, one, begin, one, begin),
			refused(account.Counts{Accepted: 2}, account.Future, 1)},
		"an entry without a name": {entry(nil, slot, one, begin, one, begin),
			refused(account.Counts{}, account.EmptyName, 2)},
		"an entry beyond all slots": {entry(key(0), 1<<64-1, one, begin, one, begin),
			refused(account.Counts{}, account.Future, 2)},
		"plain": {func(x *intake.Session) {
			x.Point(key(0), slot, one)
			x.Points(key(0), slot, point.Append(point.Append(nil, one), two))
		}, account.Counts{Accepted: 2, Duplicate: 1}},
	}
}

// Every point with a timestamp is counted under what became of it.
func TestTimestampedPointsAreCounted(t *testing.T) {
	t.Parallel()
	for name, c := range countedSends() {
		t.Run(name, func(t *testing.T) {
			s := mustOpen(t, testOptions(vfs.NewMem(), newTestClock()))
			defer s.Crash()
			info := drivetest.TimestampedBucket(t, s)
			x := mustSession(t, s, "b")
			c.send(x)
			if err := x.Close(); err != nil {
				t.Fatal(err)
			}
			if got := s.Account().Total(info.ID); got != c.want {
				t.Errorf("counted %+v, want %+v", got, c.want)
			}
			if got := x.Totals(); got.Received != c.want.ReceivedPoints() ||
				got.Refused != c.want.RefusedTotal() {
				t.Errorf("totals %+v, want those of %+v", got, c.want)
			}
		})
	}
}

// A name of the greatest length fits a bucket with timestamps, and any name may
// stand beside any other: there are no names that belong to timestamps.
func TestAnyNameFitsABucketWithTimestamps(t *testing.T) {
	t.Parallel()
	fs, clock := vfs.NewCrashableMem(), newTestClock()
	o := testOptions(fs, clock)
	s := mustOpen(t, o)
	defer func() { s.Crash() }()
	info := drivetest.TimestampedBucket(t, s)
	names := [][]byte{{0}, {1}, {0, 0}, {1, 0}, bytes.Repeat([]byte{1}, 65535), []byte("x")}
	x := mustSession(t, s, "b")
	for i, name := range names {
		x.TimestampedPoint(name, epoch, point.FromInt(int64(i)), epoch*second+uint64(i))
	}
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.disk.Log.Sync(); err != nil {
		t.Fatal(err)
	}
	o.FS = fs.CrashClone(vfs.CrashCloneCfg{})
	s.Crash()
	s = mustOpen(t, o)
	for i, name := range names {
		var value, timestamp [1]uint64
		if err := s.ReadTimestamped(context.Background(), info, name, epoch, value[:],
			timestamp[:]); err != nil {
			t.Fatal(err)
		}
		if value[0] != point.FromInt(int64(i)) || timestamp[0] != epoch*second+uint64(i) {
			t.Errorf("name %d holds %x at %d", i, value[0], timestamp[0])
		}
	}
}
