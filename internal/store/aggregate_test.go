package store

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"pgregory.net/rapid"

	"dalmatiner/internal/codec/chunk"
	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/store/drivetest"
	"dalmatiner/internal/store/reader"
)

// aggregateModel is a store whose data lies in the head, in flushes, windows
// and overlays. What a reader must get is what Read gives, slot by slot.
type aggregateModel struct {
	t      *rapid.T
	r      *rand.Rand
	clock  *testClock
	o      Options
	s      *Store
	from   int64
	stats  *reader.Stats
	floats int  // of 100 values
	wild   bool // they are of many magnitudes

	markers int // of 100 words
}

func (m *aggregateModel) word() uint64 {
	switch v := m.r.Int64N(2000) - 1000; {
	case m.r.IntN(100) < m.markers:
		return point.Stale
	case m.r.IntN(100) >= m.floats:
		return point.FromInt(v << m.r.IntN(40))
	case v == 0:
		return point.FromFloat(math.NaN())
	case m.wild:
		// Of magnitudes so far apart that every other order gives another sum.
		return point.FromFloat(math.Ldexp(m.r.NormFloat64(), m.r.IntN(120)))
	default:
		return point.FromFloat(float64(v) / 8)
	}
}

// send writes stretches and gaps up to some hours on, then late points.
func (m *aggregateModel) send(hours int) {
	x := mustSession(m.t, m.s, "b")
	now := m.clock.Now().Unix()
	var data []byte
	for series := range 2 {
		for slot := now; slot < now+int64(hours)*3600; slot += m.r.Int64N(5000) {
			data, m.markers = data[:0], []int{0, 0, 0, 5, 100}[m.r.IntN(5)]
			for range 1 + m.r.IntN(1+m.r.IntN(3000)) {
				data = point.Append(data, m.word())
			}
			n := min(int64(len(data)/point.Size), now+int64(hours)*3600-slot)
			m.clock.Set(max(m.clock.Now().UnixNano(), (slot+n)*int64(time.Second)))
			m.s.clock.Advance()
			x.Points(key(series), uint64(slot), data[:n*point.Size])
			slot += n
		}
	}
	m.markers = 30
	for range m.r.IntN(4) {
		x.Point(key(m.r.IntN(2)), uint64(m.from+m.r.Int64N(now-m.from+1)), m.word())
	}
	if err := x.Close(); err != nil {
		m.t.Fatal(err)
	}
}

// check compares random ranges of random steps with Read.
func (m *aggregateModel) check() {
	m.t.Helper()
	info, err := m.s.BucketByName("b")
	if err != nil {
		m.t.Fatal(err)
	}
	past := m.clock.Now().Unix() + 1000
	for range 4 {
		series := m.r.IntN(2)
		first := (m.from + m.r.Int64N(past-m.from)) / chunk.Slots
		end := min(first+1+m.r.Int64N(300), past/chunk.Slots+1)
		if got, want := mustDigest(m.t, m.s, info, key(series), first, end),
			naiveDigest(m.t, m.s, info, key(series), 0, first, end); got != want {
			m.t.Fatalf("series %d: digest %x of %d chunks from %d on, want %x", series, got, end-first,
				first, want)
		}
		step := []int64{1 + m.r.Int64N(3), 60, 3600, 720, 7200, 86400,
			1 + m.r.Int64N(200_000)}[m.r.IntN(7)]
		from := m.from - 1000 + m.r.Int64N(past-m.from)
		if m.r.IntN(2) == 0 {
			from -= from % step
		}
		n := min(1+m.r.Int64N(2000), (past-from)/step+1, 100_000/step+1)
		dst := make([]chunk.Header, n)
		dst[0].Count = 77 // what was there goes
		stats, err := m.s.Series(info, key(series)).Aggregate(context.Background(), from, step, dst)
		if err != nil {
			m.t.Fatal(err)
		}
		m.stats.Add(stats)
		var list []int // of which 2 is not there
		for range 1 + m.r.IntN(12) {
			list = append(list, m.r.IntN(3))
		}
		aggregateEach(m.t, m.s, info, append(list, series), from, step, int(n))
		words := make([]uint64, step)
		for i := range dst {
			clear(words)
			for at := int64(0); at < step; at += reader.MaxRead {
				part := words[at:min(step, at+reader.MaxRead)]
				if err := m.s.Read(context.Background(), info, key(series), from+int64(i)*step+at,
					part); err != nil {
					m.t.Fatal(err)
				}
			}
			want := drivetest.Aggregates(words, from+int64(i)*step)
			if err := drivetest.EqualAggregates(dst[i], want); err != nil {
				m.t.Fatalf("series %d, %d steps of %d from epoch%+d, step %d: %v", series, n, step, from-epoch,
					i, err)
			}
		}
	}
}

