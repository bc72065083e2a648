// Package appender takes the points of series that are sets of labels into a bucket: it makes
// keys, hands points over in batches, and gives series their tags. It stands between a protocol
// and package write, for senders that get an answer (acked) and for those that get none.
package appender

import (
	"cmp"
	"context"
	"errors"
	"net/netip"
	"time"
	"unsafe"

	"dalmatiner/internal/ingest/labels"
	"dalmatiner/internal/ingest/unacked"
	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/model/metric"
	"dalmatiner/internal/write"
)

// Form is the form of a bucket that a sender creates. A sender that sends once per second or less
// often loses no point, and each point keeps its time.
func Form() buckets.Form { return buckets.Form{Resolution: 1000, HPTS: true} }

// A batch of points is handed over when it has so many points, or bytes of keys.
const (
	batchPoints = 512
	batchKeys   = 64 << 10
)

// Size is the memory of an Appender in bytes.
const Size = batchKeys + batchPoints*int64(unsafe.Sizeof(write.Point{}))

// Appender takes the points of one sender. It is not for concurrent use.
type Appender struct {
	bucket *unacked.Bucket
	tags   labels.TagBatch
	wait   context.Context // of tags that are held back

	stream write.Stream
	info   buckets.Info
	err    error // nothing can be stored any more

	points []write.Point
	keys   []byte
	key    []byte // of the series under way, in keys
}

// New returns an appender to a bucket. Waits for the store of tags end with wait. Close must be
// called.
func New(wait context.Context, bucket *unacked.Bucket, tagger *labels.Tagger) *Appender {
	return &Appender{bucket: bucket, tags: tagger.NewBatch(), wait: wait,
		points: make([]write.Point, 0, batchPoints), keys: make([]byte, 0, batchKeys)}
}

// Begin prepares for points that have arrived now from a peer. Commit must follow. The error is
// that of unacked.Bucket's Stream.
func (a *Appender) Begin(now time.Time, peer netip.AddrPort) error {
	var err error
	if a.stream, _, err = a.bucket.Stream(); err != nil {
		return err
	}
	a.info = a.bucket.Info()
	a.tags.Begin(now, peer)
	return nil
}

// Close commits what is pending, and ends the stream to the bucket. The next Begin opens another.
func (a *Appender) Close() error { return a.bucket.Close() }

// ErrLabels says that labels are no label set: one has no name, or two have the same.
var ErrLabels = errors.New("a label without a name, or one that occurs twice")

// ErrLongName says that a series has more bytes of name and labels than a key may have.
var ErrLongName = errors.New("the name and labels of a series have more than 65535 bytes")

// Series begins a series: the next points are its. The labels and the parts of its name are read
// during the call only, and list may be sorted. After an error no point may follow.
func (a *Appender) Series(list []labels.Label, name ...[]byte) error {
	list, ok := labels.Sort(list)
	if !ok {
		return ErrLabels
	}
	if len(a.keys) > cap(a.keys)/2 {
		a.append()
	}
	from := len(a.keys)
	var size int
	a.keys, size = labels.AppendKey(a.keys, list, name...)
	key := a.keys[from:len(a.keys):len(a.keys)]
	if len(key) > metric.MaxKey {
		a.keys = a.keys[:from]
		return ErrLongName
	}
	a.key = key
	if a.tags.Wants(&a.info, key) {
		c := labels.NewChange(a.info.ID, a.info.Name, key, size, list)
		a.err = cmp.Or(a.err, a.tags.Add(a.wait, c))
	}
	return nil
}

// Point takes a point of the series, of a time in ms since 1970 that is not negative.
func (a *Appender) Point(ms int64, word uint64) {
	a.add(write.Point{Slot: uint64(ms / a.info.Resolution), Word: word,
		Time: uint64(ms) * uint64(time.Millisecond)})
}

// PointAt is Point for a time in ns.
func (a *Appender) PointAt(ns int64, word uint64) {
	a.add(write.Point{Slot: uint64(ns / int64(time.Millisecond) / a.info.Resolution), Word: word,
		Time: uint64(ns)})
}

func (a *Appender) add(p write.Point) {
	if len(a.points) == cap(a.points) {
		a.append()
	}
	p.Key = a.key
	a.points = append(a.points, p)
}

// append hands the points over. The key of the series under way stays where it is.
func (a *Appender) append() {
	if len(a.points) > 0 {
		a.stream.Append(a.points)
		clear(a.points)
	}
	a.points, a.keys = a.points[:0], append(a.keys[:0], a.key...)
	a.key = a.keys
}

// Commit hands all points over, and gives series their tags. An error means that nothing can be
// stored any more.
func (a *Appender) Commit() error {
	a.key = nil
	a.append()
	err := cmp.Or(a.err, a.bucket.Commit(), a.tags.Give(a.wait))
	a.err, a.stream = nil, nil
	return err
}
