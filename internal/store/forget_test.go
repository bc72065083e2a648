package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"pgregory.net/rapid"

	"dalmatiner/internal/metric"
	"dalmatiner/internal/point"
	"dalmatiner/internal/segment"
)

// forgetModel is a bucket whose series are written, deleted, and begun anew.
type forgetModel struct {
	t       fataler
	r       *rand.Rand
	clock   *testClock
	fs      *vfs.MemFS
	o       Options
	s       *Store
	truth   map[string]map[int64]uint64 // by key and slot; a deleted series has no entry
	from    int64
	ttl     int64 // points; 0 = for ever
	deleted int64
	open    *Session // sends beside the others, with old predictions
}

func newForgetModel(t fataler, seed uint64, ttl int64, background bool) *forgetModel {
	m := &forgetModel{t: t, clock: newTestClock(), fs: vfs.NewCrashableMem(), from: epoch, ttl: ttl,
		truth: make(map[string]map[int64]uint64), r: rand.New(rand.NewPCG(seed, 7))}
	m.o = testOptions(m.fs, m.clock)
	m.o.BackgroundMerge = background
	m.o.MaxFuture = 1e6 * time.Hour // a tick under way may set the coarse clock back for a moment
	m.s = mustOpen(t, m.o)
	if _, err := m.s.CreateBucket(BucketInfo{Name: "b", Resolution: 1000, PPF: 1000, TTL: ttl}); err != nil {
		t.Fatalf("%v", err)
	}
	return m
}

// forgetKey is one of 24 series below 4 prefixes.
func forgetKey(i int) []byte {
	k, err := metric.Key("web", fmt.Sprint(i%4), fmt.Sprint(i/4))
	if err != nil {
		panic(err)
	}
	return k
}

func (m *forgetModel) send(n int) {
	x := m.open
	if x == nil {
		x = mustSession(m.t, m.s, "b")
	}
	now := m.clock.Now().Unix()
	first := m.r.IntN(24)
	for range n {
		for i := range 6 { // in an order that is predicted
			key := forgetKey((first + i) % 24)
			slot := now - m.r.Int64N(3)
			switch m.r.IntN(12) {
			case 0:
				slot = max(now-m.r.Int64N(20_000), m.from)
			case 1:
				continue
			}
			v := point.FromInt(m.r.Int64N(1000))
			x.Point(key, uint64(slot), v)
			m.put(key, slot, v, now)
		}
		now += 1 + m.r.Int64N(200)
		m.clock.now.Store(now * int64(time.Second))
		m.s.advance(m.clock.Now())
	}
	if m.open = x; m.r.IntN(2) == 0 {
		m.closeSession()
	} else if _, err := x.Commit(); err != nil {
		m.t.Fatalf("%v", err)
	}
	if tot := x.Totals(); tot.Refused > 0 {
		m.t.Fatalf("%+v", tot)
	}
}

func (m *forgetModel) put(key []byte, slot int64, v uint64, now int64) {
	if m.truth[string(key)] == nil {
		m.truth[string(key)] = make(map[int64]uint64)
	}
	if m.ttl == 0 || slot >= now-m.ttl {
		m.truth[string(key)][slot] = v
	}
}

func (m *forgetModel) closeSession() {
	if m.open == nil {
		return
	}
	if err := m.open.Close(); err != nil {
		m.t.Fatalf("%v", err)
	}
	m.open = nil
}

// delete deletes one series or those below a prefix.
func (m *forgetModel) delete() {
	choice := SeriesChoice{Key: forgetKey(m.r.IntN(24))}
	if m.r.IntN(3) == 0 {
		choice.Prefix = true
		choice.Key, _ = metric.Key("web", fmt.Sprint(m.r.IntN(4)))
	}
	listed := int64(0)
	for k := range m.list() {
		if choice.takes([]byte(k)) {
			listed++
		}
	}
	dry, dryErr := m.s.DeleteSeries(context.Background(), "b", choice, true)
	got, err := m.s.DeleteSeries(context.Background(), "b", choice, false)
	switch {
	case listed == 0 && !choice.Prefix:
		if !errors.Is(err, ErrUnknownSeries) || !errors.Is(dryErr, ErrUnknownSeries) {
			m.t.Fatalf("deleting a series that is not there: %v, %v", err, dryErr)
		}
	case err != nil || dryErr != nil || got.Series != listed || dry.Series != listed:
		m.t.Fatalf("deleting %s: %d series, %v (dry run %d, %v), listed %d", metric.Text(choice.Key), got.Series, err, dry.Series, dryErr, listed)
	}
	m.deleted += got.Series
	maps.DeleteFunc(m.truth, func(k string, _ map[int64]uint64) bool { return choice.takes([]byte(k)) })
}

