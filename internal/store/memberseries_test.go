package store

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"pgregory.net/rapid"

	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/model/metric"
	"dalmatiner/internal/store/deletion"
	"dalmatiner/internal/store/drivetest"
)

// Deletions of other nodes and series that are given up, beside all else that happens to series:
// the last deletion of each counts, whichever comes first, one that is not news changes nothing,
// and what was given up keeps its incarnation and shows only what was written since.
func TestDeletionsOfOtherNodes(t *testing.T) {
	t.Parallel()
	steps := []string{"send", "send", "send", "elsewhere", "elsewhere", "drop", "drop", "delete",
		"flush", "merge", "merge all", "wait", "clock back", "month",
		"reopen", "crash", "lose catalogue", "lose a copy", "lose both copies", "restore", "stored"}
	rapid.Check(t, func(t *rapid.T) {
		m := newForgetModel(t, rapid.Uint64().Draw(t, "seed"),
			rapid.SampledFrom([]int64{0, 0, 30_000}).Draw(t, "ttl"),
			rapid.Bool().Draw(t, "background"), rapid.Bool().Draw(t, "hpts"))
		defer m.end()
		for range rapid.IntRange(1, 25).Draw(t, "steps") {
			m.member(rapid.SampledFrom(steps).Draw(t, "step"))
		}
		m.live("stored")
	})
}

// member is live with what a cluster does.
func (m *forgetModel) member(what string) {
	switch what {
	case "elsewhere":
		m.deleteElsewhere()
	case "drop":
		m.drop()
	default:
		m.live(what)
		return
	}
	m.check()
}

// deleteElsewhere does deletions of some series again that other nodes have made.
func (m *forgetModel) deleteElsewhere() {
	m.t.Helper()
	defer m.pauseMerges()() // a merge lets series go that have expired
	b := m.s.buckets.Get("b")
	m.s.o.deleteSlice = 1 + m.r.IntN(8)
	last, forgotten := m.s.columns.Deletions.Last(), m.s.columns.Deletions.Forgotten()
	shared := last + 1 + m.r.Uint64N(uint64(time.Hour))
	var list []deletion.At
	for range 1 + m.r.IntN(8) {
		k := forgetKey(m.r.IntN(24))
		at := deletion.At{ID: b.SeriesID(k)}
		switch m.r.IntN(6) {
		case 0:
			at.Incarnation = m.lives[string(k)]
		case 1:
			at.Incarnation = m.lives[string(k)] / 2
		case 2: // below others, and perhaps above its own
			at.Incarnation = max(last-min(last, m.r.Uint64N(uint64(time.Hour))), forgotten+1)
		default:
			at.Incarnation = shared
		}
		list = append(list, at)
		if at.Incarnation > m.lives[string(k)] {
			m.lives[string(k)] = at.Incarnation
			m.last = max(m.last, at.Incarnation)
			delete(m.truth, string(k))
		}
	}
	token, err := m.s.DeleteSeriesAt(context.Background(), b.ID, list)
	if err != nil || token.Position == 0 {
		m.t.Fatalf("token %+v, %v", token, err)
	}
	for _, at := range list {
		if got := m.s.Incarnation(b.ID, at.ID); got < at.Incarnation {
			m.t.Fatalf("series %x is in incarnation %d, deleted at %d", at.ID, got, at.Incarnation)
		}
	}
}

// drop gives some series up, whether or not they are there.
func (m *forgetModel) drop() {
	m.t.Helper()
	defer m.pauseMerges()()
	b := m.s.buckets.Get("b")
	m.s.o.deleteSlice = 1 + m.r.IntN(8)
	var ids []metric.SeriesID
	for range 1 + m.r.IntN(6) {
		k := forgetKey(m.r.IntN(24))
		ids = append(ids, b.SeriesID(k))
		delete(m.truth, string(k))
	}
	if err := m.s.DropSeries(b.ID, ids); err != nil {
		m.t.Fatalf("%v", err)
	}
	for _, id := range ids {
		if m.s.columns.Index.Has(id) {
			m.t.Fatalf("series %x is still there", id)
		}
	}
}

