package node

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"dalmatiner/internal/codec/chunk"
	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/model/metric"
	"dalmatiner/internal/query"
	"dalmatiner/internal/query/local"
	"dalmatiner/internal/query/source"
	"dalmatiner/internal/store"
	"dalmatiner/internal/tags"
)

// pairSlots is how many slots of a series the tests of two nodes write, from slot pairFrom on:
// the last of them stay in the head.
const (
	pairFrom  = 1_700_000_000 / chunk.Slots * chunk.Slots
	pairSlots = 24 * chunk.Slots
	pairKinds = 4 // of series, by where they lie
)

// pairNode is a node without listeners, whose store flushes and merges when it is told to.
type pairNode struct {
	t     *testing.T
	o     store.Options
	now   atomic.Int64 // unix s
	store *store.Store
}

func newPairNode(t *testing.T) *pairNode {
	p := &pairNode{t: t, o: store.DefaultOptions("/data")}
	p.now.Store(pairFrom)
	p.o.FS, p.o.Logger = vfs.NewMem(), slog.New(slog.DiscardHandler)
	p.o.Now = func() time.Time { return time.Unix(p.now.Load(), 0) }
	p.o.MinFree, p.o.BackgroundMerge, p.o.FlushInterval, p.o.MaxFuture = 0, false, math.MaxInt64,
		1000*time.Hour
	p.open()
	t.Cleanup(func() { p.must(p.store.Close()) })
	return p
}

func (p *pairNode) must(err error) {
	p.t.Helper()
	if err != nil {
		p.t.Fatal(err)
	}
}

func (p *pairNode) open() {
	p.t.Helper()
	var err error
	p.store, err = store.Open(p.o)
	p.must(err)
}

// source is what queries of the node read.
func (p *pairNode) source() source.Source {
	return local.New(local.Options{Store: p.store, Tags: tags.New()})
}

// write sends the slots [from, past) of a series, as value has them.
func (p *pairNode) write(bucket, name string, from, past int64, value func(slot int64) uint64) {
	p.t.Helper()
	info, err := p.store.EnsureBucket(bucket)
	p.must(err)
	x, err := p.store.NewSession(info)
	p.must(err)
	for slot := from; slot < past; slot++ {
		if w := value(slot); w != point.Unset {
			x.Point(pairKey(p.t, name), uint64(pairFrom+slot), w)
		}
	}
	p.must(x.Close())
}

func (p *pairNode) flush() string {
	p.t.Helper()
	r, err := p.store.Flush(p.t.Context())
	p.must(err)
	return r.Segment
}

