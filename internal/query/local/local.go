// Package local is the store of this node as queries read it: the seam of package source over a
// store, with the figures of its reads.
package local

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"dalmatiner/internal/codec/chunk"
	"dalmatiner/internal/host/monitor"
	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/query/finder"
	"dalmatiner/internal/query/source"
	"dalmatiner/internal/store"
	"dalmatiner/internal/store/reader"
	"dalmatiner/internal/tags"
)

// Options say what a Source reads, and who counts it.
type Options struct {
	Store *store.Store
	Tags  *tags.Index // lookups find series by it

	Latency *monitor.Recorder // gets how long reads took; may be nil
	Slots   *atomic.Int64     // slots of reads are added to it; nil counts none
}

// Source is a store as queries see it.
type Source struct {
	o     Options
	index finder.Index
}

// New returns the source of a store.
func New(o Options) *Source {
	s := &Source{o: o}
	s.index = finder.Index{Tags: o.Tags, Buckets: s}
	return s
}

// Offers implements source.Source.
func (s *Source) Offers() source.Offers {
	return source.Offers{Aggregates: true, Older: true, Together: s, Index: &s.index}
}

// Bucket implements source.Source.
func (s *Source) Bucket(name string) (source.Bucket, error) {
	h, err := s.o.Store.Bucket(name)
	if err != nil {
		return nil, err
	}
	b := &bucket{of: s, handle: h}
	b.spare = b.first[:0]
	return b, nil
}

// Tagged implements finder.Buckets.
func (s *Source) Tagged(id uint64) (source.Bucket, error) {
	info, err := s.o.Store.BucketByID(id)
	if err != nil {
		return nil, err
	}
	return s.Bucket(info.Name)
}

// May implements finder.Buckets.
func (s *Source) May(ctx context.Context, b source.Bucket, keys [][]byte, from, past int64,
	may []bool) error {
	err := b.(*bucket).handle.May(ctx, keys, from, past, may)
	if errors.Is(err, buckets.ErrUnknown) { // it was deleted just now
		clear(may)
		err = nil
	}
	return err
}

// BucketNames implements source.Source.
func (s *Source) BucketNames() []string {
	var names []string
	for _, b := range s.o.Store.Buckets() {
		names = append(names, b.Name)
	}
	return names
}

// bucket is a handle of a bucket for one query.
type bucket struct {
	of     *Source
	handle store.Bucket
	spare  []series // room for handles that are not given out yet
	first  [2]series
}

func (b *bucket) Info() source.Info {
	info := b.handle.Info()
	return source.Info{ID: info.ID, Name: info.Name, Resolution: info.Resolution, TTL: info.TTL}
}

func (b *bucket) Metrics(ctx context.Context, prefix []byte, fn func(key []byte) bool) error {
	return b.handle.Metrics(ctx, prefix, fn)
}

func (b *bucket) Mark() source.Mark { return b.handle.Mark().Numbers() }

func (b *bucket) Since(m source.Mark, from int64) source.Unchanged {
	u := b.handle.Since(store.MarkOf(m), from)
	return source.Unchanged{Below: u.Below, Live: u.Live, Names: u.Names}
}

// mostSpare is how many handles of series are made at a time: a query has a few or very many.
const mostSpare = 64

func (b *bucket) Series(key []byte) source.Series {
	if len(b.spare) == cap(b.spare) {
		b.spare = make([]series, 0, min(2*cap(b.spare), mostSpare))
	}
	b.spare = append(b.spare, series{b.of, b.handle.Series(key)})
	return &b.spare[len(b.spare)-1]
}

// series is a handle of a series.
type series struct {
	of     *Source
	handle store.Series
}

func (h *series) Exists(context.Context) (bool, error) { return h.handle.Exists() }

func (h *series) Read(ctx context.Context, from int64, dst []uint64) (source.Cost, error) {
	start := time.Now()
	st, err := h.handle.ReadCounted(ctx, from, dst)
	h.of.took(int64(len(dst)), time.Since(start))
	return CostOf(&st), err
}

func (h *series) ReadOlder(ctx context.Context, from int64, dst []uint64) (source.Cost, error) {
	start := time.Now()
	st, err := h.handle.ReadOlder(ctx, from, dst)
	h.of.took(int64(len(dst)), time.Since(start))
	return CostOf(&st), err
}

func (h *series) WithStale() source.Series { return &series{h.of, h.handle.WithStale()} }

func (h *series) Aggregate(ctx context.Context, from, step int64,
	dst []chunk.Header) (source.Cost, error) {
	start := time.Now()
	st, err := h.handle.Aggregate(ctx, from, step, dst)
	h.of.took(st.Points, time.Since(start))
	return CostOf(&st), err
}

// AggregateEach notes of each series how long it took, and of the first one what all have in
// common.
func (s *Source) AggregateEach(ctx context.Context, list []source.Series, from, step int64,
	dst []chunk.Header, each func(i int, cost source.Cost, err error) error) error {
	handles, took := make([]store.Series, len(list)), make([]time.Duration, 0, len(list))
	slots := int64(0)
	for i, h := range list {
		handles[i] = h.(*series).handle
	}
	start := time.Now()
	err := s.o.Store.AggregateEach(ctx, handles, from, step, dst,
		func(i int, st reader.Stats, err error) error {
			took = append(took, time.Since(start))
			slots += st.Points
			err = each(i, CostOf(&st), err)
			start = time.Now()
			return err
		})
	s.took(slots, took...)
	return err
}

// took notes how long reads took each, and of how many slots all were.
func (s *Source) took(slots int64, took ...time.Duration) {
	s.o.Latency.Observe(monitor.StoreRead, took...)
	if s.o.Slots != nil {
		s.o.Slots.Add(slots)
	}
}

// CostOf returns what a read of a store took, as queries count it.
func CostOf(st *reader.Stats) source.Cost {
	cost := source.Cost{
		Headers:     st.Headers,
		Rollups:     st.Rollups,
		Decoded:     st.Points,
		Bytes:       st.Bytes,
		MoreUnknown: st.MoreUnknown,
	}
	for _, u := range st.Unknown {
		cost.Unknown = append(cost.Unknown, source.Unknown{From: u.From, Past: u.Past, Why: u.Why})
	}
	return cost
}
