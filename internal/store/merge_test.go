package store

import (
	"context"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"pgregory.net/rapid"

	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/disk/manifest"
	"dalmatiner/internal/host/durable"
	"dalmatiner/internal/store/drivetest"
	"dalmatiner/internal/store/flush"
	"dalmatiner/internal/store/reader"
)

const daySlots = 86400

// mergeModel is a bucket whose data goes on through days, and its truth.
type mergeModel struct {
	t     *rapid.T
	r     *rand.Rand
	clock *testClock
	o     Options
	s     *Store
	truth map[[2]int64]uint64
	from  int64 // first slot
}

// send writes a stretch of the present and some late points, and advances the
// clock to its end.
func (m *mergeModel) send(hours int) {
	x := mustSession(m.t, m.s, "b")
	now := m.clock.Now().Unix()
	put := func(series, slot int64) {
		v := point.FromInt(m.r.Int64N(100))
		x.Point(key(int(series)), uint64(slot), v)
		m.truth[[2]int64{series, slot}] = v
	}
	for slot := now; slot < now+int64(hours)*3600; slot += 1 + m.r.Int64N(600) {
		for series := range int64(3) {
			put(series, slot)
		}
		m.clock.Set((slot + 1) * int64(time.Second))
		m.s.clock.Advance()
	}
	for range m.r.IntN(6) {
		put(m.r.Int64N(3), m.from+m.r.Int64N(now-m.from+1))
	}
	if err := x.Close(); err != nil {
		m.t.Fatal(err)
	}
}

func (m *mergeModel) check() {
	m.t.Helper()
	past := m.clock.Now().Unix() + 3600
	for series := range int64(3) {
		for at := m.from; at < past; at += reader.MaxRead {
			n := int(min(reader.MaxRead, past-at))
			for i, got := range readAll(m.t, m.s, "b", int(series), at, n) {
				if want := m.truth[[2]int64{series, at + int64(i)}]; got != want {
					m.t.Fatalf("series %d slot %d holds %x, want %x", series, at+int64(i)-m.from, got, want)
				}
			}
		}
	}
}

func (m *mergeModel) flush() {
	m.t.Helper()
	if _, err := m.s.Flush(context.Background()); err != nil {
		m.t.Fatal(err)
	}
}

// Days of data with late points, flushed and merged at random, with crashes in
// the middle of merges: every point is there all the time.
func TestMergesKeepEveryPoint(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		fs := vfs.NewCrashableMem()
		m := &mergeModel{t: t, clock: newTestClock(), truth: make(map[[2]int64]uint64), from: epoch,
			r: rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 5))}
		m.o = testOptions(fs, m.clock)
		m.s = mustOpen(t, m.o)
		defer func() { m.s.Crash() }()
		m.send(1)
		for range rapid.IntRange(1, 12).Draw(t, "steps") {
			switch rapid.SampledFrom([]string{"send", "send", "flush", "merge", "crash", "reopen"}).Draw(t,
				"step") {
			case "send":
				m.send(1 + m.r.IntN(8))
				m.flush()
			case "flush":
				m.flush()
			case "merge":
				if _, err := m.s.Merge(context.Background()); err != nil {
					t.Fatal(err)
				}
			case "crash":
				m.flush()
				fs = m.crashInMerge(fs)
			case "reopen":
				if err := m.s.Close(); err != nil {
					t.Fatal(err)
				}
				m.s = mustOpen(t, m.o)
			}
			m.check()
		}
	})
}

