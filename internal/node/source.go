package node

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"dalmatiner/internal/codec/chunk"
	"dalmatiner/internal/host/monitor"
	"dalmatiner/internal/ingest/conns"
	"dalmatiner/internal/ingest/ddbtcp"
	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/query"
	"dalmatiner/internal/query/finder"
	seam "dalmatiner/internal/query/source"
	"dalmatiner/internal/store"
	"dalmatiner/internal/store/reader"
	"dalmatiner/internal/tags"
)

// source is the store as the query engine sees it.
type source struct {
	store *store.Store
	rec   *monitor.Recorder
	read  *atomic.Int64 // slots
	index finder.Index
}

// newSource returns the source of a store whose series have the tags of an index.
func newSource(s *store.Store, of *tags.Index, rec *monitor.Recorder, read *atomic.Int64) *source {
	src := &source{store: s, rec: rec, read: read}
	src.index = finder.Index{Tags: of, Buckets: src}
	return src
}

// Lookups returns what queries of a node look up series by in its store.
func Lookups(s *store.Store) *finder.Index {
	return &newSource(s, s.Tags().Index(), monitor.New(), new(atomic.Int64)).index
}

func (s *source) Offers() query.Offers {
	return query.Offers{Aggregates: true, Older: true, Together: s, Index: &s.index}
}

func (s *source) Bucket(name string) (query.Bucket, error) {
	return s.handleOf(s.store.Bucket(name))
}

// Tagged implements finder.Buckets.
func (s *source) Tagged(id uint64) (query.Bucket, error) {
	for _, info := range s.store.Buckets() {
		if info.ID == id {
			return s.Bucket(info.Name)
		}
	}
	return nil, unknownBucket{fmt.Errorf("%w: id %016x", buckets.ErrUnknown, id)}
}

// May implements finder.Buckets.
func (s *source) May(ctx context.Context, b query.Bucket, keys [][]byte, from, past int64,
	may []bool) error {
	err := b.(*bucket).handle.May(ctx, keys, from, past, may)
	if errors.Is(err, buckets.ErrUnknown) { // it was deleted just now
		clear(may)
		err = nil
	}
	return err
}

func (s *source) handleOf(h store.Bucket, err error) (query.Bucket, error) {
	if errors.Is(err, buckets.ErrUnknown) {
		err = unknownBucket{err}
	}
	if err != nil {
		return nil, err
	}
	b := &bucket{source: s, handle: h}
	b.spare = b.first[:0]
	return b, nil
}

// unknownBucket is the store's error in the words of the engine.
type unknownBucket struct{ error }

func (e unknownBucket) Unwrap() error        { return e.error }
func (e unknownBucket) Is(target error) bool { return target == query.ErrUnknownBucket }

func (s *source) BucketNames() []string {
	var names []string
	for _, b := range s.store.Buckets() {
		names = append(names, b.Name)
	}
	return names
}

// bucket is a handle of a bucket for one query.
type bucket struct {
	source *source
	handle store.Bucket
	spare  []series // room for handles that are not given out yet
	first  [2]series
}

func (b *bucket) Info() query.Info {
	info := b.handle.Info()
	return query.Info{ID: info.ID, Name: info.Name, Resolution: info.Resolution, TTL: info.TTL}
}

func (b *bucket) Metrics(ctx context.Context, prefix []byte, fn func(key []byte) bool) error {
	return b.handle.Metrics(ctx, prefix, fn)
}

func (b *bucket) Mark() seam.Mark { return b.handle.Mark().Numbers() }

func (b *bucket) Since(m seam.Mark, from int64) seam.Unchanged {
	u := b.handle.Since(store.MarkOf(m), from)
	return seam.Unchanged{Below: u.Below, Live: u.Live, Names: u.Names}
}

// mostSpare is how many handles of series are made at a time: a query has a few or very many.
const mostSpare = 64

func (b *bucket) Series(key []byte) seam.Series {
	if len(b.spare) == cap(b.spare) {
		b.spare = make([]series, 0, min(2*cap(b.spare), mostSpare))
	}
	b.spare = append(b.spare, series{b.source, b.handle.Series(key)})
	return &b.spare[len(b.spare)-1]
}

// series is a handle of a series.
type series struct {
	source *source
	handle store.Series
}

func (h *series) Exists(context.Context) (bool, error) { return h.handle.Exists() }

