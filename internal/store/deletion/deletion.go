// Package deletion deletes series with all their points: whole, durably, and so that none comes
// back. DESIGN.md has the rules.
package deletion

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"dalmatiner/internal/disk/manifest"
	"dalmatiner/internal/disk/version"
	"dalmatiner/internal/disk/wal"
	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/model/metric"
	"dalmatiner/internal/write/backpressure"
	"dalmatiner/internal/write/columns"
	"dalmatiner/internal/write/logrecord"
)

// ErrUnknownSeries is wrapped by the error of a deletion of one series that
// there is not.
var ErrUnknownSeries = errors.New("unknown series")

// ErrTooMany is wrapped by the error of a deletion that would make more
// tombstones than the node keeps.
var ErrTooMany = errors.New("too many deleted series are still in segments")

// DefaultMax bounds the series of the node that are deleted and still in
// segments, and with them the memory and the MANIFEST: some 128 MB and 44 MB,
// of the 64 MiB that an edit may have.
const DefaultMax = 2 << 20

// DefaultSlice is how many series of a deletion are taken out under one lock: some
// 80 ms of work.
const DefaultSlice = 1 << 14

// Options are what deletions work with.
type Options struct {
	Now func() time.Time

	Buckets  *buckets.Registry[*columns.Bucket]
	Columns  *columns.Table
	Versions *version.Versions
	Dir      *version.Dir
	Manifest *manifest.Manifest
	Log      *wal.Log
	Gate     *version.Gate // of flushes
	Pressure *backpressure.Control

	// Deleting is called before series are taken out of a bucket, and done behind it, with those
	// that are gone, and those that were not there and are remembered as deleted.
	Deleting func() (done func(bucket uint64, why logrecord.Reason, incarnation uint64,
		series []metric.SeriesID))

	Replayed func(ctx context.Context) error // waits until a start has all of the log in memory

	Max   func() int64 // tombstones of the node
	Slice func() int   // series of a deletion that are taken out under one lock
}

// Deleter deletes series. Its methods may be called concurrently.
type Deleter struct {
	o        Options
	expected expected
	counters struct{ series, expired, points atomic.Int64 }
}

// New returns the deleter of a store.
func New(o Options) *Deleter { return &Deleter{o: o} }

// Stats are of the deletions since the start.
type Stats struct {
	Series  int64 // by command
	Expired int64 // that left because nothing of them was left
	Points  int64 // of deleted series, that left memory
}

// Stats returns what was deleted since the start.
func (x *Deleter) Stats() Stats {
	c := &x.counters
	return Stats{Series: c.series.Load(), Expired: c.expired.Load(), Points: c.points.Load()}
}

// Choice says which series of a bucket are meant.
type Choice struct {
	Key    []byte // of a metric, or what keys begin with: whole parts
	Prefix bool
}

// Takes reports whether a series of that key is meant.
func (c *Choice) Takes(key []byte) bool {
	if c.Prefix {
		return bytes.HasPrefix(key, c.Key)
	}
	return bytes.Equal(key, c.Key)
}

// Result says what a deletion did.
type Result struct {
	Series   int64 // deleted, or to be deleted by the same call without DryRun
	Segments int64 // that may hold points of them until a merge has freed the space
	Bytes    int64 // of these segments
}

// Delete deletes series with all their points. When the call returns, the
// deletion is durable in every sync mode: no read gives such a point again, and
// a point received later begins the series anew. The deleted points stay in the
// account; merges free their space. With dryRun the series are only counted.
// The error wraps buckets.ErrUnknown, or ErrUnknownSeries where one metric is
// meant. After any other error, and after a crash, each series is whole or gone.
//
// Many series are deleted in slices, each a deletion by itself: flushes and new
// series wait for one of them, and for a flush under way.
func (x *Deleter) Delete(ctx context.Context, name string, choice Choice,
	dryRun bool) (Result, error) {
	b, err := x.o.Buckets.ByName(name)
	if err != nil {
		return Result{}, err
	}
	ids, err := x.choose(ctx, b, choice)
	if err == nil && len(ids) == 0 && !choice.Prefix {
		err = fmt.Errorf("%w %s in bucket %s", ErrUnknownSeries, metric.Text(choice.Key),
			metric.Quote(name))
	}
	if err != nil {
		return Result{}, err
	}
	out := Result{Series: int64(len(ids))}
	out.Segments, out.Bytes = x.holders(b.ID)
	if dryRun || len(ids) == 0 {
		return out, nil
	}
	if err := x.check(len(ids)); err != nil {
		return out, err
	}
	if err := x.o.Replayed(ctx); err != nil {
		return Result{}, err
	}
	out.Series = 0
	clock := uint64(0)
	for part := range slices.Chunk(ids, x.o.Slice()) {
		n, err := x.deleteSlice(ctx, b, part, &clock)
		if out.Series += n; err != nil {
			return out, fmt.Errorf("after %d of %d series were deleted: %w", out.Series, len(ids), err)
		}
	}
	return out, x.o.Log.Sync()
}

