package store

import (
	"context"
	"errors"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"pgregory.net/rapid"

	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/disk/segment"
	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/model/metric"
	"dalmatiner/internal/store/deletion"
	"dalmatiner/internal/write/intake"
)

// Whatever is written, deleted, begun anew, flushed, merged, expired, and
// wherever it crashes: a deleted point never comes back, a later one is there,
// and a check finds no damage.
func TestDeletedSeriesNeverComeBack(t *testing.T) {
	t.Parallel()
	steps := []string{"send", "send", "send", "delete", "delete", "flush", "merge", "merge all",
		"wait", "reopen", "crash", "crash", "lose catalogue", "verify"}
	rapid.Check(t, func(t *rapid.T) {
		m := newForgetModel(t, rapid.Uint64().Draw(t, "seed"),
			rapid.SampledFrom([]int64{0, 0, 30_000}).Draw(t, "ttl"),
			rapid.Bool().Draw(t, "background"), rapid.Bool().Draw(t, "hpts"))
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
	t.Parallel()
	m := newForgetModel(t, 3, 0, false, false)
	defer m.end()
	for range 12 {
		m.send(60)
		m.flush()
		m.merge(false)
	}
	m.closeSession()
	before := m.s.Stats().Segments.Points
	if _, err := m.s.DeleteSeries(context.Background(), "b", deletion.Choice{Key: forgetKey(3)},
		false); err != nil {
		t.Fatal(err)
	}
	points := int64(len(m.truth[string(forgetKey(3))]))
	delete(m.truth, string(forgetKey(3)))
	m.wereDeleted(map[string]bool{string(forgetKey(3)): true})
	m.check()
	m.flush()
	if st := m.s.Stats(); st.Deleted.Series != 1 || st.Deleted.Tombstones != 1 {
		t.Errorf("%d deleted, %d tombstones", st.Deleted.Series, st.Deleted.Tombstones)
	}
	m.merge(true)
	m.flush() // the log is not needed any more, either
	m.merge(true)
	m.check()
	st := m.s.Stats()
	if st.Deleted.Tombstones != 0 || st.Deleted.Points < points || st.Segments.Points >= before {
		t.Errorf("%d tombstones, %d points deleted of %d, %d in segments before, %d after",
			st.Deleted.Tombstones, st.Deleted.Points, points, before, st.Segments.Points)
	}
	for _, seg := range m.s.versions.Latest().Segments {
		for _, b := range m.s.buckets.All() {
			if err := seg.Reader.Hashes(b.ID, func(h segment.Hash) {
				if _, ok := m.s.columns.Index.Lookup(metric.SeriesID(h)); !ok {
					t.Errorf("%s holds chunks of %x", seg.Name(), h)
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
	t.Parallel()
	m := newForgetModel(t, 5, 0, false, false)
	defer m.end()
	for range 12 {
		m.send(60)
		m.flush()
	}
	m.closeSession()
	m.merge(true)
	names := m.list()
	if _, err := m.s.DeleteSeries(context.Background(), "b",
		deletion.Choice{Key: forgetKey(0)[:4], Prefix: true}, false); err != nil {
		t.Fatal(err)
	}
	clear(m.truth)
	m.wereDeleted(names)
	m.check()
	m.merge(false)
	for _, seg := range m.s.versions.Latest().Segments {
		if seg.Meta.Kind != 0 && seg.Info.Chunks > 0 {
			t.Errorf("%s holds %d chunks", seg.Name(), seg.Info.Chunks)
		}
	}
	m.check()
	m.verify()
}

// A series of which nothing is left leaves the list; one that has points stays,
// wherever they are.
func TestExpiredSeriesLeave(t *testing.T) {
	t.Parallel()
	m := newForgetModel(t, 9, 30_000, false, true)
	defer m.end()
	for range 8 {
		m.send(60)
		m.flush()
	}
	m.closeSession()
	if n := len(m.list()); n < 20 {
		t.Fatalf("%d series", n)
	}
	m.clock.Advance(30 * 24 * time.Hour)
	m.s.clock.Advance()
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
	if st := m.s.Stats(); st.Deleted.Expired < 18 || st.Series != 2 {
		t.Errorf("%d expired, %d left", st.Deleted.Expired, st.Series)
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
	t.Parallel()
	for n := 1; ; n++ {
		mem := vfs.NewCrashableMem()
		f := newFaults(mem)
		clock := newTestClock()
		o := testOptions(f.FS, clock)
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
		if err := errors.Join(x.Close(), s.disk.Log.Sync()); err != nil {
			t.Fatal(err)
		}
		clone := f.CloneAt(mem, n)
		s.o.deleteSlice = 100
		prefix, _ := metric.Key("series")
		if _, err := s.DeleteSeries(context.Background(), "b", deletion.Choice{Key: prefix, Prefix: true},
			false); err != nil {
			t.Fatal(err)
		}
		f.Clear()
		s.Crash()
		left := clone()
		if left == nil {
			if n == 1 {
				t.Fatal("a deletion without an operation on a file")
			}
			return
		}
		o.FS = left
		s = mustOpen(t, o)
		info, err := s.BucketByName("b")
		if err != nil {
			t.Fatal(err)
		}
		listed := map[string]bool{}
		if err := s.Metrics(context.Background(), info, nil, func(key []byte) bool {
			listed[string(key)] = true
			return true
		}); err != nil {
			t.Fatal(err)
		}
		for i := range 600 {
			got := readAll(t, s, "b", i, epoch, 1)[0]
			if listed[string(key(i))] != (got == point.FromInt(int64(i+1))) || !listed[string(key(i))] &&
				got != 0 {
				t.Fatalf("series %d is listed %v and holds %x", i, listed[string(key(i))], got)
			}
		}
		s.Crash()
	}
}

// Sessions send with old predictions while series are deleted: every point is
// stored, and one that came after the last deletion is there.
func TestDeletingBesideSenders(t *testing.T) {
	t.Parallel()
	s := mustOpen(t, testOptions(vfs.NewMem(), newTestClock()))
	defer s.Crash()
	s.o.deleteSlice = 3
	const rounds, width = 200, 40
	send := func(x *intake.Session, from, past int) {
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
			choice := deletion.Choice{Key: forgetKey(i % width)}
			if i%5 == 0 {
				choice = deletion.Choice{Key: prefix, Prefix: true}
			}
			if _, err := s.DeleteSeries(context.Background(), "b", choice, false); err != nil &&
				!errors.Is(err, deletion.ErrUnknownSeries) && !errors.Is(err, buckets.ErrUnknown) {
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
	for _, z := range []*intake.Session{x, y} {
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
		if err := s.Read(context.Background(), info, forgetKey(i), epoch+rounds, dst); err != nil ||
			dst[0] != point.FromInt(rounds+1) {
			t.Errorf("%s holds %x, %v", metric.Text(forgetKey(i)), dst[0], err)
		}
	}
	if got := s.Account().Total(info.ID); got.ReceivedPoints() != 2*(rounds+1)*width {
		t.Errorf("%d points in the account, want %d", got.ReceivedPoints(), 2*(rounds+1)*width)
	}
}

// A merge in the middle of a replay lets no series go: its points may still be
// to come from the log.
func TestNobodyExpiresDuringAReplay(t *testing.T) {
	t.Parallel()
	o := testOptions(vfs.NewMem(), newTestClock())
	s := mustOpen(t, o)
	x := mustSession(t, s, "b")
	x.Point(key(0), epoch, point.Unset) // a series without a point
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Flush(context.Background()); err != nil {
		t.Fatal(err)
	}
	x = mustSession(t, s, "c")
	x.Point(key(1), epoch, point.FromInt(1)) // to be replayed
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
	s.Crash()
	hold := make(chan struct{})
	o.holdReplay = hold
	s = mustOpen(t, o)
	defer s.Crash()
	for _, replay := range []bool{true, false} {
		if s.replay.HasPending() != replay {
			t.Fatalf("a part of the log is not in the head: %v", !replay)
		}
		if _, err := s.flusher.All(t.Context()); err != nil { // the log does not need it any more
			t.Fatal(err)
		}
		if err := s.merges.DropIdle(context.Background()); err != nil {
			t.Fatal(err)
		}
		if n := s.Stats().Series; (n == 2) != replay {
			t.Errorf("replay %v: %d series", replay, n)
		}
		if replay {
			close(hold)
			if err := s.replay.All(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// Deleting the same series again and again does not fill the MANIFEST without an
// end: an edit too large for it would end the store.
func TestDeletionsOfTheSameSeriesAreBounded(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	o := testOptions(vfs.NewMem(), newTestClock())
	o.BackgroundMerge = false // it drops tombstones, too
	s := mustOpen(t, o)
	defer s.Crash()
	s.o.maxTombstones = 4
	deleteOne := func() error {
		x := mustSession(t, s, "b")
		x.Point(key(0), epoch, point.FromInt(1))
		if err := x.Close(); err != nil {
			t.Fatal(err)
		}
		_, err := s.DeleteSeries(ctx, "b", deletion.Choice{Key: key(0)}, false)
		return err
	}
	flush := func() {
		if _, err := s.Flush(ctx); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 4 {
		if err := deleteOne(); err != nil {
			t.Fatal(err)
		}
		if i == 1 {
			flush() // of the four, two are in the MANIFEST and two are to come
		}
	}
	if err := deleteOne(); !errors.Is(err, deletion.ErrTooMany) {
		t.Errorf("a fifth deletion: %v", err)
	}
	for range 3 { // as the error says
		flush()
		if _, err := s.Merge(ctx); err != nil {
			t.Fatal(err)
		}
	}
	if err := deleteOne(); err != nil {
		t.Errorf("after merges: %v", err)
	}
}
