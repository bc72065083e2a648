package node

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"dalmatiner/internal/buckets"
	"dalmatiner/internal/chunk"
	"dalmatiner/internal/ingest/conns"
	"dalmatiner/internal/ingest/ddbtcp"
	"dalmatiner/internal/monitor"
	"dalmatiner/internal/query"
	"dalmatiner/internal/reader"
	"dalmatiner/internal/store"
)

// source is the store as the query engine sees it.
type source struct {
	store *store.Store
	rec   *monitor.Recorder
	read  *atomic.Int64 // slots
}

func (s source) Bucket(name string) (query.Bucket, error) {
	b, err := s.store.BucketByName(name)
	if errors.Is(err, buckets.ErrUnknown) {
		err = unknownBucket{err}
	}
	return query.Bucket{ID: b.ID, Name: b.Name, Resolution: b.Resolution, TTL: b.TTL}, err
}

// unknownBucket is the store's error in the words of the engine.
type unknownBucket struct{ error }

func (e unknownBucket) Unwrap() error        { return e.error }
func (e unknownBucket) Is(target error) bool { return target == query.ErrUnknownBucket }

func (s source) Metrics(ctx context.Context, b query.Bucket, prefix []byte, fn func(key []byte) bool) error {
	return s.store.Metrics(ctx, buckets.Info{ID: b.ID, Name: b.Name}, prefix, fn)
}

func (s source) Exists(_ context.Context, b query.Bucket, key []byte) (bool, error) {
	return s.store.HasMetric(buckets.Info{ID: b.ID, Name: b.Name}, key)
}

func (s source) BucketNames() []string {
	var names []string
	for _, b := range s.store.Buckets() {
		names = append(names, b.Name)
	}
	return names
}

func (s source) Read(ctx context.Context, b query.Bucket, key []byte, from int64, dst []uint64) (query.Cost, error) {
	start := time.Now()
	st, err := s.store.ReadCounted(ctx, buckets.Info{ID: b.ID, Name: b.Name}, key, from, dst)
	s.rec.Observe(monitor.StoreRead, time.Since(start))
	s.read.Add(int64(len(dst)))
	return costOf(st), err
}

// ReadOlder is Read with what lies below what was lost (query.Elder).
func (s source) ReadOlder(ctx context.Context, b query.Bucket, key []byte, from int64, dst []uint64) (query.Cost, error) {
	start := time.Now()
	st, err := s.store.ReadOlder(ctx, buckets.Info{ID: b.ID, Name: b.Name}, key, from, dst)
	s.rec.Observe(monitor.StoreRead, time.Since(start))
	s.read.Add(int64(len(dst)))
	return costOf(st), err
}

func (s source) Aggregate(ctx context.Context, b query.Bucket, key []byte, from, step int64, dst []chunk.Header) (query.Cost, error) {
	start := time.Now()
	st, err := s.store.Aggregate(ctx, buckets.Info{ID: b.ID, Name: b.Name}, key, from, step, dst)
	s.rec.Observe(monitor.StoreRead, time.Since(start))
	s.read.Add(st.Points)
	return costOf(st), err
}

func costOf(st reader.Stats) query.Cost {
	cost := query.Cost{Headers: st.Headers, Rollups: st.Rollups, Decoded: st.Points, Bytes: st.Bytes, MoreUnknown: st.MoreUnknown}
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
		prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "dalmatiner_tcp_requests_total", Help: "Request frames."},
			func() float64 { return float64(st.Requests.Load()) }),
		prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "dalmatiner_tcp_read_bytes_total", Help: "Bytes received over TCP."},
			func() float64 { return float64(st.BytesRead.Load()) }),
		prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "dalmatiner_tcp_flushes_total", Help: "Flushes of streams."},
			func() float64 { return float64(st.Flushes.Load()) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "dalmatiner_tcp_coalescing", Help: "Streams whose small pieces are read together."},
			func() float64 { return float64(st.Coalescing.Load()) }),
	)
}

// registerConns adds the connections of a listener to /metrics.
func registerConns(reg *prometheus.Registry, listener, what string, set *conns.Set) {
	reg.MustRegister(
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "dalmatiner_" + listener + "_connections", Help: "Open " + what + "."},
			func() float64 { return float64(set.Open()) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "dalmatiner_" + listener + "_connections_limit", Help: "Limit of open " + what + "."},
			func() float64 { return float64(set.Limit()) }),
		prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "dalmatiner_" + listener + "_accepted_total", Help: "Accepted " + what + "."},
			func() float64 { return float64(set.Accepted()) }),
	)
	for _, why := range conns.CutReasons() {
		reg.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "dalmatiner_connections_cut_total", Help: "Connections that the node ended by itself, by listener and reason.",
			ConstLabels: prometheus.Labels{"listener": listener, "reason": why},
		}, func() float64 { return float64(set.Cuts(why)) }))
	}
}
