package remote

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"dalmatiner/internal/cluster/call"
	"dalmatiner/internal/cluster/replication"
	"dalmatiner/internal/cluster/ring"
	"dalmatiner/internal/codec/chunk"
	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/model/metric"
	"dalmatiner/internal/query/local"
	"dalmatiner/internal/query/source"
	"dalmatiner/internal/store"
	"dalmatiner/internal/store/deletion"
)

// begin is the first slot that tests write, span how many there are. The last of them stay in the
// head.
const (
	begin = 1_700_000_000 / chunk.Slots * chunk.Slots
	span  = 14 * chunk.Slots
)

// world is the nodes of a cluster, without anything that writes to several of them.
type world struct {
	t     testing.TB
	view  *ring.View
	r     int
	nodes []*node
	one   *node // has everything, and is none of them
	now   time.Time
}

// node is a store with its reads. What is below mu may change while it is used.
type node struct {
	w      *world
	id     ring.ID
	o      store.Options
	store  *store.Store
	remote *Remote
	raised map[metric.SeriesID]uint64 // incarnations that no deletion of the store made

	mu      sync.Mutex
	down    bool
	silent  bool   // it takes requests and says nothing
	notYet  bool   // it is not ready
	serving func() // called once, before it serves
	asked   int
	hints   []replication.Row
	keys    [][]byte // of hints, all of one bucket
	differs map[metric.SeriesID][2]int64
}

func nodeID(n int) ring.ID { return ring.ID{15: byte(n + 1)} }

func newWorld(t testing.TB, members, copies, r int) *world {
	t.Helper()
	w := &world{t: t, r: r, now: time.Unix(begin+span, 0)}
	config := ring.Config{Number: 1, Partitions: 16, Copies: copies}
	random := rand.New(rand.NewPCG(7, 7))
	for i := range members {
		m := ring.Member{ID: nodeID(i), Name: fmt.Sprint("n", i), State: ring.Active}
		for range 32 {
			m.Tokens = append(m.Tokens, random.Uint32())
		}
		config.Members = append(config.Members, m)
	}
	var err error
	w.view, err = ring.New(config)
	w.must(err)
	for i := range members {
		w.nodes = append(w.nodes, w.newNode(nodeID(i)))
	}
	w.one = w.newNode(ring.ID{1})
	return w
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) newNode(id ring.ID) *node {
	w.t.Helper()
	n := &node{w: w, id: id, o: store.DefaultOptions("/data"), raised: map[metric.SeriesID]uint64{},
		differs: map[metric.SeriesID][2]int64{}}
	n.o.FS, n.o.Logger, n.o.Now = vfs.NewMem(), slog.New(slog.DiscardHandler), func() time.Time {
		return w.now
	}
	n.o.MinFree, n.o.BackgroundMerge, n.o.FlushInterval, n.o.MaxFuture = 0, false, math.MaxInt64,
		1000*time.Hour
	n.open()
	w.t.Cleanup(func() { w.must(n.store.Close()) })
	return n
}

func (n *node) open() {
	n.w.t.Helper()
	var err error
	n.store, err = store.Open(n.o)
	n.w.must(err)
	n.remote, err = New(Options{
		Self: n.id, View: func() *ring.View {
			return n.w.view
		}, Up: n.isUp, R: func(*ring.View, uint64) int { return n.w.r },
		Now: func() time.Time {
			return n.w.now
		}, Ready: func() bool { n.mu.Lock(); defer n.mu.Unlock(); return !n.notYet },
		Ask: n.ask, Local: n.source(), Store: n.store, Incarnation: n.incarnation, Hints: n.hintRows,
		Holders:  n.w.holders,
		HintKeys: func(uint64) [][]byte { n.mu.Lock(); defer n.mu.Unlock(); return n.keys },
		Differs: func(_ uint64, id metric.SeriesID, from, past int64) {
			n.mu.Lock()
			defer n.mu.Unlock()
			n.differs[id] = [2]int64{from, past}
		},
	})
	n.w.must(err)
}

// holders are the nodes with hints of a partition.
func (w *world) holders(partition int) (ids []ring.ID) {
	for _, n := range w.nodes {
		n.mu.Lock()
		if slices.ContainsFunc(n.hints, func(r replication.Row) bool {
			return w.view.Partition(r.Series) == partition
		}) {
			ids = append(ids, n.id)
		}
		n.mu.Unlock()
	}
	return ids
}

func (n *node) isUp(id ring.ID) bool {
	of := n.w.nodes[id[15]-1]
	of.mu.Lock()
	defer of.mu.Unlock()
	return !of.down
}

func (n *node) set(change func(n *node)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	change(n)
}

func (n *node) incarnation(bucket uint64, id metric.SeriesID) uint64 {
	return max(n.raised[id], n.store.Incarnation(bucket, id))
}

func (n *node) hintRows(id metric.SeriesID, from, past uint64) (rows []replication.Row) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, r := range n.hints {
		if r.Series == id && r.Slot >= from && r.Slot < past {
			rows = append(rows, r)
		}
	}
	return rows
}

