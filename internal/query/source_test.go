package query_test

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"dalmatiner/internal/codec/chunk"
	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/codec/sumtree"
	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/model/metric"
	"dalmatiner/internal/query"
	"dalmatiner/internal/query/source"
)

// flat is a source that is told the bucket and the key at each call. Tests write theirs so,
// and sourceOf gives the handles.
type flat interface {
	Bucket(name string) (source.Info, error)
	Metrics(ctx context.Context, b source.Info, prefix []byte, fn func(key []byte) bool) error
	Exists(ctx context.Context, b source.Info, key []byte) (bool, error)
	BucketNames() []string
	Read(ctx context.Context, b source.Info, key []byte, from int64, dst []uint64) (source.Cost, error)
}

// What a flat source may offer besides, and source.Index.
type (
	flatAggregates interface {
		Aggregate(ctx context.Context, b source.Info, key []byte, from, step int64,
			dst []chunk.Header) (source.Cost, error)
	}
	flatOlder interface {
		ReadOlder(ctx context.Context, b source.Info, key []byte, from int64, dst []uint64) (source.Cost,
			error)
	}
	flatHistory interface {
		Mark(b source.Info) source.Mark
		Since(b source.Info, m source.Mark, from int64) source.Unchanged
	}
)

type (
	flatSource struct{ flat }
	flatBucket struct {
		of   flat
		info source.Info
	}
	flatSeries struct {
		b   flatBucket
		key []byte
	}
)

func sourceOf(of flat) source.Source                   { return flatSource{of} }
func bucketOf(of flat, info source.Info) source.Bucket { return flatBucket{of, info} }
func (s flatSource) Bucket(n string) (source.Bucket, error) {
	info, err := s.flat.Bucket(n)
	return flatBucket{s.flat, info}, err
}

func (s flatSource) Offers() (o source.Offers) {
	_, o.Aggregates = s.flat.(flatAggregates)
	if o.Aggregates {
		o.Together = s
	}
	_, o.Older = s.flat.(flatOlder)
	o.Index, _ = s.flat.(source.Index)
	return o
}

// AggregateEach leaves nothing in dst of the series before.
func (s flatSource) AggregateEach(ctx context.Context, list []source.Series, from, step int64,
	dst []chunk.Header, each func(i int, cost source.Cost, err error) error) error {
	for i, of := range list {
		clear(dst)
		cost, err := of.Aggregate(ctx, from, step, dst)
		if err := each(i, cost, err); err != nil {
			return err
		}
	}
	return nil
}

func (b flatBucket) Info() source.Info { return b.info }

func (b flatBucket) Metrics(ctx context.Context, prefix []byte, fn func(key []byte) bool) error {
	return b.of.Metrics(ctx, b.info, prefix, fn)
}

func (b flatBucket) Mark() source.Mark {
	if h, ok := b.of.(flatHistory); ok {
		return h.Mark(b.info)
	}
	return source.NoHistory{}.Mark()
}

func (b flatBucket) Since(m source.Mark, from int64) source.Unchanged {
	if h, ok := b.of.(flatHistory); ok {
		return h.Since(b.info, m, from)
	}
	return source.NoHistory{}.Since(m, from)
}

func (b flatBucket) Series(key []byte) source.Series { return flatSeries{b, bytes.Clone(key)} }

func (s flatSeries) Exists(ctx context.Context) (bool, error) {
	return s.b.of.Exists(ctx, s.b.info, s.key)
}

func (s flatSeries) Read(ctx context.Context, from int64, dst []uint64) (source.Cost, error) {
	return s.b.of.Read(ctx, s.b.info, s.key, from, dst)
}

func (s flatSeries) ReadOlder(ctx context.Context, from int64, dst []uint64) (source.Cost, error) {
	return s.b.of.(flatOlder).ReadOlder(ctx, s.b.info, s.key, from, dst)
}

func (s flatSeries) WithStale() source.Series { return s }

func (s flatSeries) Aggregate(ctx context.Context, from, step int64,
	dst []chunk.Header) (source.Cost, error) {
	return s.b.of.(flatAggregates).Aggregate(ctx, s.b.info, s.key, from, step, dst)
}

// memory is a flat source in memory: runs of words from a slot on.
type memory struct {
	t       testing.TB
	buckets map[string]source.Info
	series  map[uint64]map[string]run
	mu      sync.Mutex
	reads   map[string]int // ranges read, by what was read; nil where nobody asks
	now     int64          // unix ms: points beyond their bucket's lifetime are gone
}

type run struct {
	from  int64
	words []uint64
}

func newMemory(t testing.TB) *memory {
	return &memory{t: t, buckets: make(map[string]source.Info),
		series: make(map[uint64]map[string]run)}
}

