package message

import (
	"fmt"
	"reflect"
	"slices"

	"pgregory.net/rapid"

	"dalmatiner/internal/cluster/names"
	"dalmatiner/internal/cluster/replication"
	"dalmatiner/internal/cluster/ring"
	"dalmatiner/internal/model/metric"
)

const frameLimit = 1 << 20

// world is what a node knows in a test: some buckets, and series in them. Two worlds have the
// same.
type world struct {
	*names.Registry
	buckets map[uint64]replication.Bucket
	series  []metric.SeriesID
	keys    map[metric.SeriesID]string // bucket and key
	inOrder []*replication.Group
	now     int64
}

func lookupNone(metric.SeriesID) (uint64, []byte, bool) { return 0, nil, false }

func bucketsOf(n int) (list []replication.Bucket) {
	for i := range n {
		list = append(list, replication.Bucket{Name: fmt.Sprintf("bucket-%d", i),
			Resolution: 1000 * int64(i+1), Timestamps: i%2 == 1, Copies: i % 4,
			Quorum:  replication.Quorum{Reads: i % 3, Writes: i % 2, Changed: uint64(i)},
			Deleted: uint64(i), Created: 1 << 60, Lifetime: int64(i) * 100, Changed: 1<<60 + 5, PPF: 60,
			Grace: int64(i)})
	}
	return list
}

// newWorld returns a world with so many series, whose names its registry knows.
func newWorld(series int) *world {
	w := emptyWorld()
	for _, b := range bucketsOf(5) {
		w.buckets[b.ID()] = b
	}
	list := bucketsOf(5)
	for i := range series {
		b := list[i%len(list)]
		key := metric.AppendPart(metric.AppendPart(nil, "base"), fmt.Sprintf("metric-%d", i))
		w.add(b, key)
	}
	return w
}

func (w *world) add(b replication.Bucket, key []byte) metric.SeriesID {
	id := metric.ValuesOf(b.ID(), key, b.Timestamps)
	w.Note(id, b.ID(), key)
	w.series = append(w.series, id)
	w.keys[id] = fmt.Sprintf("%016x %q", b.ID(), key)
	return id
}

func emptyWorld() *world {
	w := &world{buckets: make(map[uint64]replication.Bucket), keys: make(map[metric.SeriesID]string)}
	w.Registry = names.New(lookupNone, 64<<20, func() int64 { return w.now })
	return w
}

// registryAt returns an empty registry that began at 0.
func registryAt(now *int64) *names.Registry {
	began := false
	return names.New(lookupNone, 64<<20, func() int64 {
		if !began {
			began = true
			return 0
		}
		return *now
	})
}

func (w *world) bucketOf(id uint64) (replication.Bucket, bool) {
	b, ok := w.buckets[id]
	return b, ok
}

func (w *world) encoder(boot uint64) *Encoder {
	return NewEncoder(w.Registry, w.bucketOf, boot, frameLimit)
}

// generator draws messages.
type generator struct {
	*rapid.T
	*world
}

func (g generator) u64() uint64 {
	return rapid.OneOf(rapid.Uint64Range(0, 300), rapid.Uint64()).Draw(g.T, "number")
}
func (g generator) int() int {
	return rapid.OneOf(rapid.IntRange(0, 300), rapid.IntRange(0, 1<<62)).Draw(g.T, "int")
}
func (g generator) bool() bool { return rapid.Bool().Draw(g.T, "bool") }
func (g generator) partition() int {
	return rapid.IntRange(0, ring.MaxPartitions-1).Draw(g.T, "partition")
}
func (g generator) copies() int { return rapid.IntRange(0, ring.MaxCopies).Draw(g.T, "copies") }
func (g generator) knownSeries() metric.SeriesID {
	return rapid.SampledFrom(g.series).Draw(g.T, "series")
}

func (g generator) node() (id ring.ID) {
	copy(id[:], rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(g.T, "node"))
	return id
}