func (m *forgetModel) list() map[string]bool {
	m.t.Helper()
	info, err := m.s.BucketByName("b")
	if err != nil {
		m.t.Fatalf("%v", err)
	}
	out := make(map[string]bool)
	err = m.s.Metrics(context.Background(), info, nil, func(key []byte) bool {
		if out[string(key)] {
			m.t.Fatalf("%s is listed twice", metric.Text(key))
		}
		out[string(key)] = true
		return true
	})
	if err != nil {
		m.t.Fatalf("%v", err)
	}
	return out
}

// check compares every slot and the list with the truth.
func (m *forgetModel) check() {
	m.t.Helper()
	info, err := m.s.BucketByName("b")
	if err != nil {
		m.t.Fatalf("%v", err)
	}
	lo := int64(0)
	if m.ttl > 0 {
		lo = m.clock.Now().Unix() - m.ttl
	}
	past := m.clock.Now().Unix() + 10
	m.s.mergeMu.Lock() // a merge lets series go
	defer m.s.mergeMu.Unlock()
	listed := m.list()
	dst := make([]uint64, MaxRead)
	for i := range 24 {
		key := forgetKey(i)
		points, known := m.truth[string(key)]
		visible := 0
		for at := max(m.from, lo) - 10; at < past; at += MaxRead { // what is hidden by the lifetime begins at lo
			part := dst[:min(MaxRead, past-at)]
			if err := m.s.Read(context.Background(), info, key, at, part); err != nil {
				m.t.Fatalf("%v", err)
			}
			for j, got := range part {
				slot := at + int64(j)
				want := points[slot]
				if slot < lo && got == 0 {
					want = 0 // hidden by the lifetime
				}
				if got != want {
					m.t.Fatalf("%s slot epoch%+d holds %x, want %x", metric.Text(key), slot-epoch, got, want)
				}
				if got != 0 {
					visible++
				}
			}
		}
		if !known && listed[string(key)] || visible > 0 && !listed[string(key)] {
			m.t.Fatalf("%s: known %v, %d points, listed %v", metric.Text(key), known, visible, listed[string(key)])
		}
	}
	if st := m.s.Stats(); st.Series != int64(len(listed)) {
		m.t.Fatalf("%d series are counted, %d listed", st.Series, len(listed))
	}
	if names, n := m.s.Damage(); n > 0 {
		m.t.Fatalf("damage: %v", names)
	}
}

func (m *forgetModel) end() {
	if m.s != nil {
		m.s.Crash()
	}
}

// verify checks every file.
func (m *forgetModel) verify() {
	m.t.Helper()
	report, err := NewOperations(m.s).Check(context.Background(), CheckOptions{})
	if err != nil || report.Damaged > 0 {
		m.t.Fatalf("check: %v, %v", report.Damages, err)
	}
}

func (m *forgetModel) flush() {
	m.t.Helper()
	if _, err := m.s.Flush(context.Background()); err != nil {
		m.t.Fatalf("%v", err)
	}
}

func (m *forgetModel) merge(all bool) {
	m.t.Helper()
	m.s.mergeMu.Lock()
	defer m.s.mergeMu.Unlock()
	_, err := m.s.merge(context.Background(), all)
	if err == nil && all {
		err = m.s.expire(context.Background(), m.s.idle())
	}
	if err != nil {
		m.t.Fatalf("%v", err)
	}
}

