package store

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"pgregory.net/rapid"

	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/model/metric"
	"dalmatiner/internal/store/deletion"
)

// Deletions of other nodes and series that are given up, beside all else that happens to series.
// The last deletion of each counts, in whatever order they come, and one that is not news changes
// nothing. A series that was given up keeps its incarnation and shows only what was written since.
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
	last, forgotten := m.s.columns.Deletions.Highest(), m.s.columns.Deletions.ForgottenUpTo()
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