// choose returns the series of a bucket that are meant, those of a group together.
func (x *Deleter) choose(ctx context.Context, b *columns.Bucket,
	choice Choice) (ids []metric.SeriesID, err error) {
	if !choice.Prefix {
		if id := b.SeriesID(choice.Key); x.o.Columns.Index.Has(id) {
			ids = append(ids, id)
		}
		return ids, nil
	}
	return b.Choose(ctx, choice.Takes)
}

// check refuses so many more of them as the node cannot keep.
func (x *Deleter) check(more int) error {
	if n := x.committed() + int64(more); n > x.o.Max() {
		return fmt.Errorf("%w: %d with these %d, the limit is %d; delete the bucket, or flush and "+
			"merge first",
			ErrTooMany, n, more, x.o.Max())
	}
	return nil
}

// deleteSlice deletes series at once and returns how many there still were.
// One that began anew since it was chosen is the same series. clock is that of
// the slice before, and becomes that of this one.
func (x *Deleter) deleteSlice(ctx context.Context, b *columns.Bucket, ids []metric.SeriesID,
	clock *uint64) (n int64, err error) {
	d := columns.Deletion{Bucket: b, Why: logrecord.Deleted}
	err = x.slice(ctx, &d, ids, func() {
		*clock = x.o.Columns.Deletions.Next(*clock, x.o.Now())
		d.Incarnation = *clock
	})
	x.counters.series.Add(int64(len(d.Series)))
	return int64(len(d.Series)), err
}

// slice does a deletion of series at once, which begin completes. Nobody can begin one of them anew
// before all is done: that takes the bucket's lock.
func (x *Deleter) slice(ctx context.Context, d *columns.Deletion, ids []metric.SeriesID,
	begin func()) error {
	x.o.Gate.Lock()
	defer x.o.Gate.Unlock()
	switch {
	case x.o.Gate.IsClosed():
		return version.ErrClosed
	case ctx.Err() != nil:
		return ctx.Err()
	}
	if err := x.check(len(ids)); err != nil { // another call may delete as well
		return err
	}
	// A flush from here on, and a merge that begins from here on, has a number
	// or a PurgedThrough that is not lower.
	begin()
	d.DeleteSequence = x.o.Dir.TakeDeletion()
	err := x.delete(d, ids)
	x.Count(d)
	return err
}

// delete takes series out of a bucket, with their tags.
func (x *Deleter) delete(d *columns.Deletion, ids []metric.SeriesID) error {
	done := x.o.Deleting()
	err := x.o.Columns.Delete(d, ids)
	done(d.Bucket.ID, d.Why, d.Incarnation, d.IDs())
	return err
}

// Count counts what a deletion did, and returns of how many series.
func (x *Deleter) Count(d *columns.Deletion) int64 {
	x.o.Pressure.AddLate(-d.Head.LateBytes)
	x.counters.points.Add(d.Head.Points)
	return int64(len(d.Series))
}

// Expire deletes series of which nothing is left, nothing is expected, and which nobody asked to
// delete. The caller has the gate.
func (x *Deleter) Expire(b *columns.Bucket, ids []metric.SeriesID) error {
	return x.expected.others(ids, func(ids []metric.SeriesID) error { return x.expire(b, ids) })
}

func (x *Deleter) expire(b *columns.Bucket, ids []metric.SeriesID) error {
	d := columns.Deletion{Bucket: b, Why: logrecord.Expired}
	err := x.delete(&d, ids)
	x.counters.expired.Add(x.Count(&d))
	if errors.Is(err, buckets.ErrUnknown) {
		return nil // all of it is gone
	}
	return err
}

// holders returns the segments that hold chunks of a bucket, and their bytes.
func (x *Deleter) holders(bucket uint64) (n, size int64) {
	for _, seg := range x.o.Versions.Latest().Segments {
		if seg.Has(bucket) {
			n++
			size += seg.Info.Size
		}
	}
	return n, size
}

// Tombstones returns how many tombstones all buckets have.
func (x *Deleter) Tombstones() (n int64) {
	v := x.o.Versions.Latest()
	for _, b := range x.o.Buckets.All() {
		n += int64(len(v.Tombstones(b.ID)))
	}
	return n
}

// committed returns how many tombstones the MANIFEST has and will have
// with the next flush. It has those of every deletion, and a series that is sent
// again and deleted again counts twice: an edit and a snapshot must hold all.
func (x *Deleter) committed() int64 {
	return x.o.Manifest.Tombstones() + x.o.Columns.Unflushed.Tombstones()
}
