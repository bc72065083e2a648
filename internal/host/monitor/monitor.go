// Package monitor keeps the latencies of the last second for the node's own bucket. They
// are HDR histograms in microseconds, with three digits and a cap of one hour, as the
// original reported them.
package monitor

import (
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Op is an operation whose latency is kept.
type Op uint8

// The operations, under the names of the original.
const (
	Get         Op = iota // a GET, until its last frame was written
	MPut                  // a flush of a stream, until the log has it
	ListBuckets           // a list of buckets
	ListMetrics           // a list of metrics
	StoreWrite            // a flush of the head to a segment
	StoreRead             // a read for a query
	numOps      = iota
)

var opNames = [numOps]string{"get", "mput", "list_buckets", "list_metrics", "mstore.write",
	"mstore.read"}

// String returns the name of the original, with a dot between parts.
func (o Op) String() string { return opNames[o] }

const (
	digits   = 3
	capacity = int64(time.Hour / time.Microsecond)
)

// Recorder holds the histograms of the second under way. Its methods may be
// called concurrently; a nil Recorder takes observations and drops them.
type Recorder struct {
	mu    sync.Mutex
	hists [numOps]*hdrhistogram.Histogram
}

// New returns an empty recorder.
func New() *Recorder {
	r := &Recorder{}
	for i := range r.hists {
		r.hists[i] = hdrhistogram.New(1, capacity, digits)
	}
	return r
}

// Observe counts operations that took so long each.
func (r *Recorder) Observe(op Op, took ...time.Duration) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	// The value is clamped to the histogram's range, so recording cannot fail.
	for _, d := range took {
		_ = r.hists[op].RecordValue(min(max(d.Microseconds(), 1), capacity))
	}
}

// Figure is one number of a histogram.
type Figure struct {
	Name  string // max, mean, p99 …
	Value float64
}

var quantiles = []struct {
	name string
	q    float64
}{{"median", 50}, {"p50", 50}, {"p75", 75}, {"p90", 90}, {"p95", 95}, {"p99", 99}, {"p999", 99.9},
	{"p9999", 99.99}}

// Drain calls fn with the figures of every operation that happened since the
// last call, in microseconds, and starts over. figures is valid during the
// call.
func (r *Recorder) Drain(fn func(op Op, figures []Figure)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var figures []Figure
	for op, h := range r.hists {
		if h.TotalCount() == 0 {
			continue
		}
		figures = append(figures[:0],
			Figure{"max", float64(h.Max())}, Figure{"mean", h.Mean()}, Figure{"min", float64(h.Min())},
			Figure{"count", float64(h.TotalCount())})
		for _, q := range quantiles {
			figures = append(figures, Figure{q.name, float64(h.ValueAtQuantile(q.q))})
		}
		fn(Op(op), figures)
		h.Reset()
	}
}