// ask has the other node serve in the same goroutine, with copies of all bytes.
func (n *node) ask(ctx context.Context, to ring.ID, request []byte, part func([]byte) error) error {
	of := n.w.nodes[to[15]-1]
	of.mu.Lock()
	down, silent, serving := of.down, of.silent, of.serving
	of.serving = nil
	of.asked++
	of.mu.Unlock()
	if serving != nil {
		serving()
	}
	switch {
	case down:
		return &call.Error{Peer: to, Code: call.Unreachable, Text: "the connection ended"}
	case silent:
		<-ctx.Done()
		return ctx.Err()
	}
	err := of.remote.Serve(ctx, n.id, bytes.Clone(request), func(b []byte) error {
		if len(b) > call.MaxPart {
			n.w.t.Errorf("a part of %d bytes", len(b))
		}
		return part(bytes.Clone(b))
	})
	if e := (*call.Error)(nil); err != nil && !errors.As(err, &e) && ctx.Err() == nil {
		err = &call.Error{Peer: to, Code: call.Failed, Text: err.Error()}
	}
	return err
}

func key(t testing.TB, name string) []byte {
	t.Helper()
	k, err := metric.Key(strings.Split(name, ".")...)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// write stores slots of a series, as value has them.
func (n *node) write(bucket, name string, from, past int64, value func(slot int64) uint64) {
	n.w.t.Helper()
	info, err := n.store.EnsureBucket(bucket)
	n.w.must(err)
	x, err := n.store.NewSession(info)
	n.w.must(err)
	for slot := from; slot < past; slot++ {
		if word := value(slot); word != 0 {
			x.Point(key(n.w.t, name), uint64(begin+slot), word)
		}
	}
	n.w.must(x.Close())
}

func (n *node) flush() string {
	n.w.t.Helper()
	r, err := n.store.Flush(n.w.t.Context())
	n.w.must(err)
	return r.Segment
}

func (n *node) merge() {
	n.w.t.Helper()
	_, err := n.store.Merge(n.w.t.Context())
	n.w.must(err)
}

func (n *node) deleteSeries(bucket, name string) {
	n.w.t.Helper()
	_, err := n.store.DeleteSeries(n.w.t.Context(), bucket, deletion.Choice{Key: key(n.w.t, name)},
		false)
	n.w.must(err)
}

// idOf returns the id of a series of a bucket that is there.
func (n *node) idOf(bucket, name string) metric.SeriesID {
	info, err := n.store.BucketByName(bucket)
	n.w.must(err)
	id := metric.Series(info.ID, key(n.w.t, name))
	if info.HPTS {
		id = id.Value()
	}
	return id
}

// owners returns the nodes that own a series, in ring order.
func (w *world) owners(bucket, name string) (list []*node) {
	p := w.view.Partition(w.one.idOf(bucket, name))
	for _, id := range w.view.Owners(nil, p, ring.Current, 0) {
		list = append(list, w.nodes[id[15]-1])
	}
	return list
}

// keeper is a node that is no owner of a series, and may stand in for one.
func (w *world) keeper(bucket, name string) *node {
	owners := w.owners(bucket, name)
	return w.nodes[slices.IndexFunc(w.nodes, func(n *node) bool {
		return !slices.Contains(owners, n)
	})]
}

// times returns how often a node was asked.
func (n *node) times() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.asked
}

// value is the word of a slot of series n: integers, floats whose sums depend on their order, and
// gaps.
func value(n int) func(slot int64) uint64 {
	return func(slot int64) uint64 {
		h := uint64(slot+1)*0x9e3779b97f4a7c15 ^ uint64(n)*0xbf58476d1ce4e5b9
		h ^= h >> 29
		switch {
		case h%11 == 0 || slot/500%7 == int64(n%7):
			return 0
		case n%2 == 0:
			return point.FromInt(int64(h % 100_000))
		}
		return point.FromFloat(float64(h%1_000_003) / 7 * math.Pow(10, float64(h>>32%9)))
	}
}

// source is the store as queries of one node read it.
func (n *node) source() source.Source {
	return local.New(local.Options{Store: n.store, Tags: n.store.Tags().Index()})
}

// seriesOf returns a handle of a series of a source.
func seriesOf(t testing.TB, of source.Source, bucket, name string) source.Series {
	t.Helper()
	b, err := of.Bucket(bucket)
	if err != nil {
		t.Fatal(err)
	}
	return b.Series(key(t, name))
}

// metricsOf returns the metrics of a source.
func metricsOf(t testing.TB, of source.Source, bucket string, prefix []byte) (list []string) {
	t.Helper()
	b, err := of.Bucket(bucket)
	if err != nil {
		t.Fatal(err)
	}
	err = b.Metrics(t.Context(), prefix, func(key []byte) bool {
		list = append(list, metric.Text(key))
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(list)
	return list
}