// A crash at any operation of the disk leaves each series whole or gone, and gone for good once the
// token was waited for. What was deleted at an incarnation that this store never had begins anew in
// it.
func TestDeletionsElsewhereSurviveCrashes(t *testing.T) {
	t.Parallel()
	const n = 12
	for at := range 60 {
		mem := vfs.NewCrashableMem()
		f := newFaults(mem)
		o := testOptions(f.FS, newTestClock())
		byHand(&o)
		o.WALInterval = time.Millisecond
		s := mustOpen(t, o)
		drivetest.SendRows(t, s, 0, 5)
		mustFlush(t, s)
		b := s.buckets.Get("rows")
		before := b.Counts().Series
		clone := cloneAt(f, mem, 1+at)
		var list []deletion.At
		foreign := uint64(o.Now().UnixNano()) + 5
		for i := range n {
			list = append(list, deletion.At{ID: b.SeriesID(key(i)), Incarnation: foreign + uint64(i%3)})
		}
		absent := metric.SeriesID{9, 9, 9}
		list = append(list, deletion.At{ID: absent, Incarnation: foreign})
		token, err := s.DeleteSeriesAt(t.Context(), b.ID, list)
		if err == nil {
			err = s.Intake().WaitDurable(t.Context(), token)
		}
		if err != nil {
			t.Fatal(err)
		}
		left := clone()
		done := left == nil
		if done {
			left = mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: at % 2 * 50,
				RNG: rand.New(rand.NewPCG(uint64(at), 1))})
		}
		f.Clear()
		s.Crash()
		o.FS = left
		s = mustOpen(t, o)
		b = s.buckets.Get("rows")
		for i := range n {
			gone := s.Incarnation(b.ID, b.SeriesID(key(i))) == foreign+uint64(i%3)
			if done && !gone {
				t.Fatalf("crash %d: series %d is there again", at, i)
			}
			for slot, w := range readAll(t, s, "rows", i, epoch, 5) {
				if want := drivetest.RowWord(i, epoch+int64(slot)); !gone && w != want || gone && w != 0 {
					t.Fatalf("crash %d: series %d, deleted %t, has %x in slot %d", at, i, gone, w, slot)
				}
			}
		}
		if done && (s.Incarnation(b.ID, absent) != foreign || b.Counts().Series != before-n) {
			t.Fatalf("crash %d: incarnation %d of a series that was never here, want %d; %d series", at,
				s.Incarnation(b.ID, absent), foreign, b.Counts().Series)
		}
		s.Crash()
	}
}