func pairKey(t *testing.T, name string) []byte {
	t.Helper()
	k, err := metric.Key(strings.Split(name, ".")...)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// pairValue is the word of a slot of series n: integers, floats whose sums depend on their
// order, and gaps.
func pairValue(n int) func(slot int64) uint64 {
	return func(slot int64) uint64 {
		h := uint64(slot+1)*0x9e3779b97f4a7c15 ^ uint64(n)*0xbf58476d1ce4e5b9
		h ^= h >> 29
		switch {
		case h%11 == 0 || slot/500%7 == int64(n%7):
			return point.Unset
		case n%2 == 0:
			return point.FromInt(int64(h % 100_000))
		}
		return point.FromFloat(float64(h%1_000_003) / 7 * math.Pow(10, float64(h>>32%9)))
	}
}

// split says which slots of series n a node has: of each kind one has all, the other all,
// both all, or each a half of which the two overlap.
func split(node, n int) (from, past int64) {
	switch n % pairKinds {
	case 0, 1:
		if n%pairKinds != node {
			return 0, 0
		}
	case 3:
		if node == 0 {
			return 0, pairSlots/2 + 100
		}
		return pairSlots/2 - 333, pairSlots
	}
	return 0, pairSlots
}

// newPair returns a node that has everything, and two that have it together. They flush and
// merge at other times.
func newPair(t *testing.T) (one *pairNode, two [2]*pairNode) {
	const series = 3 * pairKinds
	one, two[0], two[1] = newPairNode(t), newPairNode(t), newPairNode(t)
	for i, p := range []*pairNode{one, two[0], two[1]} {
		for begin, step := int64(0), int64(1500+1001*i); begin < pairSlots; begin += step {
			end := min(begin+step, pairSlots)
			for n := range series {
				from, past := int64(0), int64(pairSlots)
				if i > 0 {
					from, past = split(i-1, n)
				}
				p.write("b", fmt.Sprintf("m.%d", n), max(from, begin), min(past, end), pairValue(n))
			}
			if i < 2 {
				p.write("only", "left.here", begin, end, pairValue(100))
			}
			p.now.Store(pairFrom + end)
			if end < pairSlots {
				p.flush()
			}
			if begin/step%4 == 3 {
				_, err := p.store.Merge(t.Context())
				p.must(err)
			}
		}
	}
	return one, two
}

// engineOf runs queries at the time when all is written.
func engineOf(of source.Source) *query.Engine {
	return &query.Engine{Source: of, Now: func() time.Time {
		return time.Unix(pairFrom+pairSlots, 0)
	}, Readers: query.NewReaders(2)}
}

// sameAnswer compares two answers bit for bit.
func sameAnswer(t *testing.T, text string, opt query.Options, a, b source.Source) *query.Result {
	t.Helper()
	got, gotErr := engineOf(a).Query(t.Context(), text, opt)
	want, wantErr := engineOf(b).Query(t.Context(), text, opt)
	if gotErr != nil || wantErr != nil {
		if fmt.Sprint(gotErr) != fmt.Sprint(wantErr) {
			t.Fatalf("%s: the error is %v, of one node it is %v", text, gotErr, wantErr)
		}
		return nil
	}
	if len(got.Series) != len(want.Series) || !reflect.DeepEqual(got.Missing, want.Missing) {
		t.Fatalf("%s: %d series, %v missing; of one node %d, %v", text, len(got.Series), got.Missing,
			len(want.Series), want.Missing)
	}
	for i := range got.Series {
		g, w := got.Series[i], want.Series[i]
		for _, pair := range [][2][]float64{{g.Values, w.Values}, {g.Confidence, w.Confidence},
			{g.Min, w.Min}, {g.Max, w.Max}} {
			if !slices.EqualFunc(pair[0], pair[1], func(x, y float64) bool {
				return math.Float64bits(x) == math.Float64bits(y)
			}) {
				t.Fatalf("%s: series %s has\n%v, of one node\n%v", text, g.Name, pair[0], pair[1])
			}
		}
		g.Values, g.Confidence, g.Min, g.Max = w.Values, w.Confidence, w.Min, w.Max
		if !reflect.DeepEqual(g, w) {
			t.Fatalf("%s: series %+v, of one node %+v", text, g, w)
		}
	}
	return got
}

// TestTwoNodesAnswerAsOne: two stores behind one source, which have the series of one, half of
// them each, or copies, give every answer of the one: nothing of the engine knows of it.
func TestTwoNodesAnswerAsOne(t *testing.T) {
	one, two := newPair(t)
	both, single := merged{two[0].source(), two[1].source()}, one.source()
	t.Run("listings", func(t *testing.T) { sameListings(t, both, single) })
	t.Run("queries", func(t *testing.T) {
		for _, text := range []string{
			"m.1 BUCKET b", "m.3 BUCKET b", "m.* BUCKET b", "left.here BUCKET only",
			"*.here BUCKET only + m.2 BUCKET b",
			"sum(m.* BUCKET b)", "avg(avg(m.* BUCKET b, 60s))", "sum(m.7 BUCKET b, 720s)",
			"sum(m.* BUCKET b, 7200s)", "max(m.* BUCKET b, 3h)",
			"min(m.3 BUCKET b, 17s)", "count(m.11 BUCKET b, 1000s)", "first(m.5 BUCKET b, 999s)",
			"last(m.9 BUCKET b, 16s)", "empty(m.3 BUCKET b, 5000s)",
			"percentile(m.3 BUCKET b, 0.9, 1000s)", "stddev(m.2 BUCKET b, 1000s)", "derivate(m.3 BUCKET b)",
			"max(quantile(m.* BUCKET b, 0.5), 600s)",
			"avg(m.3 BUCKET b SHIFT BY 4321s, 100s)", "nothing.here BUCKET b",
			"m.77 BUCKET b + m.1 BUCKET b", "m.1 BUCKET bb", "m.1 BUCKET only",
		} {
			for _, opt := range []query.Options{{}, {Confidence: true, NoAggregates: true}, {Width: 50},
				{Confidence: true}, {Older: true}, {Compat: true}} {
				sameAnswer(t, fmt.Sprintf("SELECT %s BETWEEN %d000 AND %d000", text, pairFrom-100,
					pairFrom+pairSlots+50), opt, both, single)
			}
		}
		sameAnswer(t, "SELECT m.* BUCKET b LAST 2h TOP 3 BY avg()", query.Options{}, both, single)
	})
	t.Run("ranges", func(t *testing.T) {
		answered := 0
		random := rand.New(rand.NewPCG(1, 2))
		for range 150 {
			from := pairFrom + random.Int64N(pairSlots)
			past := from + 1 + random.Int64N(pairFrom+pairSlots-from+100)
			fn := []string{"sum", "avg", "min", "max", "count", "first", "last"}[random.IntN(7)]
			what := []string{"m.*", "m.3", "m.7", "m.11", "m.2", "m.1"}[random.IntN(6)]
			text := fmt.Sprintf("SELECT %s(%s BUCKET b, %ds) BETWEEN %d000 AND %d000", fn, what,
				[]int64{16, 60, 720, 1000, 7200, 99_999}[random.IntN(6)], from, past)
			if sameAnswer(t, text, query.Options{Confidence: random.IntN(2) == 0}, both, single) != nil {
				answered++
			}
		}
		if answered < 140 {
			t.Errorf("only %d of 150 queries have an answer", answered)
		}
	})
}

// sameListings compares the buckets and the metrics of all of them.
func sameListings(t *testing.T, both, single source.Source) {
	if got, want := both.BucketNames(), single.BucketNames(); !slices.Equal(got, want) {
		t.Fatalf("buckets %v, of one node %v", got, want)
	}
	for _, name := range single.BucketNames() {
		var lists [2][][]byte
		var infos [2]source.Info
		for i, of := range []source.Source{both, single} {
			b, err := of.Bucket(name)
			if err != nil {
				t.Fatal(err)
			}
			infos[i] = b.Info()
			err = b.Metrics(t.Context(), nil, func(key []byte) bool {
				lists[i] = append(lists[i], bytes.Clone(key))
				return true
			})
			if err != nil {
				t.Fatal(err)
			}
			slices.SortFunc(lists[i], bytes.Compare)
		}
		if infos[0] != infos[1] || len(lists[1]) == 0 ||
			!slices.EqualFunc(lists[0], lists[1], bytes.Equal) {
			t.Fatalf("bucket %+v with %q, of one node %+v with %q", infos[0], lists[0], infos[1], lists[1])
		}
	}
}

// TestAHoleOfOneNode: damage of one node takes nothing from a series that the other has whole,
// and is named as that node names it where there is no copy.
func TestAHoleOfOneNode(t *testing.T) {
	var nodes [3]*pairNode // whole, damaged, and the other, which has a copy of h.1
	var lost string
	for i := range nodes {
		p := newPairNode(t)
		nodes[i] = p
		names := []string{"h.0", "h.1"}
		if i == 2 {
			names = names[1:]
		}
		p.now.Store(pairFrom + 6000)
		for _, later := range []int64{0, 1} { // the second time it is late
			for _, name := range names {
				from, past := 1000*later, 5000-3000*later
				p.write("h", name, from, past, func(slot int64) uint64 { return point.FromInt(slot*2 + later) })
			}
			lost = p.flush()
		}
	}
	whole, damaged, other := nodes[0], nodes[1], nodes[2]
	damaged.must(damaged.store.Close())
	damaged.must(damaged.o.FS.Remove("/data/" + lost))
	damaged.open()
	both := merged{damaged.source(), other.source()}
	for _, text := range []string{"%s BUCKET h", "sum(%s BUCKET h, 60s)", "avg(%s BUCKET h, 3600s)",
		"max(%s BUCKET h, 1000s)"} {
		text := fmt.Sprintf("SELECT %s BETWEEN %d000 AND %d000", text, pairFrom, pairFrom+5000)
		for _, opt := range []query.Options{{}, {NoAggregates: true, Confidence: true}, {Older: true}} {
			if r := sameAnswer(t, fmt.Sprintf(text, "h.1"), opt, both,
				whole.source()); r.Series[0].Unknown != nil {
				t.Errorf("h.1, %s: the copy leaves %v unknown", text, r.Series[0].Unknown)
			}
			r := sameAnswer(t, fmt.Sprintf(text, "h.0"), opt, both, damaged.source())
			if h := r.Series[0].Unknown; h == nil || h.Slots != 2*chunk.Slots {
				t.Errorf("h.0, %s: unknown is %v, want the two chunks of the late points", text, h)
			}
		}
	}
}

// TestHandlesOfADeletedBucket: they never read the next bucket of that name.
func TestHandlesOfADeletedBucket(t *testing.T) {
	p := newPairNode(t)
	p.write("b", "m", 0, 10, func(int64) uint64 { return point.FromInt(1) })
	of := p.source()
	b, err := of.Bucket("b")
	p.must(err)
	series := b.Series(pairKey(t, "m"))
	words := make([]uint64, 10)
	if _, err := series.Read(t.Context(), pairFrom, words); err != nil ||
		words[9] != point.FromInt(1) {
		t.Fatalf("%x, %v", words, err)
	}
	p.must(p.store.DeleteBucket("b"))
	p.write("b", "m", 0, 10, func(int64) uint64 { return point.FromInt(2) })
	for range 2 {
		_, readErr := series.Read(t.Context(), pairFrom, words)
		_, olderErr := series.ReadOlder(t.Context(), pairFrom, words)
		_, addErr := series.Aggregate(t.Context(), pairFrom, 10, make([]chunk.Header, 1))
		_, existErr := series.Exists(t.Context())
		listErr := b.Metrics(t.Context(), nil, func(key []byte) bool {
			t.Errorf("a metric %q", key)
			return true
		})
		for i, err := range []error{readErr, olderErr, addErr, existErr, listErr} {
			if !errors.Is(err, buckets.ErrUnknown) {
				t.Errorf("call %d: %v", i, err)
			}
		}
		p.flush()
	}
}