// crash goes on from what a crash left: now, or at a step of a flush or merge.
func (m *forgetModel) crash(lostCatalogue bool) {
	m.t.Helper()
	cfg := vfs.CrashCloneCfg{UnsyncedDataPercent: m.r.IntN(101), RNG: m.r}
	if err := m.s.log.Sync(); err != nil {
		m.t.Fatalf("%v", err)
	}
	var clone *vfs.MemFS
	if at := m.r.IntN(9); at <= StepMerged {
		m.s.mergeMu.Lock() // one that a flush asked for may be under way
		m.s.flushMu.Lock()
		m.s.o.FlushStep = func(step int) {
			if step == at && clone == nil {
				clone = m.fs.CrashClone(cfg)
			}
		}
		m.s.flushMu.Unlock()
		m.s.mergeMu.Unlock()
		m.flush()
		m.merge(m.r.IntN(2) == 0)
	}
	m.s.mergeMu.Lock()
	m.s.flushMu.Lock()
	if clone == nil {
		clone = m.fs.CrashClone(cfg)
	}
	m.s.flushMu.Unlock()
	m.s.mergeMu.Unlock()
	m.s.Crash()
	m.s, m.open = nil, nil
	m.fs, m.o.FS = clone, clone
	if lostCatalogue {
		if err := clone.RemoveAll("/data/catalogue"); err != nil {
			m.t.Fatalf("%v", err)
		}
	}
	report, err := CheckDir(context.Background(), clone, "/data", CheckOptions{})
	if !lostCatalogue && (err != nil || report.Damaged > 0) {
		m.t.Fatalf("check after the crash: %v, %v", report.Damages, err)
	}
	m.s = mustOpen(m.t, m.o)
	if lostCatalogue {
		m.s.damage = damageList{} // it is reported
	}
}

func (m *forgetModel) step(what string) {
	switch what {
	case "send":
		m.send(1 + m.r.IntN(40))
	case "delete":
		m.delete()
	case "flush":
		m.flush()
	case "merge", "merge all":
		m.merge(what == "merge all")
	case "wait":
		hours := 2
		if m.ttl > 0 {
			hours = 10
		}
		m.clock.advance(time.Duration(m.r.IntN(hours)) * time.Hour)
		m.s.advance(m.clock.Now())
	case "reopen":
		m.closeSession()
		if err := m.s.Close(); err != nil {
			m.t.Fatalf("%v", err)
		}
		m.s = mustOpen(m.t, m.o)
	case "crash":
		m.crash(false)
	case "lose catalogue":
		m.flush() // what only the log names has no other place
		m.crash(true)
	case "verify":
		m.verify()
	}
	m.check()
}

// Whatever is written, deleted, begun anew, flushed, merged, expired, and
// wherever it crashes: a deleted point never comes back, a later one is there,
// and a check finds no damage.
func TestDeletedSeriesNeverComeBack(t *testing.T) {
	steps := []string{"send", "send", "send", "delete", "delete", "flush", "merge", "merge all", "wait", "reopen", "crash", "crash", "lose catalogue", "verify"}
	rapid.Check(t, func(t *rapid.T) {
		m := newForgetModel(t, rapid.Uint64().Draw(t, "seed"), rapid.SampledFrom([]int64{0, 0, 30_000}).Draw(t, "ttl"),
			rapid.Bool().Draw(t, "background"))
		defer m.end()
		for range rapid.IntRange(1, 25).Draw(t, "steps") {
			m.step(rapid.SampledFrom(steps).Draw(t, "step"))
		}
		m.verify()
	})
}

// After flush and merge nothing of a deleted series is left: no chunk, no name,
// no tombstone.
func TestMergesFreeDeletedSeries(t *testing.T) {
	m := newForgetModel(t, 3, 0, false)
	defer m.end()
	for range 12 {
		m.send(60)
		m.flush()
		m.merge(false)
	}
	m.closeSession()
	before := m.s.Stats().SegmentPoints
	if _, err := m.s.DeleteSeries(context.Background(), "b", SeriesChoice{Key: forgetKey(3)}, false); err != nil {
		t.Fatal(err)
	}
	points := int64(len(m.truth[string(forgetKey(3))]))
	delete(m.truth, string(forgetKey(3)))
	m.check()
	m.flush()
	if st := m.s.Stats(); st.SeriesDeleted != 1 || st.Tombstones != 1 {
		t.Errorf("%d deleted, %d tombstones", st.SeriesDeleted, st.Tombstones)
	}
	m.merge(true)
	m.flush() // the log is not needed any more, either
	m.merge(true)
	m.check()
	st := m.s.Stats()
	if st.Tombstones != 0 || st.PointsDeleted < points || st.SegmentPoints >= before {
		t.Errorf("%d tombstones, %d points deleted of %d, %d in segments before, %d after", st.Tombstones, st.PointsDeleted, points, before, st.SegmentPoints)
	}
	for _, seg := range m.s.segments {
		for id := range m.s.buckets.nextID {
			if err := seg.reader.Hashes(id, func(h segment.Hash) {
				if _, ok := m.s.index.get(metric.SeriesID(h)); !ok {
					t.Errorf("%s holds chunks of %x", seg.name(), h)
				}
			}); err != nil {
				t.Fatal(err)
			}
		}
	}
	for range 2 {
		m.crash(true)
		m.check()
	}
}

