package store

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"pgregory.net/rapid"

	"dalmatiner/internal/codec/chunk"
	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/disk/damage"
	"dalmatiner/internal/disk/datadir"
	"dalmatiner/internal/disk/manifest"
	"dalmatiner/internal/disk/segment"
	"dalmatiner/internal/model/incarnation"
	"dalmatiner/internal/model/metric"
	"dalmatiner/internal/store/deletion"
	"dalmatiner/internal/store/snapshot"
	"dalmatiner/internal/write/logrecord"
)

// Whatever is written, deleted, begun anew, flushed, merged, lost and restored, and
// whatever the wall clock does: the incarnation of a series is the clock of its last
// deletion, in memory, in catalogue and segments, and in its digest, and no deletion
// has a lower clock than one before it.
func TestIncarnationIsTheLastDeletion(t *testing.T) {
	t.Parallel()
	steps := []string{"send", "send", "send", "delete", "delete", "delete", "flush", "merge",
		"merge all", "wait", "clock back", "month",
		"reopen", "crash", "lose catalogue", "lose a copy", "lose both copies", "restore", "stored"}
	rapid.Check(t, func(t *rapid.T) {
		m := newForgetModel(t, rapid.Uint64().Draw(t, "seed"),
			rapid.SampledFrom([]int64{0, 0, 30_000}).Draw(t, "ttl"),
			rapid.Bool().Draw(t, "background"), rapid.Bool().Draw(t, "hpts"))
		defer m.end()
		for range rapid.IntRange(1, 25).Draw(t, "steps") {
			m.live(rapid.SampledFrom(steps).Draw(t, "step"))
		}
		m.live("stored")
	})
}

// live is step with those that concern incarnations.
func (m *forgetModel) live(what string) {
	switch what {
	case "clock back":
		if m.ttl == 0 { // else it would show again what has expired
			now := m.clock.Now().Unix()
			m.latest = max(m.latest, now)
			m.clock.Set((now - m.r.Int64N((now-m.from)/2+1)) * int64(time.Second))
			m.s.clock.Advance()
		}
	case "month":
		m.clock.Advance(incarnation.TTL + time.Hour)
		m.recent = m.clock.Now().Unix()
		m.s.clock.Advance()
		m.flush()
	case "lose a copy", "lose both copies":
		m.loseManifest(what == "lose both copies")
	case "restore":
		m.restore()
	case "stored":
		m.checkStored()
		m.verify()
	default:
		m.step(what)
		return
	}
	m.check()
}

// loseManifest goes on without a copy of the MANIFEST, or without both.
func (m *forgetModel) loseManifest(both bool) {
	m.t.Helper()
	m.closeSession()
	m.flush() // an account that only the log has is another test's
	if err := m.s.Close(); err != nil {
		m.t.Fatalf("%v", err)
	}
	names := []string{manifest.FirstName, manifest.SecondName}
	if !both {
		names = names[m.r.IntN(2):][:1]
	}
	for _, name := range names {
		if err := m.fs.Remove(m.s.path(name)); err != nil {
			m.t.Fatalf("%v", err)
		}
	}
	m.s = mustOpen(m.t, m.o)
	m.s.damage = damage.Notes{Logger: m.s.o.Logger} // it is reported
	if both {
		m.checkStartClock()
	}
}

// checkStartClock compares what a start without a MANIFEST knows of deletions with the model. Two
// things stand in the MANIFEST alone until the next segment is written, and where the clock was set
// back they may be missed. One is up to which time deletions are forgotten: without it, a deletion
// is remembered again if its series has not come back since. The other is the time of an earlier
// start without a MANIFEST (TestOnlyAClockThatNobodyHasIsForgotten,
// TestADeletionMayBeRememberedAgain).
func (m *forgetModel) checkStartClock() {
	m.t.Helper()
	b, now, listed := m.s.buckets.Get("b"), m.clock.Now(), m.list()
	for k, was := range m.was {
		if m.lives[k] == 0 && !listed[k] && was > incarnation.ExpiredUpTo(now) &&
			m.s.incarnationOf(b.ID, []byte(k)) == was {
			m.lives[k] = was
		}
	}
	lowest := uint64(now.UnixNano()) // stands for deletions that nobody knows of
	for _, of := range m.lives {
		lowest = max(lowest, of)
	}
	last := m.s.columns.Deletions.Highest()
	if highest := max(m.last, lowest); last < lowest || last > highest {
		m.t.Fatalf("a start without a MANIFEST has %d as the highest clock, want %d to %d", last, lowest,
			highest)
	}
	m.last = last
}

