package remote

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"dalmatiner/internal/cluster/replication"
	"dalmatiner/internal/codec/chunk"
	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/query"
	"dalmatiner/internal/query/source"
)

func (w *world) engine(of source.Source) *query.Engine {
	return &query.Engine{Source: of, Now: func() time.Time {
		return w.now
	}, Readers: query.NewReaders(2)}
}

// requireSame compares two answers bit for bit, and returns the first.
func (w *world) requireSame(text string, opt query.Options, a, b source.Source) *query.Result {
	w.t.Helper()
	got, gotErr := w.engine(a).Query(w.t.Context(), text, opt)
	want, wantErr := w.engine(b).Query(w.t.Context(), text, opt)
	if gotErr != nil || wantErr != nil {
		if fmt.Sprint(gotErr) != fmt.Sprint(wantErr) {
			w.t.Fatalf("%s: the error is %v, of one store %v", text, gotErr, wantErr)
		}
		return nil
	}
	if len(got.Series) != len(want.Series) || !reflect.DeepEqual(got.Missing, want.Missing) {
		w.t.Fatalf("%s: %d series, %v missing; of one store %d, %v", text, len(got.Series), got.Missing,
			len(want.Series), want.Missing)
	}
	for i := range got.Series {
		g, o := got.Series[i], want.Series[i]
		for k, pair := range [][2][]float64{{g.Values, o.Values}, {g.Confidence, o.Confidence},
			{g.Min, o.Min}, {g.Max, o.Max}} {
			if !slices.EqualFunc(pair[0], pair[1], func(x, y float64) bool {
				return math.Float64bits(x) == math.Float64bits(y)
			}) {
				w.t.Fatalf("%s %+v: series %s, %d, has\n%v, of one store\n%v", text, opt, g.Name, k, pair[0],
					pair[1])
			}
		}
		g.Values, g.Confidence, g.Min, g.Max = o.Values, o.Confidence, o.Min, o.Max
		if !reflect.DeepEqual(g, o) {
			w.t.Fatalf("%s: series %+v, of one store %+v", text, g, o)
		}
	}
	return got
}

// texts are queries over the series m.0 to m.11 of bucket b.
var texts = []string{
	"m.1 BUCKET b", "m.* BUCKET b", "sum(m.* BUCKET b)", "avg(avg(m.* BUCKET b, 60s))",
	"sum(m.7 BUCKET b, 720s)", "sum(m.* BUCKET b, 7200s)",
	"max(m.* BUCKET b, 3h)", "min(m.3 BUCKET b, 17s)", "count(m.11 BUCKET b, 1000s)",
	"first(m.5 BUCKET b, 999s)", "last(m.9 BUCKET b, 16s)",
	"avg(m.* BUCKET b, 16s)", "percentile(m.3 BUCKET b, 0.9, 1000s)", "derivate(m.3 BUCKET b)",
	"avg(m.3 BUCKET b SHIFT BY 4321s, 100s)",
	"nothing.here BUCKET b", "m.77 BUCKET b + m.1 BUCKET b", "m.1 BUCKET bb", "m.1 BUCKET only",
}

// compare runs queries over the whole range, and over random ones.
func (w *world) compare(of *node, seed uint64, ranges int) {
	w.t.Helper()
	for _, text := range texts {
		for _, opt := range []query.Options{{}, {Confidence: true, NoAggregates: true}} {
			w.requireSame(fmt.Sprintf("SELECT %s BETWEEN %d000 AND %d000", text, begin-100,
				begin+span+50), opt, of.remote.Source(), w.one.source())
		}
	}
	random := rand.New(rand.NewPCG(seed, 2))
	for range ranges {
		from := begin + random.Int64N(span)
		past := from + 1 + random.Int64N(begin+span-from+100)
		fn := []string{"sum", "avg", "min", "max", "count", "first", "last"}[random.IntN(7)]
		what := []string{"m.*", "m.3", "m.7", "m.11", "m.2", "m.1"}[random.IntN(6)]
		step := []int64{16, 60, 720, 1000, 7200, 99_999}[random.IntN(6)]
		text := fmt.Sprintf("SELECT %s(%s BUCKET b, %ds) BETWEEN %d000 AND %d000", fn, what, step, from,
			past)
		w.requireSame(text, query.Options{Confidence: random.IntN(2) == 0}, of.remote.Source(),
			w.one.source())
	}
}