// A share of deleted series that is worth it is rewritten in the background, and
// less is not.
func TestManyDeletedSeriesAreFreedInTheBackground(t *testing.T) {
	m := newForgetModel(t, 5, 0, false)
	defer m.end()
	for range 12 {
		m.send(60)
		m.flush()
	}
	m.closeSession()
	m.merge(true)
	if _, err := m.s.DeleteSeries(context.Background(), "b", SeriesChoice{Key: forgetKey(0)[:4], Prefix: true}, false); err != nil {
		t.Fatal(err)
	}
	clear(m.truth)
	m.check()
	m.merge(false)
	for _, seg := range m.s.segments {
		if seg.meta.Kind != 0 && seg.info.Chunks > 0 {
			t.Errorf("%s holds %d chunks", seg.name(), seg.info.Chunks)
		}
	}
	m.check()
	m.verify()
}

// A series of which nothing is left leaves the list; one that has points stays,
// wherever they are.
func TestExpiredSeriesLeave(t *testing.T) {
	m := newForgetModel(t, 9, 30_000, false)
	defer m.end()
	for range 8 {
		m.send(60)
		m.flush()
	}
	m.closeSession()
	if n := len(m.list()); n < 20 {
		t.Fatalf("%d series", n)
	}
	m.clock.advance(30 * 24 * time.Hour)
	m.s.advance(m.clock.Now())
	x := mustSession(t, m.s, "b")
	now := m.clock.Now().Unix()
	for i := range 2 { // one in the head, one in a segment
		x.Point(forgetKey(i), uint64(now), point.FromInt(1))
		m.put(forgetKey(i), now, point.FromInt(1), now)
		if _, err := x.Commit(); err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			m.flush()
		}
	}
	m.merge(false) // as the background does
	m.merge(false)
	want := []string{string(forgetKey(0)), string(forgetKey(1))}
	slices.Sort(want)
	if got := slices.Sorted(maps.Keys(m.list())); !slices.Equal(got, want) {
		t.Fatalf("%d series are left: %q", len(got), got)
	}
	if st := m.s.Stats(); st.SeriesExpired < 18 || st.Series != 2 {
		t.Errorf("%d expired, %d left", st.SeriesExpired, st.Series)
	}
	m.check()
	m.verify()
	x.Point(forgetKey(5), uint64(now), point.FromInt(9)) // begins anew
	m.put(forgetKey(5), now, point.FromInt(9), now)
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		m.check()
		m.crash(false)
	}
	m.check()
}

