package node

import (
	"context"
	"errors"
	"math"
	"strings"
	"time"

	"dalmatiner/internal/account"
	"dalmatiner/internal/metric"
	"dalmatiner/internal/monitor"
	"dalmatiner/internal/point"
	"dalmatiner/internal/store"
)

// SelfBucket is the bucket that every node writes its own metrics into, each
// second (system page, section 8).
const SelfBucket = "dalmatinerdb"

const (
	selfResolution = 1000
	selfPPF        = 604800
)

// selfWriter writes the node's own metrics.
type selfWriter struct {
	n       *node
	session *store.Session
	bucket  uint32
	slot    uint64
	last    map[uint32]account.Counts
	names   map[uint32]string
	key     []byte
}

// selfMonitor writes once a second until ctx ends.
func (n *node) selfMonitor(ctx context.Context) {
	w, err := n.newSelfWriter()
	if err != nil {
		n.logger.Error("self monitoring is off", "err", err)
		return
	}
	t := time.NewTicker(time.Second)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			if err := w.session.Close(); err != nil {
				n.logger.Warn("the last own metrics were not stored", "err", err)
			}
			return
		case now := <-t.C:
			if err := w.write(now); err != nil {
				n.logger.Error("self monitoring stopped", "err", err)
				return
			}
		}
	}
}

func (n *node) newSelfWriter() (*selfWriter, error) {
	info, err := n.store.CreateBucket(store.BucketInfo{Name: SelfBucket, Resolution: selfResolution, PPF: selfPPF})
	if errors.Is(err, store.ErrBucketExists) {
		info, err = n.store.BucketByName(SelfBucket)
	}
	if err != nil {
		return nil, err
	}
	session, err := n.store.NewSession(info)
	if err != nil {
		return nil, err
	}
	return &selfWriter{n: n, session: session, bucket: info.ID, last: n.store.Account().Totals()}, nil
}

// write writes the second that ends at now. Counters appear only in seconds
// with at least one event.
func (w *selfWriter) write(now time.Time) error {
	w.slot = uint64(now.Unix())
	w.names = map[uint32]string{account.DeletedBuckets: "deleted buckets"}
	for _, b := range w.n.store.Buckets() {
		w.names[b.ID] = b.Name
	}
	var mps, dropped uint64
	totals := w.n.store.Account().Totals()
	for id, c := range totals {
		d := delta(c, w.last[id])
		if id != w.bucket {
			mps += d.Stored()
			dropped += d.RefusedTotal()
		}
		w.account(w.names[id], &d)
	}
	w.last = totals
	w.put(point.FromInt(int64(mps)), "mps")
	w.event(dropped, "drop", "write")
	st := w.n.store.Stats()
	w.put(point.FromInt(st.Series), "series")
	w.put(point.FromInt(st.HeadBytes), "head", "bytes")
	w.put(point.FromInt(st.WALBytes), "wal", "bytes")
	w.put(point.FromInt(st.SegmentBytes), "segment", "bytes")
	w.n.rec.Drain(func(op monitor.Op, figures []monitor.Figure) {
		for _, f := range figures {
			parts := append(strings.Split(op.String(), "."), f.Name)
			w.put(number(f.Value), parts...)
		}
	})
	_, err := w.session.Commit()
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
	w.session.Point(w.key, w.slot, word)
}

// number writes whole values as integers.
func number(v float64) uint64 {
	if v == math.Trunc(v) && math.Abs(v) < 1<<53 {
		return point.FromInt(int64(v))
	}
	return point.FromFloat(v)
}

// delta is now − before for counters that only grow. A bucket that was deleted
// in between starts over.
func delta(now, before account.Counts) account.Counts {
	if now.Received() < before.Received() {
		return now
	}
	d := account.Counts{
		Accepted: now.Accepted - before.Accepted, Duplicate: now.Duplicate - before.Duplicate,
		Conflicting: now.Conflicting - before.Conflicting, Late: now.Late - before.Late, Unset: now.Unset - before.Unset,
	}
	for i := range d.Refused {
		d.Refused[i] = now.Refused[i] - before.Refused[i]
	}
	return d
}
