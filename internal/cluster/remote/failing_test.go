package remote

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"dalmatiner/internal/cluster/replication"
	"dalmatiner/internal/cluster/ring"
	"dalmatiner/internal/codec/chunk"
	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/write"
)

// testContext ends a test that hangs.
func testContext(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// TestASilentNodeIsHedged: a node that takes requests and says nothing holds nobody up.
func TestASilentNodeIsHedged(t *testing.T) {
	w := newWorld(t, 3, 3, 2)
	w.fill(rand.New(rand.NewPCG(1, 1)), false)
	owners := w.owners("b", "m.1")
	owners[1].set(func(n *node) { n.silent = true })
	s := seriesOf(t, owners[0].remote.Source(), "b", "m.1")
	want := seriesOf(t, w.one.source(), "b", "m.1")
	got, model := make([]uint64, 5000), make([]uint64, 5000)
	if _, err := s.Read(testContext(t), begin, got); err != nil {
		t.Fatal(err)
	}
	_, err := want.Read(t.Context(), begin, model)
	w.must(err)
	headers, headersModel := make([]chunk.Header, 10), make([]chunk.Header, 10)
	if _, err := s.Aggregate(testContext(t), begin, 500, headers); err != nil {
		t.Fatal(err)
	}
	_, err = want.Aggregate(t.Context(), begin, 500, headersModel)
	w.must(err)
	for i := range model {
		if got[i] != model[i] || headers[i/500] != headersModel[i/500] {
			t.Fatalf("slot %d: %x, %+v", i, got[i], headers[i/500])
		}
	}
	if found, err := s.Exists(testContext(t)); !found || err != nil {
		t.Error(found, err)
	}
	owners[2].set(func(n *node) { n.silent = true })
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if _, err := s.Read(ctx, begin, got); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("two are silent: %v", err)
	}
}

// TestTooFewCopies: the error says of what, how many were needed, who answered and who did not.
func TestTooFewCopies(t *testing.T) {
	w := newWorld(t, 3, 3, 2)
	w.fill(rand.New(rand.NewPCG(1, 1)), false)
	w.nodes[1].set(func(n *node) { n.down = true })
	w.nodes[2].set(func(n *node) { n.down = true })
	s := seriesOf(t, w.nodes[0].remote.Source(), "b", "m.1")
	_, readErr := s.Read(testContext(t), begin, make([]uint64, 10))
	_, aggregateErr := s.Aggregate(testContext(t), begin, 500, make([]chunk.Header, 10))
	_, existErr := s.Exists(testContext(t))
	for _, err := range []error{readErr, aggregateErr, existErr} {
		var few *FewError
		if !errors.As(err, &few) || few.R != 2 || len(few.Answered) != 1 || few.Answered[0] != "n0" ||
			len(few.Missing) != 2 ||
			!strings.Contains(err.Error(), "'m'.'1'") || !strings.Contains(err.Error(), "n1") ||
			!strings.Contains(err.Error(), "n2") {
			t.Errorf("%v", err)
		}
	}
	b, err := w.nodes[0].remote.Source().Bucket("b")
	w.must(err)
	if err := b.Metrics(testContext(t), nil, func([]byte) bool { return true }); err == nil {
		t.Error("metrics of too few copies are listed")
	}
	w.nodes[1].set(func(n *node) { n.down = false })
	if _, err := s.Read(testContext(t), begin, make([]uint64, 10)); err != nil {
		t.Errorf("one is back: %v", err)
	}
}

// TestWhoHasNotHeardDoesNotRead: it does not know who keeps hints, so it does not ask owners only.
func TestWhoHasNotHeardDoesNotRead(t *testing.T) {
	w := newWorld(t, 3, 2, 1)
	w.fill(rand.New(rand.NewPCG(1, 1)), false)
	for _, n := range w.nodes { // one of them owns no copy
		n.set(func(n *node) { n.notYet = true })
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		if _, err := seriesOf(t, n.remote.Source(), "b", "m.2").Read(ctx, begin,
			make([]uint64, 10)); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("it reads: %v", err)
		}
		b, err := n.remote.Source().Bucket("b")
		w.must(err)
		if err := b.Metrics(ctx, nil, func([]byte) bool {
			return true
		}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("it lists: %v", err)
		}
		cancel()
		n.set(func(n *node) { n.notYet = false })
	}
}