// anyID returns an id that need not be that of a series with a name.
func (g generator) anyID() (id metric.SeriesID) {
	if g.bool() {
		return g.knownSeries()
	}
	return metric.SeriesID(g.node())
}

func (g generator) version() ring.Version { return ring.Version{Number: g.u64(), Sum: g.u64()} }

func (g generator) key() replication.Key {
	return replication.Key{
		Batch:     replication.BatchID{Coordinator: g.node(), Boot: g.u64(), Number: g.u64()},
		Partition: g.partition(), Further: g.partition(), Attempt: g.int(), For: g.node()}
}

func drawList[T any](g generator, one func() T) (list []T) {
	for range rapid.IntRange(0, 4).Draw(g.T, "many") {
		list = append(list, one())
	}
	return list
}

// rows draws runs of slots, some broken, some with timestamps, some at the last slots there are.
func (g generator) rows() (rows []replication.Row) {
	for range rapid.IntRange(0, 6).Draw(g.T, "runs") {
		r := replication.Row{
			Series: g.knownSeries(), Incarnation: rapid.SampledFrom([]uint64{0, 0, 7, 1 << 60}).Draw(g.T,
				"incarnation"),
			Slot: rapid.OneOf(rapid.Uint64Range(0, 5), rapid.Uint64(), rapid.Just(^uint64(0)-1)).Draw(g.T,
				"slot")}
		timed := g.bool()
		for range rapid.IntRange(1, 6).Draw(g.T, "slots") {
			r.Value = replication.Value{Word: g.u64()}
			if timed {
				r.Value.Time = g.u64()
			}
			rows = append(rows, r)
			if r.Slot++; rapid.IntRange(0, 9).Draw(g.T, "gap") == 0 {
				r.Slot++
			}
		}
	}
	return rows
}

// column draws a column of one of two groups, of series that mostly have numbers that follow each
// other.
func (g generator) column() replication.Column {
	of := rapid.SampledFrom(g.groups()).Draw(g.T, "group")
	from := rapid.IntRange(0, len(of.Series)-1).Draw(g.T, "from")
	c := replication.Column{Group: of, From: from,
		Slot: rapid.OneOf(rapid.Uint64Range(0, 5), rapid.Uint64()).Draw(g.T, "slot")}
	timed := g.bool()
	for range rapid.IntRange(1, len(of.Series)-from).Draw(g.T, "words") {
		c.Words = append(c.Words, g.u64())
		if timed {
			c.Times = append(c.Times, g.u64())
		}
	}
	return c
}

// groups returns all series, forwards and backwards; the same ones each time.
func (w *world) groups() []*replication.Group {
	if w.inOrder == nil {
		back := slices.Clone(w.series)
		slices.Reverse(back)
		w.inOrder = []*replication.Group{{Series: w.series}, {Series: back}}
	}
	return w.inOrder
}

func (g generator) deletions() []replication.Deletion {
	return drawList(g, func() replication.Deletion {
		return replication.Deletion{Series: g.anyID(), Incarnation: g.u64()}
	})
}

func (g generator) change() replication.Change {
	partition := g.partition()
	var further []int
	for p := partition; p < ring.MaxPartitions-1 && g.bool(); {
		p = rapid.IntRange(p+1, ring.MaxPartitions-1).Draw(g.T, "further")
		further = append(further, p)
	}
	return replication.Change{Partition: partition, Further: further, Copies: g.copies(),
		Columns: drawList(g, g.column), Rows: g.rows(), Deletions: g.deletions()}
}

func (g generator) step() replication.Step {
	return replication.Step{Boot: g.u64(), Pass: g.u64(), Number: g.u64(), Partition: g.partition(),
		Copies: g.copies(), Version: g.version()}
}

func (g generator) chunk() replication.ChunkID {
	return replication.ChunkID{Series: g.anyID(), Number: g.u64()}
}
func (g generator) chunks() []replication.ChunkID { return drawList(g, g.chunk) }