// part is slots of a series that a copy has, and what it has in place of the values.
type part struct {
	from, past int64
	smaller    func(slot int64) bool // it has a smaller word than another
}

// fill writes m.0 to m.11 into all owners. Of each series one copy may have gaps or smaller words,
// which another has whole: a read of two finds all.
func (w *world) fill(random *rand.Rand, spoil bool) {
	w.t.Helper()
	for _, n := range append(slices.Clone(w.nodes), w.one) {
		n.write("only", "left.here", 0, 10, value(100))
		_, err := n.store.EnsureBucket("b")
		w.must(err)
	}
	type seriesWriter struct {
		n    *node
		name string
		of   func(int64) uint64
		part part
	}
	var list []seriesWriter
	for i := range 12 {
		name, of := fmt.Sprintf("m.%d", i), value(i)
		list = append(list, seriesWriter{w.one, name, of, part{0, span, nil}})
		owners := w.owners("b", name)
		bad := random.IntN(len(owners))
		for k, n := range owners {
			p := part{0, span, nil}
			if spoil && k == bad {
				switch i % 4 {
				case 0: // not a point
					continue
				case 1:
					p.past = random.Int64N(span)
				case 2:
					p.from = random.Int64N(span)
				case 3:
					p.smaller = func(slot int64) bool { return slot/100%9 == 3 }
				}
			}
			list = append(list, seriesWriter{n, name, of, p})
		}
	}
	for at, step := int64(0), int64(1500); at < span; at += step {
		for _, wr := range list {
			wr.n.write("b", wr.name, max(at, wr.part.from), min(at+step, wr.part.past),
				func(slot int64) uint64 {
					word := wr.of(slot)
					if word != 0 && wr.part.smaller != nil && wr.part.smaller(slot) {
						return point.FromInt(-5) // any integer is a smaller word than any float
					}
					return word
				})
		}
		for i, n := range append(slices.Clone(w.nodes), w.one) {
			if at+step < span && (at/step+int64(i))%3 != 0 {
				n.flush()
			}
			if (at/step+int64(i))%4 == 3 {
				n.merge()
			}
		}
	}
}

// TestCopiesAnswerAsOneStore: copies give every answer of one store that has everything, wherever
// it is asked. They may miss points, have smaller words, or lie on a node that is down.
func TestCopiesAnswerAsOneStore(t *testing.T) {
	for _, tt := range []struct{ members, copies, r int }{{1, 1, 1}, {3, 1, 1}, {3, 3, 2}, {5, 3, 2},
		{3, 3, 3}} {
		t.Run(fmt.Sprintf("%d nodes, n=%d, r=%d", tt.members, tt.copies, tt.r), func(t *testing.T) {
			w := newWorld(t, tt.members, tt.copies, tt.r)
			w.fill(rand.New(rand.NewPCG(1, uint64(tt.members))), tt.r > 1)
			for i, n := range w.nodes {
				if got, want := metricsOf(t, n.remote.Source(), "b", nil),
					metricsOf(t, w.one.source(), "b", nil); !slices.Equal(got, want) {
					t.Fatalf("metrics %q, of one store %q", got, want)
				}
				w.compare(n, uint64(i), 20)
			}
			if tt.r < tt.copies {
				// Copies that were spoilt stay so: the other two are whole only while all are up.
				w2 := newWorld(t, tt.members, tt.copies, tt.r)
				w2.fill(rand.New(rand.NewPCG(1, 1)), false)
				w2.nodes[0].set(func(n *node) { n.down = true })
				for i, n := range w2.nodes[1:] {
					if got, want := metricsOf(t, n.remote.Source(), "b", nil),
						metricsOf(t, w2.one.source(), "b", nil); !slices.Equal(got, want) {
						t.Fatalf("metrics %q, of one store %q", got, want)
					}
					w2.compare(n, uint64(i), 15)
				}
			}
		})
	}
}

