package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"dalmatiner/internal/columns"
	"dalmatiner/internal/logrecord"
	"dalmatiner/internal/metric"
)

// ErrUnknownSeries is wrapped by the error of a deletion of one series that
// there is not.
var ErrUnknownSeries = errors.New("unknown series")

// ErrTooManyDeleted is wrapped by the error of a deletion that would make more
// tombstones than the node keeps.
var ErrTooManyDeleted = errors.New("too many deleted series are still in segments")

// maxTombstones bounds the series of the node that are deleted and still in
// segments, and with them the memory and the MANIFEST: some 128 MB and 44 MB,
// of the 64 MiB that an edit may have.
const maxTombstones = 2 << 20

// deleteSlice is how many series of a deletion are taken out under one lock: some
// 80 ms of work.
const deleteSlice = 1 << 14

// SeriesChoice says which series of a bucket are meant.
type SeriesChoice struct {
	Key    []byte // of a metric, or what keys begin with: whole parts
	Prefix bool
}

func (c *SeriesChoice) takes(key []byte) bool {
	if c.Prefix {
		return bytes.HasPrefix(key, c.Key)
	}
	return bytes.Equal(key, c.Key)
}

// DeletedSeries says what a deletion did.
type DeletedSeries struct {
	Series   int64 // deleted, or to be deleted by the same call without DryRun
	Segments int64 // that may hold points of them until a merge has freed the space
	Bytes    int64 // of these segments
}

// DeleteSeries deletes series with all their points. When the call returns, the
// deletion is durable in every sync mode: no read gives such a point again, and
// a point received later begins the series anew. The deleted points stay in the
// account; merges free their space. With dryRun the series are only counted.
// The error wraps buckets.ErrUnknown, or ErrUnknownSeries where one metric is
// meant. After any other error, and after a crash, each series is whole or gone.
//
// Many series are deleted in slices, each a deletion by itself: flushes and new
// series wait for one of them, and for a flush under way.
func (s *Store) DeleteSeries(ctx context.Context, name string, choice SeriesChoice, dryRun bool) (DeletedSeries, error) {
	b, err := s.buckets.Named(name)
	if err != nil {
		return DeletedSeries{}, err
	}
	ids, err := s.choose(ctx, b, choice)
	if err == nil && len(ids) == 0 && !choice.Prefix {
		err = fmt.Errorf("%w %s in bucket %s", ErrUnknownSeries, metric.Text(choice.Key), metric.Quoted(name))
	}
	if err != nil {
		return DeletedSeries{}, err
	}
	out := DeletedSeries{Series: int64(len(ids))}
	out.Segments, out.Bytes = s.holders(b.ID)
	if dryRun || len(ids) == 0 {
		return out, nil
	}
	if err := s.checkTombstones(len(ids)); err != nil {
		return out, err
	}
	if err := s.awaitReplay(ctx); err != nil {
		return DeletedSeries{}, err
	}
	out.Series = 0
	clock := uint64(0)
	for part := range slices.Chunk(ids, s.deleteSlice) {
		n, err := s.deleteSeries(ctx, b, part, &clock)
		if out.Series += n; err != nil {
			return out, fmt.Errorf("after %d of %d series were deleted: %w", out.Series, len(ids), err)
		}
	}
	return out, s.log.Sync()
}

// choose returns the series of a bucket that are meant, those of a group together.
func (s *Store) choose(ctx context.Context, b *columns.Bucket, choice SeriesChoice) (ids []metric.SeriesID, err error) {
	if !choice.Prefix {
		if id := b.SeriesID(choice.Key); s.columns.Index.Has(id) {
			ids = append(ids, id)
		}
		return ids, nil
	}
	return b.Choose(ctx, choice.takes)
}

// checkTombstones refuses so many more of them as the node cannot keep.
func (s *Store) checkTombstones(more int) error {
	if n := s.committedTombstones() + int64(more); n > s.maxTombstones {
		return fmt.Errorf("%w: %d with these %d, the limit is %d; delete the bucket, or flush and merge first",
			ErrTooManyDeleted, n, more, s.maxTombstones)
	}
	return nil
}

// deleteSeries deletes series at once and returns how many there still were.
// Nobody can begin one of them anew before all is done: that takes the bucket's
// lock. One that began anew since it was chosen is the same series. clock is that of
// the slice before, and becomes that of this one.
func (s *Store) deleteSeries(ctx context.Context, b *columns.Bucket, ids []metric.SeriesID, clock *uint64) (n int64, err error) {
	s.flusher.Gate().Lock()
	defer s.flusher.Gate().Unlock()
	switch {
	case s.flusher.Gate().Closed():
		return 0, ErrClosed
	case ctx.Err() != nil:
		return 0, ctx.Err()
	}
	if err := s.checkTombstones(len(ids)); err != nil { // another call may delete as well
		return 0, err
	}
	// A flush from here on, and a merge that begins from here on, has a number
	// or a PurgedThrough that is not lower.
	*clock = s.columns.Deletions.Next(*clock, s.o.Now())
	d := columns.Deletion{Bucket: b, DeleteSequence: s.dir.TakeDeletion(), Why: logrecord.Deleted, Incarnation: *clock}
	err = s.columns.Delete(&d, ids)
	n = s.deleted(&d)
	s.counters.seriesDeleted.Add(n)
	return n, err
}

// deleted counts what a deletion did, and returns of how many series.
func (s *Store) deleted(d *columns.Deletion) int64 {
	s.pressure.AddLate(-d.Head.LateBytes)
	s.counters.pointsDeleted.Add(d.Head.Points)
	return int64(len(d.Series))
}

// holders returns the segments that hold chunks of a bucket, and their bytes.
func (s *Store) holders(bucket uint64) (n, size int64) {
	for _, seg := range s.versions.Latest().Segments {
		if seg.Has(bucket) {
			n++
			size += seg.Info.Size
		}
	}
	return n, size
}

// tombstoneCount returns how many tombstones all buckets have.
func (s *Store) tombstoneCount() (n int64) {
	v := s.versions.Latest()
	for _, b := range s.buckets.All() {
		n += int64(len(v.Tombstones(b.ID)))
	}
	return n
}

// committedTombstones returns how many tombstones the MANIFEST has and will have
// with the next flush. It has those of every deletion, and a series that is sent
// again and deleted again counts twice: an edit and a snapshot must hold all.
func (s *Store) committedTombstones() int64 {
	return s.manifest.Tombstones() + s.columns.Unflushed.Tombstones()
}