// crashInMerge crashes right after the commit of a merge, or wherever it
// stands.
func (m *mergeModel) crashInMerge(fs *vfs.MemFS) *vfs.MemFS {
	cfg := vfs.CrashCloneCfg{UnsyncedDataPercent: m.r.IntN(101), RNG: m.r}
	var clone *vfs.MemFS
	if m.r.IntN(2) == 0 {
		atSteps(m.s, func(step int) {
			if step == flush.StepMerged && clone == nil {
				clone = fs.CrashClone(cfg)
			}
		})
	}
	if _, err := m.s.Merge(context.Background()); err != nil {
		m.t.Fatal(err)
	}
	resume := m.s.merges.Pause()
	if clone == nil {
		clone = fs.CrashClone(cfg)
	}
	resume()
	m.s.Crash()
	m.o.FS = clone
	m.s = mustOpen(m.t, m.o)
	return clone
}

// A few days end up as one window each; the flushes are gone, and a lost
// catalogue is still rebuilt: the merges carried the names on.
func TestMergesLeaveOneWindowADay(t *testing.T) {
	t.Parallel()
	fs := vfs.NewMem()
	clock := newTestClock()
	o := testOptions(fs, clock)
	byHand(&o)
	s := mustOpen(t, o)
	x := mustSession(t, s, "b")
	for slot := int64(epoch); slot < epoch+4*daySlots; slot += 60 {
		for series := range 3 {
			x.Point(key(series), uint64(slot), point.FromInt(slot%1000))
		}
		clock.Set(slot * int64(time.Second))
		s.clock.Advance()
		if (slot-epoch)%7200 == 0 {
			if _, err := x.Commit(); err != nil {
				t.Fatal(err)
			}
			if _, err := s.Flush(context.Background()); err != nil {
				t.Fatal(err)
			}
			if _, err := s.Merge(context.Background()); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
	kinds := map[manifest.Kind]int{}
	days := 0
	for _, seg := range s.versions.Latest().Segments {
		kinds[seg.Meta.Kind]++
		if seg.Meta.Kind == manifest.Window && seg.Meta.Ranges[0].Past-seg.Meta.Ranges[0].First == 120 {
			days++
		}
	}
	// The data touches five days. The first three are closed for long; the
	// fourth is, or is not yet, depending on when the last merge ran.
	if days < 3 || days > 4 || kinds[manifest.Flush] > 3 || len(s.versions.Latest().Segments) > 20 {
		t.Errorf("%d day windows, segments by kind %v", days, kinds)
	}
	s.Crash()
	if err := fs.RemoveAll("/data/catalogue"); err != nil {
		t.Fatal(err)
	}
	s = mustOpen(t, o)
	defer s.Crash()
	for series := range 3 {
		for at := int64(epoch); at < epoch+4*daySlots; at += daySlots {
			for i, w := range readAll(t, s, "b", series, at, daySlots) {
				want := point.Unset
				if i%60 == 0 {
					want = point.FromInt((at + int64(i)) % 1000)
				}
				if w != want {
					t.Fatalf("series %d slot %d holds %x, want %x", series, at+int64(i)-epoch, w, want)
				}
			}
		}
	}
}

// What a TTL has passed, and what a deleted bucket held, leaves the disk.
func TestMergesFreeWhatIsGone(t *testing.T) {
	t.Parallel()
	fs := vfs.NewMem()
	clock := newTestClock()
	o := testOptions(fs, clock)
	byHand(&o)
	s := mustOpen(t, o)
	defer func() { s.Crash() }()
	fill := func(bucket string) {
		x := mustSession(t, s, bucket)
		for slot := int64(epoch); slot < epoch+3*daySlots; slot += 5 {
			x.Point(key(0), uint64(slot), point.FromInt(slot*slot%1000003))
			clock.Set(max(clock.Now().UnixNano(), slot*int64(time.Second)))
			s.clock.Advance()
		}
		if err := x.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Flush(context.Background()); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Merge(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	fill("short")
	fill("gone")
	before := s.Stats().Segments.Bytes
	if err := s.SetTTL("short", 3600); err != nil {
		t.Fatal(err)
	}
	if err := s.DeleteBucket("gone"); err != nil {
		t.Fatal(err)
	}
	clock.Advance(24 * time.Hour)
	s.clock.Advance()
	fill("other") // something else goes on
	if _, err := s.Merge(context.Background()); err != nil {
		t.Fatal(err)
	}
	for _, seg := range s.versions.Latest().Segments {
		for _, r := range seg.Meta.Ranges {
			if b := s.buckets.ID(r.Bucket); b == nil || b.Name == "short" &&
				seg.Meta.Kind != manifest.Flush {
				t.Errorf("%s still holds chunks %d to %d of bucket %d", seg.Name(), r.First, r.Past, r.Bucket)
			}
		}
	}
	if after := s.Stats().Segments.Bytes; after > before {
		t.Errorf("%d bytes before, %d after", before, after)
	}
	names, err := fs.List("/data/window")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if strings.HasSuffix(name, ".tmp") {
			t.Errorf("%s was left", name)
		}
	}
}

// The last edit of the MANIFEST is damaged after its flush has trimmed the log:
// the segment is taken in, nothing is lost.
func TestADamagedLastEditLosesNothing(t *testing.T) {
	t.Parallel()
	fs := vfs.NewMem()
	clock := newTestClock()
	o := testOptions(fs, clock)
	s := mustOpen(t, o)
	r := rand.New(rand.NewPCG(4, 4))
	var h history
	for range 3 {
		sendSome(t, s, &h, r, clock)
		if _, err := s.Flush(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	want := h.state(len(h.writes))
	s.Crash()
	// The records of the log are gone as well.
	names, err := fs.List("/data/wal")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if err := fs.Remove("/data/wal/" + name); err != nil {
			t.Fatal(err)
		}
	}
	data, err := durable.ReadFile(fs, "/data/MANIFEST")
	if err != nil {
		t.Fatal(err)
	}
	flipByte(t, fs, "/data/MANIFEST", int64(len(data)-3))
	for range 2 {
		s = mustOpen(t, o)
		for series := range modelSeries {
			for i, got := range readAll(t, s, "b", series, modelFrom, modelSlots) {
				slot := modelFrom + int64(i)
				if w := want[[2]int64{int64(series), slot}]; got != w {
					t.Fatalf("series %d slot %d holds %x, want %x", series, slot, got, w)
				}
			}
		}
		s.Crash()
	}
}

// A window and an overlay that are cut into files keep every timestamp in the file of
// its value.
func TestCutFilesKeepTimestamps(t *testing.T) {
	t.Parallel()
	clock := newTestClock()
	o := testOptions(vfs.NewMem(), clock)
	o.maxMergedFile = 1 // every series has files of its own
	s := mustOpen(t, o)
	defer func() { s.Crash() }()
	info := drivetest.TimestampedBucket(t, s)
	const metrics, slots = 20, 50
	check := func(what string) {
		t.Helper()
		values, timestamps := make([]uint64, slots), make([]uint64, slots)
		for i := range metrics {
			if err := s.ReadTimestamped(t.Context(), info, key(i), epoch, values, timestamps); err != nil {
				t.Fatal(err)
			}
			for j := range values {
				if want := (uint64(epoch)+uint64(j))*second + uint64(i); values[j] != point.FromInt(int64(i)) ||
					timestamps[j] != want {
					t.Fatalf("%s: metric %d slot %d holds %x at %d, want it at %d", what, i, j, values[j],
						timestamps[j], want)
				}
			}
		}
	}
	for _, what := range []string{"a window", "an overlay"} {
		sendNanos(t, s, metrics, slots)
		pass(s, clock, 48*time.Hour)
		x := mustSession(t, s, "b") // what closes the windows
		x.Point(key(0), uint64(clock.Now().Unix()), point.FromInt(1))
		if err := x.Close(); err != nil {
			t.Fatal(err)
		}
		mustFlush(t, s)
		check("a flush before " + what)
		if _, err := s.Merge(t.Context()); err != nil {
			t.Fatal(err)
		}
		check(what)
	}
}