// A series that is given up and comes back has what was written since, and its incarnation.
func TestDroppedSeriesComeBackEmpty(t *testing.T) {
	t.Parallel()
	clock := newTestClock()
	fs := vfs.NewCrashableMem()
	o := testOptions(fs, clock)
	byHand(&o)
	s := mustOpen(t, o)
	send := func(slot uint64, v int64) {
		t.Helper()
		x := mustSession(t, s, "b")
		for i := range 3 {
			x.Point(key(i), epoch+slot, point.FromInt(v))
		}
		if err := x.Close(); err != nil {
			t.Fatal(err)
		}
	}
	send(0, 1)
	b := s.buckets.Get("b")
	if _, err := s.DeleteSeriesAt(t.Context(), b.ID,
		[]deletion.At{{ID: b.SeriesID(key(1)), Incarnation: 77}}); err != nil {
		t.Fatal(err)
	}
	send(1, 2)
	mustFlush(t, s)
	send(2, 3)
	if err := s.DropSeries(b.ID, []metric.SeriesID{b.SeriesID(key(0)), b.SeriesID(key(1)),
		b.SeriesID(key(9))}); err != nil {
		t.Fatal(err)
	}
	send(3, 4)
	if err := s.disk.Log.Sync(); err != nil {
		t.Fatal(err)
	}
	clone := fs.CrashClone(vfs.CrashCloneCfg{})
	checkDropped(t, s)
	mustFlush(t, s)
	if _, err := s.Merge(t.Context()); err != nil {
		t.Fatal(err)
	}
	checkDropped(t, s)
	s.Crash()
	o.FS = clone
	s = mustOpen(t, o)
	defer func() { s.Crash() }()
	checkDropped(t, s)
	mustFlush(t, s)
	checkDropped(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = mustOpen(t, o)
	checkDropped(t, s)
}

// checkDropped checks what TestDroppedSeriesComeBackEmpty leaves.
func checkDropped(t *testing.T, s *Store) {
	t.Helper()
	for i, want := range [][]int64{{0, 0, 0, 4}, {0, 0, 0, 4}, {1, 2, 3, 4}} {
		var words []uint64
		for _, v := range want {
			w := point.FromInt(v)
			if v == 0 {
				w = point.Unset
			}
			words = append(words, w)
		}
		if got := readAll(t, s, "b", i, epoch, 4); !slices.Equal(got, words) {
			t.Errorf("series %d has %x, want %x", i, got, words)
		}
	}
	b := s.buckets.Get("b")
	for i, want := range []uint64{0, 77, 0} {
		if got := s.Incarnation(b.ID, b.SeriesID(key(i))); got != want {
			t.Errorf("series %d is in incarnation %d, want %d", i, got, want)
		}
	}
	all := map[metric.SeriesID]uint64{}
	s.Incarnations(func(bucket uint64, id metric.SeriesID, n uint64) bool {
		all[id] = n
		return bucket == b.ID
	})
	if len(all) != 1 || all[b.SeriesID(key(1))] != 77 {
		t.Errorf("incarnations %v", all)
	}
	checkClean(t, s)
}

// Deletions and series of a bucket that is not here are an error; EachSeries has every series once,
// with a column or not, and ends when it is told to.
func TestEachSeries(t *testing.T) {
	t.Parallel()
	o := testOptions(vfs.NewMem(), newTestClock())
	s := mustOpen(t, o)
	defer s.Crash()
	want := map[metric.SeriesID]string{}
	for _, name := range []string{"plain", "stamped"} {
		info := mustCreate(t, s, name, 1000, name == "stamped")
		x := mustSession(t, s, name)
		for i := range 300 {
			x.Point(key(i), epoch, point.FromInt(1))
			want[s.buckets.ID(info.ID).SeriesID(key(i))] = name + string(key(i))
		}
		if err := x.Close(); err != nil {
			t.Fatal(err)
		}
		for _, g := range s.buckets.ID(info.ID).Groups()[:1] { // of a sender that fell silent
			s.clock.Advance()
			s.columns.Deactivate(s.buckets.ID(info.ID), g)
		}
	}
	n := 0
	err := s.EachSeries(t.Context(), func(info buckets.Info, id metric.SeriesID, key []byte) bool {
		n++
		if want[id] != info.Name+string(key) || id.IsTimestamp() && info.HPTS {
			t.Errorf("series %x is %q of %s, want %q", id, key, info.Name, want[id])
		}
		return true
	})
	if err != nil || n != len(want) {
		t.Errorf("%d series of %d, %v", n, len(want), err)
	}
	n = 0
	if err := s.EachSeries(t.Context(), func(buckets.Info, metric.SeriesID, []byte) bool {
		n++
		return n < 5
	}); err != nil || n != 5 {
		t.Errorf("%d series, %v", n, err)
	}
	gone, stop := context.WithCancel(t.Context())
	stop()
	if err := s.EachSeries(gone, func(buckets.Info, metric.SeriesID, []byte) bool {
		return true
	}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if _, err := s.DeleteSeriesAt(t.Context(), 5, []deletion.At{{Incarnation: 1}}); !errors.Is(err,
		buckets.ErrUnknown) {
		t.Error(err)
	}
	if err := s.DropSeries(5, []metric.SeriesID{{}}); !errors.Is(err, buckets.ErrUnknown) {
		t.Error(err)
	}
	if got := fmt.Sprint(s.Incarnation(5, metric.SeriesID{})); got != "0" {
		t.Error(got)
	}
}