// restore goes on in what a snapshot restores.
func (m *forgetModel) restore() {
	m.t.Helper()
	m.closeSession()
	if _, err := NewOperations(m.s).Snapshot(context.Background(), "s"); err != nil {
		m.t.Fatalf("%v", err)
	}
	from := m.s.path(datadir.Snapshots, "s")
	if err := m.s.Close(); err != nil {
		m.t.Fatalf("%v", err)
	}
	m.o.Dir += "+"
	if _, err := snapshot.Restore(context.Background(),
		snapshot.RestoreOptions{FS: m.fs, From: from, To: m.o.Dir}); err != nil {
		m.t.Fatalf("%v", err)
	}
	m.s = mustOpen(m.t, m.o)
}

// checkLives compares the incarnations in memory, and the digest of a series, with the last
// deletions. Those of series that are not there may be forgotten after their time. That may have
// been over once, before the clock was set back: a start without a MANIFEST goes by what segments
// say of the deletions that had to be remembered when they were written.
func (m *forgetModel) checkLives(listed map[string]bool) {
	m.t.Helper()
	b, now := m.s.buckets.Get("b"), m.clock.Now()
	late := time.Unix(max(m.latest, now.Unix()), 0)
	if last := m.s.columns.Deletions.Highest(); last < m.last {
		m.t.Fatalf("the highest clock is %d, there was %d", last, m.last)
	}
	for i := range 24 {
		k := string(forgetKey(i))
		got, want := m.s.incarnationOf(b.ID, []byte(k)), m.lives[k]
		old := m.ttl > 0 || !listed[k] || !m.listed[k]
		if got == 0 && want != 0 && old && want <= uint64(late.Add(-incarnation.TTL).UnixNano()) {
			m.lives[k], m.was[k], want = 0, want, 0
		}
		// A catalogue that is lost is rebuilt with what has expired, until the next merge.
		if m.ttl > 0 && got != 0 && want == 0 && got == m.was[k] {
			m.lives[k], want = got, got
		}
		if got != want {
			m.t.Fatalf("%s is in incarnation %d, its last deletion was at %d, it is %d",
				metric.Text([]byte(k)), got, want, now.UnixNano())
		}
	}
	m.listed = listed
	k := forgetKey(m.r.IntN(24))
	past := now.Unix()/chunk.Slots + 1
	from := max(past-30, 0)
	if want, got := naiveDigest(m.t, m.s, b.Info(), k, m.lives[string(k)], from, past),
		mustDigest(m.t, m.s, b.Info(), k, from, past); got != want {
		m.t.Fatalf("%s in incarnation %d has the digest %x, want %x", metric.Text(k), m.lives[string(k)],
			got, want)
	}
}

// checkStored compares what catalogue and segments say with the last deletions.
func (m *forgetModel) checkStored() {
	m.t.Helper()
	m.flush()
	defer m.pauseMerges()()
	listed := m.list()
	m.checkLives(listed)
	err := m.s.disk.Catalogue.Load(func(e segment.Series) error {
		if len(e.Key) > 0 && listed[string(e.Key)] && e.Incarnation != m.lives[string(e.Key)] {
			return fmt.Errorf("the catalogue has %s in incarnation %d, want %d", metric.Text(e.Key),
				e.Incarnation, m.lives[string(e.Key)])
		}
		return nil
	})
	if err != nil {
		m.t.Fatalf("%v", err)
	}
	found, since := make(map[string]uint64), make(map[string]uint64)
	for _, seg := range m.s.versions.Latest().Segments {
		err := seg.Reader.Series(func(e segment.Series) error {
			b := m.s.buckets.ID(e.Bucket)
			if e.DeleteSequence == 0 &&
				seg.PurgedThrough() >= m.s.columns.Tombstones(b.ID).DeleteSequence(metric.SeriesID(e.Hash)) {
				if k := string(e.Key); e.Since >= since[k] { // the last definition
					found[k], since[k] = e.Incarnation, e.Since
				}
			}
			return nil
		})
		if err != nil {
			m.t.Fatalf("%v", err)
		}
	}
	for k := range listed {
		if found[k] != m.lives[k] {
			m.t.Fatalf("segments have %s in incarnation %d, want %d", metric.Text([]byte(k)), found[k],
				m.lives[k])
		}
	}
}

