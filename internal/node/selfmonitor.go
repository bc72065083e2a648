package node

import (
	"context"
	"errors"
	"math"
	"strings"
	"time"

	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/host/memory"
	"dalmatiner/internal/host/monitor"
	"dalmatiner/internal/model/account"
	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/model/metric"
	"dalmatiner/internal/write"
)

// selfBucket is the bucket that every node writes its own metrics into, each second, as
// the original did.
const selfBucket = "dalmatinerdb"

const (
	selfResolution = 1000
	selfPPF        = 604800
)

// selfWriter writes the node's own metrics.
type selfWriter struct {
	n      *node
	stream write.Stream
	bucket uint64
	slot   uint64
	last   map[uint64]account.Counts
	key    []byte
}

// selfMonitor writes once a second until ctx ends.
func (n *node) selfMonitor(ctx context.Context) {
	w := &selfWriter{n: n}
	defer w.close()
	t := time.NewTicker(time.Second)
	defer t.Stop()
	for err := w.open(); ; {
		// The store has said that disk or memory are short; both come back.
		if err != nil && !errors.Is(err, write.ErrDiskFull) && !errors.As(err, new(*memory.Refusal)) {
			n.logger.Error("self monitoring is off", "err", err)
			return
		}
		select {
		case <-ctx.Done():
			return
		case now := <-t.C:
			err = w.write(now)
		}
	}
}

func (w *selfWriter) close() {
	if w.stream == nil {
		return
	}
	if err := w.stream.Close(); err != nil {
		w.n.logger.Warn("the last own metrics were not stored", "err", err)
	}
}

// open makes sure that the bucket is there and that the stream writes into it:
// somebody may have deleted it.
func (w *selfWriter) open() error {
	info, err := w.n.store.BucketByName(selfBucket)
	if err == nil && w.stream != nil && info.ID == w.bucket {
		return nil
	}
	if errors.Is(err, buckets.ErrUnknown) {
		info, err = w.n.store.CreateBucket(buckets.Info{
			Name:       selfBucket,
			Resolution: selfResolution,
			PPF:        selfPPF,
		})
	}
	if err != nil {
		return err
	}
	stream, err := w.n.points.Open(info, write.Options{})
	if err != nil {
		return err
	}
	if w.stream != nil {
		err = w.stream.Close()
	}
	// What came before is no news: its own points lie among those of the deleted
	// buckets now.
	w.stream, w.bucket, w.last = stream, info.ID, w.n.store.Account().Totals()
	return err
}

// write writes the second that ends at now. Counters appear only in seconds
// with at least one event.
func (w *selfWriter) write(now time.Time) error {
	if err := w.open(); err != nil {
		return err
	}
	w.slot = uint64(now.Unix())
	var mps, dropped uint64
	totals := w.n.store.Account().Totals()
	names := make(map[uint64]string)
	for _, b := range w.n.store.Buckets() {
		names[b.ID] = b.Name
	}
	before := carried(w.last, totals)
	for id, c := range totals {
		d := delta(c, before[id])
		if id != w.bucket {
			mps += d.StoredPoints()
			dropped += d.RefusedTotal()
		}
		name, ok := names[id]
		if !ok {
			name = "deleted buckets"
		}
		w.account(name, &d)
	}
	w.last = totals
	w.put(point.FromInt(int64(mps)), "mps")
	w.event(dropped, "drop", "write")
	st := w.n.store.Stats()
	w.put(point.FromInt(st.Series), "series")
	w.put(point.FromInt(st.Head.Bytes), "head", "bytes")
	w.put(point.FromInt(st.WALBytes), "wal", "bytes")
	w.put(point.FromInt(st.Segments.Bytes), "segment", "bytes")
	w.n.rec.Drain(func(op monitor.Op, figures []monitor.Figure) {
		for _, f := range figures {
			parts := append(strings.Split(op.String(), "."), f.Name)
			w.put(number(f.Value), parts...)
		}
	})
	_, err := w.stream.Commit()
	return err
}

// account writes what became of a bucket's points in the second.
func (w *selfWriter) account(bucket string, d *account.Counts) {
	w.event(d.Accepted, "account", bucket, "accepted")
	w.event(d.Duplicate, "account", bucket, "duplicate")
	w.event(d.Conflicting, "account", bucket, "conflicting")
	w.event(d.Late, "account", bucket, "late")
	w.event(d.Unset, "account", bucket, "unset")
	for r, n := range d.Refused {
		w.event(n, "account", bucket, "refused", account.Reason(r).String())
	}
}

// event writes a counter that happened.
func (w *selfWriter) event(n uint64, parts ...string) {
	if n > 0 {
		w.put(point.FromInt(int64(n)), parts...)
	}
}

func (w *selfWriter) put(word uint64, parts ...string) {
	w.key = metric.AppendPart(w.key[:0], w.n.cfg.Node)
	for _, p := range parts {
		w.key = metric.AppendPart(w.key, p)
	}
	w.stream.Point(w.key, w.slot, word)
}

// number writes whole values as integers.
func number(v float64) uint64 {
	if v == math.Trunc(v) && math.Abs(v) < 1<<53 {
		return point.FromInt(int64(v))
	}
	return point.FromFloat(v)
}

// carried returns the former totals as they would be with the buckets of now:
// those of deleted ones are no news among the deleted buckets.
func carried(last, now map[uint64]account.Counts) map[uint64]account.Counts {
	out := make(map[uint64]account.Counts, len(last))
	for id, c := range last {
		if _, ok := now[id]; !ok {
			id = account.DeletedBuckets
		}
		sum := out[id]
		sum.Add(&c)
		out[id] = sum
	}
	return out
}

// delta is now − before for counters that only grow.
func delta(now, before account.Counts) account.Counts {
	if now.ReceivedPoints() < before.ReceivedPoints() {
		return now
	}
	d := account.Counts{
		Accepted: now.Accepted - before.Accepted, Duplicate: now.Duplicate - before.Duplicate,
		Conflicting: now.Conflicting - before.Conflicting, Late: now.Late - before.Late,
		Unset: now.Unset - before.Unset,
	}
	for i := range d.Refused {
		d.Refused[i] = now.Refused[i] - before.Refused[i]
	}
	return d
}