// I4: whatever lies where, aggregates are those of the slots that Read gives.
func TestAggregatesEqualTheSlots(t *testing.T) {
	t.Parallel()
	var stats reader.Stats
	rapid.Check(t, func(t *rapid.T) {
		seed := rapid.Uint64().Draw(t, "seed")
		m := &aggregateModel{t: t, clock: newTestClock(), from: epoch, stats: &stats,
			r: rand.New(rand.NewPCG(seed, 9))}
		m.floats = rapid.SampledFrom([]int{0, 0, 30, 100}).Draw(t, "floats")
		m.wild = rapid.Bool().Draw(t, "wild")
		m.o = testOptions(vfs.NewMem(), m.clock)
		if rapid.Bool().Draw(t, "cut windows") {
			m.o.maxMergedFile = 1000
		}
		m.s = mustOpen(t, m.o)
		defer func() { m.s.Crash() }()
		m.send(1)
		if rapid.Bool().Draw(t, "expires") {
			if err := m.s.SetTTL("b", 100_000); err != nil {
				t.Fatal(err)
			}
		}
		for range rapid.IntRange(1, 6).Draw(t, "steps") {
			m.send(1 + m.r.IntN(40))
			m.check()
			if m.r.IntN(4) > 0 {
				if _, err := m.s.Flush(context.Background()); err != nil {
					t.Fatal(err)
				}
				m.check()
			}
			if m.r.IntN(2) == 0 {
				if _, err := m.s.Merge(context.Background()); err != nil {
					t.Fatal(err)
				}
				m.check()
			}
		}
	})
	if stats.Rollups == 0 || stats.Headers == 0 || stats.Points == 0 || stats.Bytes == 0 {
		t.Fatalf("a way of reading was never taken: %+v", stats)
	}
}

// I5: damaged rollups are named, and the headers of the chunks serve instead; of
// damaged chunks nothing is returned, as by Read. (An intact rollup knows what
// was in its chunks whatever becomes of them.)
func TestAggregatesOverDamage(t *testing.T) {
	t.Parallel()
	for part, steps := range map[string][]int64{"rollups": {7200, daySlots}, "data": {60, 3600},
		"index": {60, 3600}} {
		t.Run(part, func(t *testing.T) {
			fs, clock := vfs.NewMem(), newTestClock()
			o := testOptions(fs, clock)
			byHand(&o)
			clock.Advance(72 * time.Minute) // to the begin of a unit, so that the first window has rollups
			s := mustOpen(t, o)
			x := mustSession(t, s, "rows")
			for range 2 { // the second flush is of another time
				for range 300 {
					x.Point(key(1), uint64(clock.Now().Unix()), point.FromInt(clock.Now().Unix()%1000))
					clock.Advance(time.Minute)
					s.clock.Advance()
				}
				if _, err := s.Flush(t.Context()); err != nil {
					t.Fatal(err)
				}
				clock.Advance(5 * time.Hour)
				s.clock.Advance()
			}
			if _, err := s.Merge(t.Context()); err != nil {
				t.Fatal(err)
			}
			s.Crash()
			names, err := fs.List("/data/window")
			if err != nil || len(names) == 0 {
				t.Fatal(names, err)
			}
			slices.Sort(names) // nothing else holds anything of the first one
			drivetest.DamagePart(t, fs, "/data/window/"+names[0], part)
			s = mustOpen(t, testOptions(fs, clock))
			defer func() { s.Crash() }()
			info, err := s.BucketByName("rows")
			if err != nil {
				t.Fatal(err)
			}
			var sum reader.Stats
			for _, step := range steps {
				got := make([]chunk.Header, 2*daySlots/step)
				from := int64(epoch - epoch%daySlots)
				stats, err := s.Series(info, key(1)).Aggregate(t.Context(), from, step, got)
				if err != nil {
					t.Fatal(err)
				}
				sum.Add(stats)
				for i := range got {
					at := from + int64(i)*step
					want := drivetest.Aggregates(readAll(t, s, "rows", 1, at, int(step)), at)
					if err := drivetest.EqualAggregates(got[i], want); err != nil {
						t.Fatalf("step %d of %d: %v", i, step, err)
					}
				}
			}
			if _, n := s.Damage(); n == 0 {
				t.Fatal("no damage was counted")
			}
			if part == "rollups" && sum.Headers+sum.Rollups == 0 {
				t.Fatalf("%+v", sum)
			}
		})
	}
}

// Readers see every point that was taken before they began, whatever is moved
// from the head to flushes and windows meanwhile.
func TestAggregatesBesideFlushesAndMerges(t *testing.T) {
	t.Parallel()
	clock := newTestClock()
	s := mustOpen(t, testOptions(vfs.NewMem(), clock))
	defer func() { s.Crash() }()
	x := mustSession(t, s, "b")
	info, err := s.BucketByName("b")
	if err != nil {
		t.Fatal(err)
	}
	var written atomic.Int64 // slots from epoch on
	var wg sync.WaitGroup
	done := make(chan struct{})
	wg.Go(func() {
		defer close(done)
		for i := range int64(300) {
			var data []byte
			for n := range int64(300) {
				data = point.Append(data, point.FromInt(i*300+n))
			}
			x.Points(key(0), uint64(epoch+i*300), data)
			written.Add(300)
			clock.Advance(5 * time.Minute)
			s.clock.Advance()
			if i%20 == 19 {
				_, err := s.Flush(context.Background())
				if err == nil {
					_, err = s.Merge(context.Background())
				}
				if err != nil {
					t.Error(err)
				}
			}
		}
	})
	for _, step := range []int64{60, 1000, 7200} {
		wg.Go(func() {
			for {
				n := written.Load()
				dst := make([]chunk.Header, n/step)
				if _, err := s.Series(info, key(0)).Aggregate(context.Background(), epoch, step,
					dst); err != nil {
					t.Error(err)
					return
				}
				for i := range dst {
					if h := &dst[i]; h.Count != int(step) || point.Int(h.First) != int64(i)*step ||
						point.Int(h.Last) != int64(i+1)*step-1 {
						t.Errorf("step %d of %d of %d slots: %+v", i, step, n, h)
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
	wg.Wait()
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
}
