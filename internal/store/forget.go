package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"dalmatiner/internal/buckets"
	"dalmatiner/internal/catalogue"
	"dalmatiner/internal/head"
	"dalmatiner/internal/logrecord"
	"dalmatiner/internal/metric"
	"dalmatiner/internal/segment"
	"dalmatiner/internal/series"
	"dalmatiner/internal/version"
	"dalmatiner/internal/wal"
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
	out.Segments, out.Bytes = s.holders(b.info.ID)
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
func (s *Store) choose(ctx context.Context, b *bucket, choice SeriesChoice) (ids []metric.SeriesID, err error) {
	if !choice.Prefix {
		if id := b.seriesID(choice.Key); s.index.Has(id) {
			ids = append(ids, id)
		}
		return ids, nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.deleted {
		return nil, buckets.Unknown(b.info.Name)
	}
	for _, g := range b.groups {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		cols := g.Columns()
		for col := range cols.Len() {
			if cols.Named(col) && choice.takes(cols.Key(col)) {
				ids = append(ids, cols.ID(col))
			}
		}
	}
	for _, ref := range b.inactive.Find(choice.takes) {
		ids = append(ids, b.seriesID(b.inactive.Key(ref)))
	}
	return ids, nil
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
func (s *Store) deleteSeries(ctx context.Context, b *bucket, ids []metric.SeriesID, clock *uint64) (n int64, err error) {
	s.flushMu.Lock()
	defer s.flushMu.Unlock()
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case s.flushMu.Closed():
		return 0, ErrClosed
	case b.deleted:
		return 0, buckets.Unknown(b.info.Name)
	case ctx.Err() != nil:
		return 0, ctx.Err()
	}
	if err := s.checkTombstones(len(ids)); err != nil { // another call may delete as well
		return 0, err
	}
	// A flush from here on, and a merge that begins from here on, has a number
	// or a PurgedThrough that is not lower.
	*clock = s.nextIncarnation(*clock)
	f := forgetting{b: b, below: s.dir.TakeDeletion(), why: logrecord.Deleted, incarnation: *clock}
	err = s.forgetAll(&f, ids)
	if len(f.list) > 0 {
		for i := range f.list {
			f.list[i].LSN = f.lsn
		}
		s.putTombstones(b, f.list)
	}
	s.counters.seriesDeleted.Add(int64(len(f.list)))
	return int64(len(f.list)), err
}

// forgetAll takes those of the series out of the bucket that are still there. The
// locks of flushes and of the bucket are held.
func (s *Store) forgetAll(f *forgetting, ids []metric.SeriesID) error {
	byGroup := make(map[uint32]*head.Mask)
	var inactive []series.Ref
	for _, id := range ids {
		if ref, ok := s.index.Lookup(id); ok && ref.Inactive() {
			inactive = append(inactive, ref)
		} else if ok {
			if byGroup[ref.Group()] == nil {
				byGroup[ref.Group()] = new(head.Mask)
			}
			byGroup[ref.Group()].Set(ref.Column())
		}
	}
	for _, group := range slices.Sorted(maps.Keys(byGroup)) {
		if g := s.groups.Get(group); g != nil {
			if err := s.forget(f, g, *byGroup[group]); err != nil {
				return err
			}
		}
	}
	return s.forgetInactive(f, inactive)
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
		n += int64(len(v.Tombstones(b.info.ID)))
	}
	return n
}

// committedTombstones returns how many tombstones the MANIFEST has and will have
// with the next flush. It has those of every deletion, and a series that is sent
// again and deleted again counts twice: an edit and a snapshot must hold all.
func (s *Store) committedTombstones() int64 {
	n := s.manifest.Tombstones()
	s.pendMu.Lock()
	defer s.pendMu.Unlock()
	return n + version.CountDeleted(s.tombstones)
}

// forgetting is series being taken out of a bucket.
type forgetting struct {
	b           *bucket
	below       uint64
	why         logrecord.Reason
	incarnation uint64 // 0 where they expired
	list        []version.Tombstone
	lsn         uint64 // of the last record
	rec         []byte
}

// forget takes columns of a group away from their series: from the log, the
// head and the index. The locks of flushes and of the bucket are held. Of
// expired series it takes those of which the group holds nothing.
func (s *Store) forget(f *forgetting, g *head.Group, want head.Mask) error {
	cols := g.Columns()
	var list []version.Tombstone
	gone, err := g.Delete(want, f.b.width(), f.why == logrecord.Expired, func(m head.Mask) error {
		for col := range cols.Len() {
			if m.Has(col) {
				list = append(list, version.Tombstone{ID: cols.ID(col), Group: g.ID, Column: uint8(col), DeleteSequence: f.below, Incarnation: f.incarnation})
			}
		}
		return s.logForget(f, g.ID, list)
	})
	if err != nil {
		return err
	}
	for i := range list {
		s.lose(f, list[i], refOf(&list[i]))
	}
	s.dropped(f.b, g, cols, gone)
	return nil
}