// TestRule5HintsAnswerReads: all reads meet points acknowledged by one owner and by the stand-in
// of another, also after that owner is back. Nodes that keep hints answer besides, and before the
// owners.
func TestRule5HintsAnswerReads(t *testing.T) {
	w := newWorld(t, 5, 3, 2)
	w.fill(rand.New(rand.NewPCG(3, 3)), false)
	// larger than any word that is there
	late := func(slot int64) uint64 { return point.EvenWord(point.FromFloat(float64(1e18 + slot))) }
	// nobody but these two knows the second one
	for _, name := range []string{"m.3", "m.77"} {
		id, owners := w.one.idOf("b", name), w.owners("b", name)
		w.one.write("b", name, 3000, 3100, late)
		owners[len(owners)-1].write("b", name, 3000, 3100, late)
		keeper := w.keeper("b", name)
		keeper.set(func(n *node) {
			n.keys = append(n.keys, key(t, name))
			for slot := int64(3000); slot < 3100; slot++ {
				n.hints = append(n.hints, replication.Row{Series: id, Slot: uint64(begin + slot),
					Value: replication.Value{Word: late(slot)}})
			}
		})
		// What it has itself of a series that it does not own is old: nobody shows it.
		keeper.write("b", name, 4000, 4001, func(int64) uint64 { return point.FromFloat(1e30) })
	}
	for _, n := range w.nodes {
		if got, want := metricsOf(t, n.remote.Source(), "b", nil),
			metricsOf(t, w.one.source(), "b", nil); !slices.Equal(got, want) {
			t.Errorf("metrics %q, of one store %q", got, want)
		}
		w.compare(n, 9, 10)
	}
	// Without the one that keeps them all three owners have to answer, and two of them are not enough.
	owners, keeper := w.owners("b", "m.3"), w.keeper("b", "m.3")
	keeper.set(func(n *node) { n.down = true })
	got := make([]uint64, 100)
	read := func() error {
		_, err := seriesOf(t, owners[0].remote.Source(), "b", "m.3").Read(testContext(t), begin+3000, got)
		return err
	}
	if err := read(); err != nil || got[7] != late(3007) {
		t.Errorf("who keeps hints is down: %x, %v", got[7], err)
	}
	owners[2].set(func(n *node) { n.down = true })
	var few *FewError
	if err := read(); !errors.As(err, &few) || few.R != 2 || few.Hints != 1 || len(few.Missing) != 2 ||
		!strings.Contains(err.Error(), "keeps hints") {
		t.Errorf("and an owner, too: %v", err)
	}
}

// TestOwnersAreAskedBehindHints: a hint that is delivered during a read is at the owner when that
// one is asked.
func TestOwnersAreAskedBehindHints(t *testing.T) {
	w := newWorld(t, 4, 2, 1)
	w.fill(rand.New(rand.NewPCG(3, 3)), false)
	owners, keeper := w.owners("b", "m.3"), w.keeper("b", "m.3")
	word := point.FromFloat(1e18)
	early := 0
	keeper.set(func(n *node) {
		n.hints = []replication.Row{
			{Series: w.one.idOf("b", "m.3"), Slot: begin + 3000, Value: replication.Value{Word: word}}}
		n.serving = func() { // it delivers, and forgets
			for range 1000 {
				runtime.Gosched() // who asks owners at the same time does so now
			}
			early = owners[0].times() + owners[1].times()
			keeper.set(func(n *node) { n.hints = nil })
			for _, o := range owners {
				o.write("b", "m.3", 3000, 3001, func(int64) uint64 { return word })
			}
		}
	})
	var reader *node
	for _, n := range w.nodes {
		if n != keeper && !slices.Contains(owners, n) {
			reader = n
		}
	}
	got := make([]uint64, 1)
	before := owners[0].times() + owners[1].times()
	if _, err := seriesOf(t, reader.remote.Source(), "b", "m.3").Read(testContext(t), begin+3000,
		got); err != nil || got[0] != word {
		t.Errorf("%x is read, %v", got[0], err)
	}
	if early != before {
		t.Errorf("owners were asked %d times before the keeper answered", early-before)
	}
}