func (h *series) Read(ctx context.Context, from int64, dst []uint64) (query.Cost, error) {
	start := time.Now()
	st, err := h.handle.ReadCounted(ctx, from, dst)
	h.source.took(start, int64(len(dst)))
	return costOf(st), err
}

func (h *series) ReadOlder(ctx context.Context, from int64, dst []uint64) (query.Cost, error) {
	start := time.Now()
	st, err := h.handle.ReadOlder(ctx, from, dst)
	h.source.took(start, int64(len(dst)))
	return costOf(st), err
}

func (h *series) WithStale() seam.Series { return &series{h.source, h.handle.WithStale()} }

func (h *series) Aggregate(ctx context.Context, from, step int64,
	dst []chunk.Header) (query.Cost, error) {
	start := time.Now()
	st, err := h.handle.Aggregate(ctx, from, step, dst)
	h.source.took(start, st.Points)
	return costOf(st), err
}

// AggregateEach notes of each series how long it took, and of the first one what all have in
// common.
func (s *source) AggregateEach(ctx context.Context, list []seam.Series, from, step int64,
	dst []chunk.Header, each func(i int, cost query.Cost, err error) error) error {
	handles, took, slots := make([]store.Series, len(list)), make([]time.Duration, 0, len(list)),
		int64(0)
	for i, h := range list {
		handles[i] = h.(*series).handle
	}
	start := time.Now()
	err := s.store.AggregateEach(ctx, handles, from, step, dst,
		func(i int, st reader.Stats, err error) error {
			took = append(took, time.Since(start))
			slots += st.Points
			err = each(i, costOf(st), err)
			start = time.Now()
			return err
		})
	s.rec.Observe(monitor.StoreRead, took...)
	s.read.Add(slots)
	return err
}

// took notes how long a read took, and of how many slots.
func (s *source) took(start time.Time, slots int64) {
	s.rec.Observe(monitor.StoreRead, time.Since(start))
	s.read.Add(slots)
}

func costOf(st reader.Stats) query.Cost {
	cost := query.Cost{
		Headers:     st.Headers,
		Rollups:     st.Rollups,
		Decoded:     st.Points,
		Bytes:       st.Bytes,
		MoreUnknown: st.MoreUnknown,
	}
	for _, u := range st.Unknown {
		cost.Unknown = append(cost.Unknown, query.Unknown{From: u.From, Past: u.Past, Why: u.Why})
	}
	return cost
}

// registerTCP adds the counters of the TCP server to /metrics.
func registerTCP(reg *prometheus.Registry, srv *ddbtcp.Server) {
	st := srv.Stats()
	registerConns(reg, "tcp", "TCP connections", srv.Connections())
	reg.MustRegister(
		prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "dalmatiner_tcp_requests_total",
			Help: "Request frames."},
			func() float64 { return float64(st.Requests.Load()) }),
		prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "dalmatiner_tcp_read_bytes_total",
			Help: "Bytes received over TCP."},
			func() float64 { return float64(st.BytesRead.Load()) }),
		prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "dalmatiner_tcp_flushes_total",
			Help: "Flushes of streams."},
			func() float64 { return float64(st.Flushes.Load()) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "dalmatiner_tcp_coalescing",
			Help: "Streams whose small pieces are read together."},
			func() float64 { return float64(st.Coalescing.Load()) }),
	)
}

// registerConns adds the connections of a listener to /metrics.
func registerConns(reg *prometheus.Registry, listener, what string, set *conns.Set) {
	reg.MustRegister(
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "dalmatiner_" + listener + "_connections",
			Help: "Open " + what + "."},
			func() float64 { return float64(set.Open()) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "dalmatiner_" + listener +
			"_connections_limit", Help: "Limit of open " + what + "."},
			func() float64 { return float64(set.Limit()) }),
		prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "dalmatiner_" + listener +
			"_accepted_total", Help: "Accepted " + what + "."},
			func() float64 { return float64(set.Accepted()) }),
	)
	for _, why := range conns.CutReasons() {
		reg.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name:        "dalmatiner_connections_cut_total",
			Help:        "Connections that the node ended by itself, by listener and reason.",
			ConstLabels: prometheus.Labels{"listener": listener, "reason": why},
		}, func() float64 { return float64(set.Cuts(why)) }))
	}
}
