package acked

import (
	"cmp"
	"context"
	"math"
	"sync"

	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/ingest/appender"
	"dalmatiner/internal/ingest/unacked"
	"dalmatiner/internal/model/account"
	"dalmatiner/internal/write"
)

// Writer takes the points of one request. It is not for concurrent use.
type Writer struct {
	*appender.Appender
	ws     *Writers
	name   string // of the bucket
	bucket *unacked.Bucket

	mu     sync.Mutex
	counts account.Counts // of the request
}

func (ws *Writers) newWriter(name string) *Writer {
	w := &Writer{ws: ws, name: name, bucket: unacked.NewBucket(ws.o.Points, name, ws.o.Monitor)}
	w.bucket.Form(appender.Form())
	w.bucket.Acknowledge(w.report)
	w.Appender = appender.New(ws.ctx, w.bucket, ws.tagger)
	return w
}

// report takes what became of the points of a commit.
func (w *Writer) report(_ write.Token, c account.Counts) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.counts.Add(&c)
}

// End stores what came, gives series their tags, and waits until all of it is durable. The
// counts are those of the request. The error is a *Refusal where points were not stored. After the
// error of ctx the request may be sent again. Any other error means that nothing can be stored any
// more. The writer is not to be used any more.
func (w *Writer) End(ctx context.Context) (account.Counts, error) {
	err := w.Commit()
	if err == nil && w.ws.o.Points.Durable() {
		err = w.ws.o.Points.WaitDurable(ctx, w.bucket.Token())
	}
	if err != nil {
		return account.Counts{}, cmp.Or(w.Close(), err) // it may be reported of later
	}
	w.mu.Lock()
	counts := w.counts
	w.mu.Unlock()
	if err := w.ws.giveBack(w); err != nil {
		return counts, err
	}
	if counts.RefusedTotal() > 0 {
		return counts, &Refusal{counts}
	}
	return counts, nil
}

// maxExactInt is up to where a double has every integer.
const maxExactInt = 1 << 53

// StaleNaN is the bits of the double that Prometheus has for a stale marker.
const StaleNaN = 0x7ff0000000000002

// IsStale reports whether a value is a stale marker of Prometheus.
func IsStale(v float64) bool { return math.Float64bits(v) == StaleNaN }

// Word returns the word of a value, which reads back as the same double. An integral one is an
// integer, which takes less room. Prometheus' stale marker becomes one; any other NaN is a value
// like others.
func Word(v float64) uint64 {
	if IsStale(v) {
		return point.Stale
	}
	if i := int64(v); float64(i) == v && -maxExactInt <= i && i <= maxExactInt &&
		(i != 0 || !math.Signbit(v)) {
		return point.FromInt(i)
	}
	return point.FromFloat(v)
}