// encoded draws a chunk of a series that has a name.
func (g generator) encoded() replication.Chunk {
	piece := func(least int) []byte {
		return append([]byte(nil), rapid.SliceOfN(rapid.Byte(), least, 9).Draw(g.T, "bytes")...)
	}
	return replication.Chunk{ID: replication.ChunkID{Series: g.knownSeries(), Number: g.u64()},
		Incarnation: g.u64(), Points: g.int(), Words: piece(1), Times: piece(0)}
}

// fillOf returns a Fill with a chunk of each of the series.
func fillOf(series ...metric.SeriesID) (m replication.Fill) {
	for i, id := range series {
		m.Chunks = append(m.Chunks,
			replication.Chunk{ID: replication.ChunkID{Series: id, Number: uint64(i)}, Points: 1,
				Words: []byte{1}})
	}
	return m
}

func (g generator) hint() replication.HintID {
	return replication.HintID{Node: g.node(), Boot: g.u64(), Number: g.u64()}
}

func (g generator) counts() replication.Counts {
	return replication.Counts{Accepted: g.int(), Duplicate: g.int(), Conflicting: g.int(),
		Unconfirmed: g.int()}
}

func (g generator) slot() replication.Slot {
	s := replication.Slot{Value: replication.Value{Word: g.u64()}, Unknown: g.bool()}
	if g.bool() {
		s.Value.Time = g.u64()
	}
	return s
}

// message draws one of a kind.
func (g generator) message(kind int) replication.Message {
	switch kind {
	case kindWrite:
		return replication.Write{Key: g.key(), Version: g.version(), Settled: g.u64(), Change: g.change()}
	case kindWritten:
		return replication.WriteReply{
			Key: g.key(), Refusal: replication.Refusal(rapid.IntRange(0, 4).Draw(g.T, "refusal")),
			Counts: g.counts(), Later: g.deletions()}
	case kindDeliver:
		return replication.Deliver{ID: g.hint(), Version: g.version(), Change: g.change()}
	case kindDelivered:
		return replication.DeliverReply{ID: g.hint()}
	case kindKeeps:
		return replication.Keeps{Node: g.key().For, Boot: g.u64(), Number: g.u64(),
			Partitions: drawList(g, func() byte {
				return byte(g.u64())
			}), Version: g.version()}
	case kindHeardKeeps:
		return replication.KeepsReply{Boot: g.u64(), Number: g.u64()}
	case kindAskKeeps:
		return replication.AskKeeps{}
	case kindLearn:
		return replication.Learn{After: g.anyID()}
	case kindKnown:
		return replication.LearnReply{After: g.anyID(), Through: g.anyID(), Deletions: g.deletions()}
	case kindFetch:
		return replication.Fetch{Request: g.u64(), Version: g.version(), Partition: g.partition(),
			Series: g.anyID(), From: g.u64(), Past: g.u64()}
	case kindFetched:
		return replication.FetchReply{Request: g.u64(), Ready: g.bool(), Incarnation: g.u64(),
			Slots: drawList(g, g.slot)}
	}
	return g.comparison(kind)
}

