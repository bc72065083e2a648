package acked

import (
	"cmp"
	"context"
	"errors"
	"math"
	"sync"
	"time"

	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/ingest/labels"
	"dalmatiner/internal/ingest/unacked"
	"dalmatiner/internal/model/account"
	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/model/metric"
	"dalmatiner/internal/write"
)

// Writer takes the points of one request. It is not for concurrent use.
type Writer struct {
	ws     *Writers
	name   string // of the bucket
	bucket *unacked.Bucket
	tags   labels.TagBatch

	// Of the request.
	stream write.Stream
	info   buckets.Info
	err    error // nothing can be stored any more

	mu     sync.Mutex
	counts account.Counts

	points []write.Point
	keys   []byte
	key    []byte // of the series under way, in keys
}

func (ws *Writers) newWriter(name string) *Writer {
	w := &Writer{ws: ws, name: name, tags: ws.tagger.NewBatch(),
		points: make([]write.Point, 0, batchPoints), keys: make([]byte, 0, batchKeys)}
	w.bucket = unacked.NewBucket(ws.o.Points, name, ws.o.Monitor)
	w.bucket.Form(form)
	w.bucket.Acknowledge(w.report)
	return w
}

// report takes what became of the points of a commit.
func (w *Writer) report(_ write.Token, c account.Counts) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.counts.Add(&c)
}

// ErrLabels says that labels are no label set: one has no name, or two have the same.
var ErrLabels = errors.New("a label without a name, or one that occurs twice")

// ErrLongName says that a series has more bytes of name and labels than a key may have.
var ErrLongName = errors.New("the name and labels of a series have more than 65535 bytes")

// Series begins a series: the next points are its. The labels and the parts of its name are read
// during the call only, and list may be sorted. After an error no point may follow.
func (w *Writer) Series(list []labels.Label, name ...[]byte) error {
	list, ok := labels.Sort(list)
	if !ok {
		return ErrLabels
	}
	if len(w.keys) > cap(w.keys)/2 {
		w.append()
	}
	from := len(w.keys)
	var size int
	w.keys, size = labels.AppendKey(w.keys, list, name...)
	key := w.keys[from:len(w.keys):len(w.keys)]
	if len(key) > metric.MaxKey {
		w.keys = w.keys[:from]
		return ErrLongName
	}
	w.key = key
	if w.tags.Wants(&w.info, key) {
		c := labels.NewChange(w.info.ID, w.info.Name, key, size, list)
		w.err = cmp.Or(w.err, w.tags.Add(w.ws.ctx, c))
	}
	return nil
}

// Point takes a point of the series, of a time in ms since 1970 that is not negative.
func (w *Writer) Point(ms int64, word uint64) {
	w.add(write.Point{Slot: uint64(ms / w.info.Resolution), Word: word,
		Time: uint64(ms) * uint64(time.Millisecond)})
}

// PointAt is Point for a time in ns.
func (w *Writer) PointAt(ns int64, word uint64) {
	w.add(write.Point{Slot: uint64(ns / int64(time.Millisecond) / w.info.Resolution), Word: word,
		Time: uint64(ns)})
}

func (w *Writer) add(p write.Point) {
	if len(w.points) == cap(w.points) {
		w.append()
	}
	p.Key = w.key
	w.points = append(w.points, p)
}

// append hands the points over. The key of the series under way stays where it is.
func (w *Writer) append() {
	if len(w.points) > 0 {
		w.stream.Append(w.points)
		clear(w.points)
	}
	w.points, w.keys = w.points[:0], append(w.keys[:0], w.key...)
	w.key = w.keys
}

// End stores what came, gives series their tags, and waits until all of it is durable. The
// counts are those of the request. The error is a *Refusal where points were not stored. After the
// error of ctx the request may be sent again. Any other error means that nothing can be stored any
// more. The writer is not to be used any more.
func (w *Writer) End(ctx context.Context) (account.Counts, error) {
	w.key = nil
	w.append()
	err := cmp.Or(w.err, w.bucket.Commit(), w.tags.Give(w.ws.ctx))
	if err == nil && w.ws.o.Points.Durable() {
		err = w.ws.o.Points.WaitDurable(ctx, w.bucket.Token())
	}
	w.err, w.stream = nil, nil
	if err != nil {
		return account.Counts{}, cmp.Or(w.bucket.Close(), err) // it may be reported of later
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

// Word returns the word of a value, which reads back as the same double. An integral one is an
// integer, which takes less room. A NaN is a value like others.
func Word(v float64) uint64 {
	if i := int64(v); float64(i) == v && -maxExactInt <= i && i <= maxExactInt &&
		(i != 0 || !math.Signbit(v)) {
		return point.FromInt(i)
	}
	return point.FromFloat(v)
}