// newBucket returns a memory with bucket b of one slot a second.
func newBucket(t testing.TB) *memory {
	m := newMemory(t)
	m.addBucket("b", 1000, 0)
	return m
}

// noteReads makes m note what is read from here on.
func (m *memory) noteReads() { m.reads = make(map[string]int) }

// engine asks a source at a time in unix ms.
func engine(source flat, now int64) *query.Engine {
	return &query.Engine{Source: sourceOf(source), Now: func() time.Time {
		return time.UnixMilli(now)
	}}
}

func (m *memory) addBucket(name string, resolution, ttl int64) {
	id := uint64(len(m.buckets) + 1)
	m.buckets[name] = source.Info{ID: id, Name: name, Resolution: resolution, TTL: ttl}
	m.series[id] = make(map[string]run)
}

func (m *memory) load(bucket string, key []byte, from int64, words []uint64) {
	m.series[m.buckets[bucket].ID][string(key)] = run{from: from, words: words}
}

func (m *memory) Bucket(name string) (source.Info, error) {
	b, ok := m.buckets[name]
	if !ok {
		return b, fmt.Errorf("%w: %s", buckets.ErrUnknown, metric.Quote(name))
	}
	return b, nil
}

func (m *memory) Metrics(_ context.Context, b source.Info, prefix []byte,
	fn func([]byte) bool) error {
	for key := range m.series[b.ID] {
		if k := []byte(key); bytes.HasPrefix(k, prefix) && !fn(k) {
			return nil
		}
	}
	return nil
}

func (m *memory) Exists(_ context.Context, b source.Info, key []byte) (bool, error) {
	_, ok := m.series[b.ID][string(key)]
	return ok, nil
}

func (m *memory) BucketNames() []string { return slices.Sorted(maps.Keys(m.buckets)) }

func (m *memory) Read(_ context.Context, b source.Info, key []byte, from int64,
	dst []uint64) (source.Cost, error) {
	if from < 0 || len(dst) == 0 || len(dst) > source.MaxSlots {
		m.t.Errorf("Read of %d slots from %d", len(dst), from)
	}
	m.mu.Lock()
	if m.reads != nil {
		m.reads[fmt.Sprint(b.ID, " ", string(key), " ", from, " ", len(dst))]++
	}
	m.mu.Unlock()
	clear(dst)
	r := m.series[b.ID][string(key)]
	if skip := r.from - from; skip >= int64(len(dst)) {
		return source.Cost{}, nil
	} else if skip > 0 {
		copy(dst[skip:], r.words)
	} else if -skip < int64(len(r.words)) {
		copy(dst, r.words[-skip:])
	}
	if oldest := m.now/b.Resolution - b.TTL; b.TTL > 0 && oldest > from {
		clear(dst[:min(oldest-from, int64(len(dst)))])
	}
	return source.Cost{}, nil
}

func key(t testing.TB, parts ...string) []byte {
	k, err := metric.Key(parts...)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// ints returns words of n integers by their position.
func ints(n int, f func(i int64) int64) []uint64 {
	w := make([]uint64, n)
	for i := range w {
		w[i] = point.FromInt(f(int64(i)))
	}
	return slices.Clip(w)
}

// adder is a memory that adds up slots itself, chunk by chunk.
type adder struct{ *memory }

func (a adder) Aggregate(ctx context.Context, b source.Info, key []byte, from, step int64,
	dst []chunk.Header) (source.Cost, error) {
	var cost source.Cost
	var tree sumtree.Tree
	for i := range dst {
		start := from + int64(i)*step
		for at := max(start, min(0, start+step)); at < start+step; {
			number := at / chunk.Slots
			words := make([]uint64, min(start+step, (number+1)*chunk.Slots)-at)
			if _, err := a.Read(ctx, b, key, at, words); err != nil {
				return cost, err
			}
			tree.Words(words, int(at%chunk.Slots), number, int(number*chunk.Slots-start))
			cost.Decoded += int64(len(words))
			at += int64(len(words))
		}
		tree.End(&dst[i])
	}
	return cost, nil
}

// plain is a memory as the reference reads it.
type plain struct{ *memory }

func (p plain) Find(bucket string) (uint64, int64, error) {
	b, err := p.Bucket(bucket)
	return b.ID, b.Resolution, err
}

func (p plain) Keys(bucket uint64) (keys [][]byte) {
	for key := range p.series[bucket] {
		keys = append(keys, []byte(key))
	}
	return keys
}

func (p plain) Word(bucket uint64, key []byte, slot int64) uint64 {
	r := p.series[bucket][string(key)]
	for _, b := range p.buckets {
		if b.ID == bucket && b.TTL > 0 && slot < p.now/b.Resolution-b.TTL {
			return 0
		}
	}
	if slot < r.from || slot >= r.from+int64(len(r.words)) {
		return 0
	}
	return r.words[slot-r.from]
}