// TestRule8WhoLeavesAsksOneThatStays: its copy alone would do, but it may have left, and others
// acknowledge without it. Those who know that refuse the ring it asks under.
func TestRule8WhoLeavesAsksOneThatStays(t *testing.T) {
	for _, copies := range []int{1, 2} {
		w := newWorld(t, 3, copies, 1)
		w.fill(rand.New(rand.NewPCG(1, 1)), false)
		v, err := w.view.Plan([]ring.Change{{Action: ring.Leave, Node: "n0"}}, ring.Sizes{},
			rand.New(rand.NewPCG(1, 1)))
		w.must(err)
		w.view, err = w.view.Commit(v)
		w.must(err)
		leaver := w.nodes[0]
		want, got := make([]uint64, 100), make([]uint64, 100)
		for _, key := range metricsOf(t, leaver.remote.Source(), "b", nil) {
			_, err := seriesOf(t, w.one.remote.Source(), "b", key).Read(t.Context(), begin, want)
			w.must(err)
			if _, err := seriesOf(t, leaver.remote.Source(), "b", key).Read(t.Context(), begin,
				got); err != nil || !slices.Equal(got, want) {
				t.Errorf("%s while it leaves: %v, the same %t", key, err, slices.Equal(got, want))
			}
		}
		for _, n := range w.nodes[1:] {
			n.set(func(n *node) { n.notYet = true }) // as with another ring
		}
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		for i := range 12 {
			s := seriesOf(t, leaver.remote.Source(), "b", fmt.Sprint("m.", i))
			if _, err := s.Read(ctx, begin, got); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("n = %d: it reads: %v", copies, err)
			}
			if _, err := s.Aggregate(ctx, begin, 10, make([]chunk.Header, 10)); !errors.Is(err,
				context.DeadlineExceeded) {
				t.Errorf("n = %d: it aggregates: %v", copies, err)
			}
		}
		b, err := leaver.remote.Source().Bucket("b")
		w.must(err)
		if err := b.Metrics(ctx, nil, func([]byte) bool {
			return true
		}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("n = %d: it lists: %v", copies, err)
		}
		cancel()
	}
}

// TestNodesThatAreBehind refuse until they are not.
func TestNodesThatAreBehind(t *testing.T) {
	w := newWorld(t, 2, 2, 2)
	w.fill(rand.New(rand.NewPCG(1, 1)), false)
	for _, n := range w.nodes {
		n.set(func(n *node) { n.notYet = true })
		time.AfterFunc(100*time.Millisecond, func() { n.set(func(n *node) { n.notYet = false }) })
		got := make([]uint64, 100)
		if _, err := seriesOf(t, w.nodes[0].remote.Source(), "b", "m.2").Read(testContext(t), begin,
			got); err != nil {
			t.Fatal(err)
		}
		n.set(func(n *node) { n.notYet = true })
		time.AfterFunc(100*time.Millisecond, func() { n.set(func(n *node) { n.notYet = false }) })
		if list := metricsOf(t, w.nodes[0].remote.Source(), "b", nil); len(list) != 12 {
			t.Fatalf("%q", list)
		}
	}
	q := request{kind: askExists, version: ring.Version{Number: 77}, name: "b", bucket: 1}
	if err := w.nodes[0].remote.Serve(t.Context(), nodeID(1), q.append(nil), nil); err == nil ||
		!strings.Contains(err.Error(), "77-") {
		t.Errorf("another ring: %v", err)
	}
}