func (g generator) comparison(kind int) replication.Message {
	switch kind {
	case kindCompare:
		return replication.Compare{Step: g.step(), Deletions: g.u64(), From: g.u64(), Through: g.u64(),
			Windows: drawList(g, func() replication.WindowDigest {
				return replication.WindowDigest{Number: g.u64(), Digest: g.u64()}
			})}
	case kindCompared:
		return replication.CompareReply{Step: g.step(), Deletions: g.bool(), Through: g.u64(),
			Windows: drawList(g, g.u64), Left: g.int()}
	case kindShareDeletions:
		return replication.ShareDeletions{Step: g.step(), After: g.anyID(), Through: g.anyID(),
			Deletions: g.deletions()}
	case kindSharedDeletions:
		return replication.ShareDeletionsReply{Step: g.step(), Through: g.anyID(),
			Deletions: g.deletions()}
	case kindCompareChunks:
		return replication.CompareChunks{Step: g.step(), Window: g.u64(), After: g.anyID(),
			Through: g.anyID(), Chunks: drawList(g, func() replication.ChunkDigest {
				return replication.ChunkDigest{ID: g.chunk(), Digest: g.u64()}
			})}
	case kindDifference:
		return replication.Difference{Step: g.step(), Through: g.anyID(), Chunks: g.int(),
			Want: g.chunks(), Have: g.chunks()}
	case kindFill:
		return replication.Fill{Step: g.step(), Chunks: drawList(g, g.encoded), Want: g.chunks()}
	case kindFilled:
		return replication.FillReply{Step: g.step(), Chunks: drawList(g, g.encoded), Given: g.int()}
	}
	panic(fmt.Sprintf("no kind %d", kind))
}

func (g generator) any() replication.Message {
	return g.message(rapid.IntRange(kindWrite, kindAskKeeps).Draw(g.T, "kind"))
}

// rowsOf returns the rows of a message.
func rowsOf(m replication.Message) []replication.Row {
	switch m := m.(type) {
	case replication.Write:
		return m.Change.InRows().Rows
	case replication.Deliver:
		return m.Change.InRows().Rows
	}
	return nil
}

// chunksOf returns the chunks of a message.
func chunksOf(m replication.Message) []replication.Chunk {
	switch m := m.(type) {
	case replication.Fill:
		return m.Chunks
	case replication.FillReply:
		return m.Chunks
	}
	return nil
}

// deletionsOf returns the deletions of a message.
func deletionsOf(m replication.Message) []replication.Deletion {
	switch m := m.(type) {
	case replication.Write:
		return m.Change.Deletions
	case replication.WriteReply:
		return m.Later
	case replication.Deliver:
		return m.Change.Deletions
	case replication.LearnReply:
		return m.Deletions
	case replication.ShareDeletions:
		return m.Deletions
	case replication.ShareDeletionsReply:
		return m.Deletions
	}
	return nil
}

// equal reports whether two messages or changes say the same. A column may be cut.
func equal(a, b any) bool { return reflect.DeepEqual(inRows(a), inRows(b)) }

func inRows(m any) any {
	switch m := m.(type) {
	case replication.Write:
		m.Change = m.Change.InRows()
		return m
	case replication.Deliver:
		m.Change = m.Change.InRows()
		return m
	case replication.Change:
		return m.InRows()
	}
	return m
}

// requireEqual fails unless two messages are equal.
func requireEqual(t tester, got, want any) {
	t.Helper()
	if !equal(got, want) {
		t.Fatalf("got\n%+v\nwant\n%+v", got, want)
	}
}

// mustKnow fails unless this world has what the other one knows of what a message speaks of.
func (w *world) mustKnow(t tester, other *world, m replication.Message) {
	t.Helper()
	mustName := func(id metric.SeriesID) {
		bucket, key, ok := w.Lookup(id)
		if got := fmt.Sprintf("%016x %q", bucket, key); !ok || got != other.keys[id] {
			t.Fatalf("a point of series %s came as one of %s, %v", other.keys[id], got, ok)
		}
		requireEqual(t, w.buckets[bucket], other.buckets[bucket])
	}
	for _, r := range rowsOf(m) {
		mustName(r.Series)
	}
	for _, c := range chunksOf(m) {
		mustName(c.ID.Series)
	}
	for _, d := range deletionsOf(m) {
		want, known := other.Bucket(d.Series)
		if got, ok := w.Bucket(d.Series); known && (!ok || got != want) {
			t.Fatalf("a deletion in bucket %016x came as one in %016x", want, got)
		}
	}
}

type tester interface {
	Helper()
	Fatalf(format string, args ...any)
}