// TestADeletedCopyIsUnset: what a copy of a lower incarnation has was deleted.
func TestADeletedCopyIsUnset(t *testing.T) {
	w := newWorld(t, 3, 3, 3)
	w.fill(rand.New(rand.NewPCG(4, 4)), false)
	w.one.deleteSeries("b", "m.3")
	w.owners("b", "m.3")[1].deleteSeries("b", "m.3")
	w.one.deleteSeries("b", "m.5") // and written again, at one copy
	w.owners("b", "m.5")[0].deleteSeries("b", "m.5")
	for _, n := range []*node{w.one, w.owners("b", "m.5")[0]} {
		n.write("b", "m.5", 5000, 6000, value(55))
	}
	for _, n := range w.nodes {
		w.compare(n, 5, 10)
		for name, want := range map[string]bool{"m.3": false, "m.5": true, "m.6": true, "m.99": false} {
			if got, err := seriesOf(t, n.remote.Source(), "b", name).Exists(t.Context()); got != want ||
				err != nil {
				t.Errorf("%s exists: %v, %v", name, got, err)
			}
		}
	}
}

// TestHolesAreFilledFromCopies: damage of copies takes nothing that another has, and what nobody
// has is named as one store names it.
func TestHolesAreFilledFromCopies(t *testing.T) {
	for damaged := 1; damaged <= 3; damaged++ {
		w := newWorld(t, 3, 3, 2)
		nodes := append(slices.Clone(w.nodes), w.one)
		hurt := slices.Concat(nodes[:damaged], nodes[3:])
		for _, later := range []int64{0, 1} { // the second time it is late
			for _, n := range nodes {
				n.write("h", "h.0", 1000*later, 5000-3000*later, func(slot int64) uint64 {
					return point.FromInt(slot*2 + later)
				})
				lost := n.flush()
				if later == 1 && slices.Contains(hurt, n) && (n != w.one || damaged == 3) {
					w.must(n.store.Close())
					w.must(n.o.FS.Remove("/data/" + lost))
					n.open()
				}
			}
		}
		for _, text := range []string{"h.0 BUCKET h", "sum(h.0 BUCKET h, 60s)",
			"avg(h.0 BUCKET h, 3600s)", "max(h.0 BUCKET h, 1000s)"} {
			text := fmt.Sprintf("SELECT %s BETWEEN %d000 AND %d000", text, begin, begin+5000)
			for _, opt := range []query.Options{{}, {NoAggregates: true, Confidence: true}, {Older: true}} {
				for _, n := range w.nodes {
					r := w.requireSame(text, opt, n.remote.Source(), w.one.source())
					if h := r.Series[0].Unknown; (h != nil) != (damaged == 3) || h != nil &&
						h.Slots != 2*chunk.Slots {
						t.Errorf("%d copies are damaged, %s: unknown is %v", damaged, text, h)
					}
				}
			}
		}
	}
}

// TestOverConnections: real connections between the nodes give the same.
func TestOverConnections(t *testing.T) {
	w := newWorld(t, 3, 3, 2)
	w.fill(rand.New(rand.NewPCG(8, 8)), true)
	w.connect(t)
	for i, n := range w.nodes {
		if got, want := metricsOf(t, n.remote.Source(), "b", nil),
			metricsOf(t, w.one.source(), "b", nil); !slices.Equal(got, want) {
			t.Fatalf("metrics %q, of one store %q", got, want)
		}
		w.compare(n, uint64(i), 5)
	}
}