// TestBucketsOfOneNode: a node that has not heard of a bucket has nothing of it, and one that is
// gone here ends reads.
func TestBucketsOfOneNode(t *testing.T) {
	w := newWorld(t, 3, 3, 2)
	n := w.nodes[0]
	for _, n := range w.nodes[:2] { // any two of the three have it
		n.write("new", "m", 0, 10, func(int64) uint64 { return point.FromInt(1) })
	}
	s, words := seriesOf(t, n.remote.Source(), "new", "m"), make([]uint64, 10)
	if _, err := s.Read(testContext(t), begin, words); err != nil || words[9] != point.FromInt(1) {
		t.Fatalf("%x, %v", words, err)
	}
	if got := metricsOf(t, n.remote.Source(), "new", nil); len(got) != 1 || got[0] != "'m'" {
		t.Errorf("metrics %q", got)
	}
	b, err := n.remote.Source().Bucket("new")
	w.must(err)
	w.must(n.store.DeleteBucket("new"))
	n.write("new", "m", 0, 10, func(int64) uint64 { return point.FromInt(2) })
	_, readErr := s.Read(testContext(t), begin, words)
	_, addErr := s.Aggregate(testContext(t), begin, 10, make([]chunk.Header, 1))
	_, existErr := s.Exists(testContext(t))
	listErr := b.Metrics(testContext(t), nil, func(key []byte) bool {
		t.Errorf("a metric %q", key)
		return true
	})
	for i, err := range []error{readErr, addErr, existErr, listErr} {
		if !errors.Is(err, buckets.ErrUnknown) {
			t.Errorf("call %d: %v", i, err)
		}
	}
	if _, err := n.remote.Source().Bucket("none"); !errors.Is(err, buckets.ErrUnknown) {
		t.Error(err)
	}
}

// TestTimestamps: the larger pair stays, and belongs together.
func TestTimestamps(t *testing.T) {
	w := newWorld(t, 3, 3, 3)
	for i, n := range w.nodes {
		info, err := n.store.CreateBucket(buckets.Info{Name: "t", Resolution: 1000, PPF: 3600,
			HPTS: true})
		w.must(err)
		x, err := n.store.NewSession(info)
		w.must(err)
		for slot := range int64(100) {
			word := point.FromInt(slot)
			if slot%4 == int64(i) {
				word = point.FromInt(slot + 1000) // the largest of the three
			}
			if slot%4 != 3 || i > 0 {
				x.TimestampedPoint(key(t, "m"), uint64(begin+slot), word, uint64(begin+slot)*1e9+uint64(i*1000))
			}
		}
		w.must(x.Close())
	}
	info, err := w.nodes[0].store.BucketByName("t")
	w.must(err)
	id := w.nodes[1].idOf("t", "m")
	later, _ := info.TimestampWord(begin+50, (begin+50)*1e9+77)
	w.nodes[1].hints = []replication.Row{
		{Series: id, Slot: begin + 50, Value: replication.Value{Word: point.FromInt(5000), Time: later}}}
	for _, n := range w.nodes {
		values, times := make([]uint64, 100), make([]uint64, 100)
		w.must(n.remote.ReadTimestamped(testContext(t), info, key(t, "m"), begin, values, times))
		for slot := range int64(100) {
			want, at := point.FromInt(slot+1000), uint64(begin+slot)*1e9+uint64(slot%4*1000)
			if slot%4 == 3 { // equal words: the later one
				want, at = point.FromInt(slot), uint64(begin+slot)*1e9+2000
			}
			if slot == 50 {
				want, at = point.FromInt(5000), uint64(begin+slot)*1e9+77
			}
			if values[slot] != want || times[slot] != at {
				t.Fatalf("slot %d: %x at %d, want %x at %d", slot, values[slot], times[slot], want, at)
			}
		}
	}
}