// Two stores that get the same points and the same deletions at the same time have
// equal digests, however each flushes and merges, and another deletion changes them.
func TestDigestsAgreeWhateverIsFlushed(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		seed, hpts := rapid.Uint64().Draw(t, "seed"), rapid.Bool().Draw(t, "hpts")
		var two [2]*forgetModel
		for i := range two {
			two[i] = newForgetModel(t, seed, 0, false, hpts)
			defer two[i].end()
		}
		own := []string{"flush", "merge", "merge all", "reopen", "stored"}
		for range rapid.IntRange(1, 12).Draw(t, "steps") {
			what := rapid.SampledFrom([]string{"send", "send", "delete", "wait"}).Draw(t, "step")
			for _, m := range two {
				m.live(what)
				shared := m.r
				m.r = rand.New(rand.NewPCG(seed, rapid.Uint64().Draw(t, "own seed")))
				for range rapid.IntRange(0, 2).Draw(t, "own steps") {
					m.live(rapid.SampledFrom(own).Draw(t, "own step"))
				}
				m.r = shared
			}
		}
		info, err := two[0].s.BucketByName("b")
		if err != nil {
			t.Fatal(err)
		}
		for i := range 24 {
			k := forgetKey(i)
			a, b := mustDigest(t, two[0].s, info, k, 0, 1<<40), mustDigest(t, two[1].s, info, k, 0, 1<<40)
			if a != b || two[0].lives[string(k)] != two[1].lives[string(k)] {
				t.Fatalf("%s: digests %x and %x, incarnations %d and %d", metric.Text(k), a, b,
					two[0].lives[string(k)], two[1].lives[string(k)])
			}
		}
	})
}

// Where there are too many, the oldest deletions are forgotten early, and counted.
func TestTooManyDeletionsAreForgottenEarly(t *testing.T) {
	t.Parallel()
	clock := newTestClock()
	o := testOptions(vfs.NewMem(), clock)
	byHand(&o)
	s := mustOpen(t, o)
	defer func() { s.Crash() }()
	s.o.maxTombstones = 4
	of := func(i int) uint64 { return s.incarnationOf(s.buckets.Get("b").ID, key(i)) }
	for i := range 7 {
		x := mustSession(t, s, "b")
		x.Point(key(i), uint64(clock.Now().Unix()), point.FromInt(1))
		if err := x.Close(); err != nil {
			t.Fatal(err)
		}
		mustFlush(t, s)
		if _, err := s.DeleteSeries(t.Context(), "b", deletion.Choice{Key: key(i)}, false); err != nil {
			t.Fatal(err)
		}
		clock.Advance(time.Hour)
		s.clock.Advance()
		for range 2 {
			mustFlush(t, s)
			if _, err := s.Merge(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	check := func(forgotten int64) {
		t.Helper()
		for i := range 7 {
			if (of(i) == 0) != (i < 3) {
				t.Errorf("series %d is in incarnation %d", i, of(i))
			}
		}
		if st := s.Stats(); st.Deleted.Remembered+st.Deleted.Tombstones != 4 ||
			st.Deleted.Forgotten != forgotten {
			t.Errorf("%d remembered, %d tombstones, %d forgotten", st.Deleted.Remembered,
				st.Deleted.Tombstones, st.Deleted.Forgotten)
		}
	}
	check(3)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = mustOpen(t, o)
	check(0)
}

// A definition in a higher incarnation than the series has says that there was a
// deletion, also where damage took its record.
func TestDefinitionTellsOfALostDeletion(t *testing.T) {
	t.Parallel()
	clock := newTestClock()
	fs := vfs.NewMem()
	o := testOptions(fs, clock)
	byHand(&o)
	s := mustOpen(t, o)
	x := mustSession(t, s, "b")
	for i := range 100 {
		x.Point(key(0), uint64(epoch+i), point.FromInt(1))
		x.Point(key(1), uint64(epoch+i), point.FromInt(1))
	}
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
	mustFlush(t, s)
	b := s.buckets.Get("b")
	n := incarnation.Next(0, clock.Now())
	for i := range 2 { // as the log has it without the record of the deletion of the first
		ref, _ := s.columns.Index.Lookup(b.SeriesID(key(i)))
		if _, err := s.disk.Log.Append(logrecord.AppendSeries(nil, b.ID, ref.Group(), ref.Column(),
			uint64(1-i)*n, key(i))); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.disk.Log.Sync(); err != nil {
		t.Fatal(err)
	}
	s.Crash()
	for range 2 {
		s = mustOpen(t, o)
		b = s.buckets.Get("b")
		if got := b.Incarnations.Get(b.SeriesID(key(0))); got != n || s.columns.Deletions.Highest() < n {
			t.Errorf("incarnation %d, want %d; the highest is %d", got, n, s.columns.Deletions.Highest())
		}
		for i, w := range readAll(t, s, "b", 0, epoch, 100) {
			if w != 0 {
				t.Fatalf("slot %d of the deleted series holds %x", i, w)
			}
		}
		for i, w := range readAll(t, s, "b", 1, epoch, 100) {
			if w != point.FromInt(1) {
				t.Fatalf("slot %d of the other series holds %x", i, w)
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// incarnationOf returns that of a series as the store has it.
func (s *Store) incarnationOf(bucket uint64, key []byte) uint64 {
	b := s.buckets.ID(bucket)
	return b.Incarnations.Get(b.SeriesID(key))
}