// A crash anywhere in a deletion leaves each series whole or gone.
func TestCrashInADeletion(t *testing.T) {
	for n := 1; ; n++ {
		mem := vfs.NewCrashableMem()
		f := newFaults(mem)
		clock := newTestClock()
		o := testOptions(f.fs, clock)
		s := mustOpen(t, o)
		x := mustSession(t, s, "b")
		for i := range 600 { // three groups
			x.Point(key(i), epoch, point.FromInt(int64(i+1)))
			if i == 300 {
				if _, err := x.Commit(); err != nil {
					t.Fatal(err)
				}
				if _, err := s.Flush(context.Background()); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := errors.Join(x.Close(), s.log.Sync()); err != nil {
			t.Fatal(err)
		}
		clone := f.cloneAt(mem, n)
		prefix, _ := metric.Key("series")
		if _, err := s.DeleteSeries(context.Background(), "b", SeriesChoice{Key: prefix, Prefix: true}, false); err != nil {
			t.Fatal(err)
		}
		f.clear()
		s.Crash()
		if *clone == nil {
			if n == 1 {
				t.Fatal("a deletion without an operation on a file")
			}
			return
		}
		o.FS = *clone
		s = mustOpen(t, o)
		info, err := s.BucketByName("b")
		if err != nil {
			t.Fatal(err)
		}
		listed := map[string]bool{}
		if err := s.Metrics(context.Background(), info, nil, func(key []byte) bool { listed[string(key)] = true; return true }); err != nil {
			t.Fatal(err)
		}
		for i := range 600 {
			got := readAll(t, s, "b", i, epoch, 1)[0]
			if listed[string(key(i))] != (got == point.FromInt(int64(i+1))) || !listed[string(key(i))] && got != 0 {
				t.Fatalf("series %d is listed %v and holds %x", i, listed[string(key(i))], got)
			}
		}
		s.Crash()
	}
}

// Sessions send with old predictions while series are deleted: every point is
// stored, and one that came after the last deletion is there.
func TestDeletingBesideSenders(t *testing.T) {
	s := mustOpen(t, testOptions(vfs.NewMem(), newTestClock()))
	defer s.Crash()
	const rounds, width = 200, 40
	send := func(x *Session, from, past int) {
		for slot := from; slot < past; slot++ {
			for i := range width {
				x.Point(forgetKey(i), uint64(epoch+slot), point.FromInt(int64(slot+1)))
			}
		}
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		prefix, _ := metric.Key("web", "1")
		for i := range 60 {
			choice := SeriesChoice{Key: forgetKey(i % width)}
			if i%5 == 0 {
				choice = SeriesChoice{Key: prefix, Prefix: true}
			}
			if _, err := s.DeleteSeries(context.Background(), "b", choice, false); err != nil &&
				!errors.Is(err, ErrUnknownSeries) && !errors.Is(err, ErrUnknownBucket) {
				t.Error(err)
			}
			if i%10 == 0 {
				if _, err := s.Flush(context.Background()); err != nil {
					t.Error(err)
				}
			}
		}
	}()
	x, y := mustSession(t, s, "b"), mustSession(t, s, "b")
	for slot := range rounds {
		send(x, slot, slot+1)
		send(y, slot, slot+1)
		if _, err := y.Commit(); err != nil {
			t.Fatal(err)
		}
	}
	<-done
	send(x, rounds, rounds+1) // with old predictions, and the rest of a run
	send(y, rounds, rounds+1)
	for _, z := range []*Session{x, y} {
		if err := z.Close(); err != nil {
			t.Fatal(err)
		}
		if tot := z.Totals(); tot.Refused > 0 || tot.Received != (rounds+1)*width {
			t.Errorf("%+v, want %d received", tot, (rounds+1)*width)
		}
	}
	info, err := s.BucketByName("b")
	if err != nil {
		t.Fatal(err)
	}
	dst := make([]uint64, 1)
	for i := range width {
		if err := s.Read(context.Background(), info, forgetKey(i), epoch+rounds, dst); err != nil || dst[0] != point.FromInt(rounds+1) {
			t.Errorf("%s holds %x, %v", metric.Text(forgetKey(i)), dst[0], err)
		}
	}
	if got := s.Account().Total(info.ID); got.Received() != 2*(rounds+1)*width {
		t.Errorf("%d points in the account, want %d", got.Received(), 2*(rounds+1)*width)
	}
}

// A name that has no bytes is refused even where a column has lost its name.
func TestAnEmptyNameIsNotADeletedSeries(t *testing.T) {
	s := mustOpen(t, testOptions(vfs.NewMem(), newTestClock()))
	defer s.Crash()
	x := mustSession(t, s, "b")
	x.Point(key(0), epoch, point.FromInt(1))
	x.Point(key(1), epoch, point.FromInt(2))
	if _, err := x.Commit(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.DeleteSeries(context.Background(), "b", SeriesChoice{Key: key(1)}, false); err != nil {
		t.Fatal(err)
	}
	x.Point(key(0), epoch+1, point.FromInt(1))
	x.Point(nil, epoch+1, point.FromInt(7))
	x.Points(bytes.Clone(nil), epoch+2, point.Append(nil, point.FromInt(7)))
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
	if tot := x.Totals(); tot.Received != 5 || tot.Refused != 2 {
		t.Errorf("%+v, want 2 of 5 refused", tot)
	}
}

// cloneAt keeps what a crash would leave before the n-th operation from now on.
func (f *faults) cloneAt(mem *vfs.MemFS, n int) *(*vfs.MemFS) {
	var mu sync.Mutex
	var clone *vfs.MemFS
	count := 0
	f.set(func(op errorfs.Op) error {
		mu.Lock()
		defer mu.Unlock()
		if op.Kind.ReadOrWrite() != errorfs.OpIsRead {
			if count++; count == n {
				clone = mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 50, RNG: rand.New(rand.NewPCG(uint64(n), 1))})
			}
		}
		return nil
	})
	return &clone
}