// TestStaleMarkers: they are laid over each other as the least of words, and only who asks for them
// sees them.
func TestStaleMarkers(t *testing.T) {
	for _, hpts := range []bool{false, true} {
		w := newWorld(t, 3, 3, 3)
		var info buckets.Info
		for i, n := range w.nodes {
			var err error
			info, err = n.store.CreateBucket(buckets.Info{Name: "t", Resolution: 1000, PPF: 3600,
				HPTS: hpts})
			w.must(err)
			x, err := n.store.Intake().NewSession(info, write.Options{Stale: true})
			w.must(err)
			for slot := range uint64(99) {
				// Of each three slots one has a value on one node, one has markers only, and one nothing.
				if slot%3 == 0 && i == 1 {
					x.TimestampedPoint(key(t, "m"), begin+slot, point.FromInt(int64(slot)), (begin+slot)*1e9+5)
				} else if slot%3 < 2 && i < 2 {
					x.Point(key(t, "m"), begin+slot, point.Stale)
				}
			}
			w.must(x.Close())
		}
		w.nodes[1].hints = []replication.Row{
			{Series: w.nodes[1].idOf("t", "m"), Slot: begin + 2,
				Value: replication.Value{Word: point.Stale}}}
		for _, n := range w.nodes {
			plain, marked, values, times := make([]uint64, 99), make([]uint64, 99), make([]uint64, 99),
				make([]uint64, 99)
			s := seriesOf(t, n.remote.Source(), "t", "m")
			_, err := s.Read(testContext(t), begin, plain)
			w.must(err)
			_, err = s.WithStale().Read(testContext(t), begin, marked)
			w.must(err)
			w.must(n.remote.ReadWithStale(testContext(t), info, key(t, "m"), begin, values, times))
			for slot := range uint64(99) {
				want := [3]uint64{point.FromInt(int64(slot)), point.Stale, point.Unset}[slot%3]
				at := (begin + slot) * 1e9
				switch {
				case slot == 2:
					want = point.Stale
				case want == point.Unset:
					at = 0
				case want > point.Stale && hpts:
					at += 5
				}
				hidden := want
				if want == point.Stale {
					hidden = point.Unset
				}
				if plain[slot] != hidden || marked[slot] != want || values[slot] != want || times[slot] != at {
					t.Fatalf("slot %d: %x, with markers %x and %x at %d, want %x at %d", slot, plain[slot],
						marked[slot], values[slot], times[slot], want, at)
				}
			}
			var all [1]chunk.Header
			if _, err := s.Aggregate(testContext(t), begin, 99, all[:]); err != nil || all[0].Count != 33 ||
				all[0].LastOff != 96 {
				t.Fatalf("aggregate %+v, %v", all[0], err)
			}
		}
	}
}

// TestPlainReads are those of protocols that name bucket and metric each time.
func TestPlainReads(t *testing.T) {
	w := newWorld(t, 4, 2, 2)
	w.fill(rand.New(rand.NewPCG(1, 1)), true)
	info, err := w.one.store.BucketByName("b")
	w.must(err)
	for _, n := range w.nodes {
		for _, name := range []string{"m.1", "m.7", "m.8", "none"} {
			first, past, err := n.remote.Extent(testContext(t), info, key(t, name), begin-1000, span+5000)
			if err != nil || name == "none" && first != past || name != "none" &&
				(first > begin || past < begin+span) {
				t.Errorf("%s: [%d, %d), %v", name, first-begin, past-begin, err)
			}
			got, times, want := make([]uint64, 3000), make([]uint64, 3000), make([]uint64, 3000)
			w.must(w.one.store.Read(t.Context(), info, key(t, name), begin+4000, want))
			w.must(n.remote.Read(testContext(t), info, key(t, name), begin+4000, got))
			for i := range got {
				if got[i] != want[i] {
					t.Fatalf("%s: slot %d is %x, want %x", name, i, got[i], want[i])
				}
			}
			w.must(n.remote.ReadTimestamped(testContext(t), info, key(t, name), begin+4000, got, times))
			for i := range got {
				if got[i] != want[i] || got[i] != 0 && times[i] != (begin+4000+uint64(i))*1e9 {
					t.Fatalf("%s: slot %d is %x at %d", name, i, got[i], times[i])
				}
			}
		}
	}
}

// TestDifferencesAreTold: somebody may repair them. Chunks that points come in for are left out.
func TestDifferencesAreTold(t *testing.T) {
	w := newWorld(t, 3, 3, 3)
	for i, n := range w.nodes {
		n.write("b", "m.1", 0, span, func(slot int64) uint64 {
			if i == 1 && (slot/chunk.Slots == 3 || slot/chunk.Slots == 5 || slot/chunk.Slots == 13) {
				return 0
			}
			return value(1)(slot)
		})
		n.write("b", "m.2", 0, span, value(2))
	}
	of := w.nodes[2]
	for _, name := range []string{"m.1", "m.2"} {
		_, err := seriesOf(t, of.remote.Source(), "b", name).Aggregate(testContext(t), begin, 60,
			make([]chunk.Header, span/60))
		w.must(err)
	}
	id := of.idOf("b", "m.1")
	if got, want := of.differs[id],
		[2]int64{begin/chunk.Slots + 3, begin/chunk.Slots + 6}; got != want || len(of.differs) != 1 {
		t.Errorf("told of %v, want %v of one series", of.differs, want)
	}
}