// forgetInactive takes series out of the bucket that have no column.
func (s *Store) forgetInactive(f *forgetting, refs []series.Ref) error {
	for part := range slices.Chunk(refs, head.Width) {
		list := make([]version.Tombstone, len(part))
		for i, ref := range part {
			list[i] = version.Tombstone{ID: f.b.seriesID(f.b.inactive.Key(ref)), Group: series.None.Group(), Column: uint8(series.None.Column()), DeleteSequence: f.below, Incarnation: f.incarnation}
		}
		if err := s.logForget(f, series.None.Group(), list); err != nil {
			return err
		}
		for i, ref := range part {
			s.lose(f, list[i], f.b.inactive.Remove(ref))
		}
	}
	return nil
}

func (s *Store) logForget(f *forgetting, group uint32, list []version.Tombstone) error {
	if err := s.checkLogRoom(); err != nil {
		return err
	}
	f.rec = logrecord.AppendSeriesDeleted(f.rec[:0], f.b.info.ID, group, f.why, f.incarnation)
	for i := range list {
		f.rec = logrecord.AppendDeleted(f.rec, int(list[i].Column), list[i].ID)
	}
	var lsn wal.LSN
	var err error
	if f.why == logrecord.Deleted {
		lsn, err = s.log.AppendTwice(f.rec) // what was deleted must not come back
	} else {
		lsn, err = s.log.Append(f.rec)
	}
	f.lsn = uint64(lsn)
	return err
}

// lose takes a series out of the index, and out of the catalogue, which has it at
// the place it has or had last. Records of a deleted one may be replayed: then
// the catalogue keeps the place without a name.
func (s *Store) lose(f *forgetting, t version.Tombstone, last series.Ref) {
	f.b.incarnations.Raise(t.ID, t.Incarnation)
	s.index.Delete(t.ID)
	f.b.series--
	f.list = append(f.list, t)
	left := placed(f.b, last, t.ID)
	s.change(s.placeGone(f, t, &left))
}

// placeGone is what the catalogue is told of a series that is forgotten; left is
// where it has the series, nil for nowhere.
func (s *Store) placeGone(f *forgetting, t version.Tombstone, left *segment.Series) catalogue.Change {
	c := catalogue.Change{Left: left, Nothing: true}
	if f.why == logrecord.Deleted && refOf(&t) != series.None {
		c.Nothing = false
		c.Series = placed(f.b, refOf(&t), t.ID)
		c.Series.Since = f.lsn
		s.pendMu.Lock()
		s.nameless[formerPlace{f.b.info.ID, refOf(&t), t.ID}] = f.lsn
		s.pendMu.Unlock()
	}
	return c
}

// dropped counts what a group has forgotten, and offers its columns to others.
// cols are the columns as they were before.
func (s *Store) dropped(b *bucket, g *head.Group, cols *head.Columns, gone head.Deleted) {
	s.lateBytes.Add(-gone.LateBytes)
	s.counters.pointsDeleted.Add(gone.Points)
	if head.Width-cols.Bound() < minReuse && head.Width-g.Columns().Bound() >= minReuse {
		b.partial = append(b.partial, g)
	}
}

// dropPending takes the series that are gone off the list of those that the
// next flush is to name. The list has what took them behind what named them.
func (s *Store) dropPending() {
	s.pendMu.Lock()
	defer s.pendMu.Unlock()
	before := namingNeed(s.pending...)
	gone := make(map[segment.Hash]bool)
	kept := s.pending[:0]
	for i, c := range slices.Backward(s.pending) {
		switch {
		case !named(c) && c.Left != nil:
			gone[c.Left.Hash] = true
		case named(c) && gone[c.Series.Hash]:
			s.pending[i].Series, s.pending[i].Nothing = segment.Series{}, true
		}
	}
	for _, c := range s.pending {
		if !c.Nothing || c.Left != nil {
			kept = append(kept, c)
		}
	}
	s.unnamed.Add(namingNeed(kept...) - before)
	clear(s.pending[len(kept):])
	s.pending = kept
}

// putTombstones shows tombstones to readers and hands them to the next flush.
func (s *Store) putTombstones(b *bucket, list []version.Tombstone) {
	s.publishTombstones(b.info.ID, list)
	s.pendTombstones(b, list)
}

// pendTombstones hands the tombstones of one deletion to the next flush.
func (s *Store) pendTombstones(b *bucket, list []version.Tombstone) {
	s.pendMu.Lock()
	defer s.pendMu.Unlock()
	s.tombstones = append(s.tombstones, version.Deletion(b.info.ID, list))
}
