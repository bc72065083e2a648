package store

import (
	"context"
	"slices"

	"dalmatiner/internal/disk/segment"
	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/model/metric"
	"dalmatiner/internal/store/compaction"
	"dalmatiner/internal/store/flush"
	"dalmatiner/internal/store/reader"
	"dalmatiner/internal/write/head"
)

// Merge merges what is closed until nothing is left to do. Segments that hold
// anything of deleted series are rewritten without, and series of which nothing
// is left go.
func (s *Store) Merge(ctx context.Context) (compaction.Result, error) {
	if err := s.replay.All(ctx); err != nil {
		return compaction.Result{}, err
	}
	return s.merges.MergeAll(ctx)
}

// newCompactor returns what merges the segments. Manifest and log are open.
func (s *Store) newCompactor() *compaction.Compactor {
	known := knownSeries{s}
	return compaction.New(compaction.Options{
		Now: s.o.Now, Clock: s.clock, Logger: s.o.Logger,
		Dir: s.dir, Versions: s.versions, Gate: s.flusher.Gate(), Manifest: s.disk.Manifest,
		Account: s.ledger.Points(), Damage: &s.damage,
		Buckets: known, Series: known,
		Commit: s.flusher.Commit, Failed: s.pressure.Failure, Sync: s.disk.Log.Sync,
		Needed: s.flusher.Needed, Yields: s.upkeep.Yields,
		Unknown: func(ctx context.Context, bucket uint64, id metric.SeriesID, from,
			past int64) (bool, error) {
			return s.reader.AnyUnknown(ctx, reader.Series{Bucket: bucket, ID: id}, from, past)
		},
		Free: s.pressure.Free, MinFree: s.o.MinFree, MaxFile: s.o.maxMergedFile,
		Merged: func() { s.o.flushStep(flush.StepMerged) },
	})
}

// knownSeries is what merges ask about buckets and series: registry, index and head say it.
type knownSeries struct{ s *Store }

// Buckets returns all buckets, sorted by name.
func (k knownSeries) Buckets() []buckets.Info { return k.s.Buckets() }

// BucketByID returns a bucket that is not deleted.
func (k knownSeries) BucketByID(id uint64) (info buckets.Info, ok bool) {
	b := k.s.buckets.ID(id)
	if b == nil {
		return buckets.Info{}, false
	}
	return b.Info(), true
}

// Known reports whether there is a series, or may be.
func (k knownSeries) Known(id metric.SeriesID) bool {
	return k.s.columns.Index.Has(id) || k.s.disk.Catalogue.NamesUnread()
}

// Going reports whether a series was deleted or has expired since the last flush.
func (k knownSeries) Going(id metric.SeriesID) bool { return k.s.columns.Unflushed.IsLeaving(id) }

// NamesUnread reports that names could not be read.
func (k knownSeries) NamesUnread() bool { return k.s.disk.Catalogue.NamesUnread() }

// Remembers reports whether a deletion is the last one of a series, and not yet forgotten.
func (k knownSeries) Remembers(bucket uint64, id metric.SeriesID, incarnation uint64) bool {
	b := k.s.buckets.ID(bucket)
	return b != nil && k.s.columns.Remembers(b, id, incarnation)
}

// Each calls fn for every series of a bucket until it returns false.
func (k knownSeries) Each(bucket uint64, fn func(metric.SeriesID) bool) {
	b := k.s.buckets.ID(bucket)
	if b == nil {
		return
	}
	columns, names := b.Names()
	for _, cols := range columns {
		for col := 0; col < cols.Len(); col += b.Width() {
			if cols.Has(col) && !fn(b.SeriesID(cols.Key(col))) {
				return
			}
		}
	}
	names.Each(func(key []byte) bool { return fn(b.SeriesID(key)) })
}

// Idle returns the series of a bucket of which the head holds nothing.
func (k knownSeries) Idle(bucket uint64) (list []segment.Hash) {
	b := k.s.buckets.ID(bucket)
	if b == nil {
		return nil
	}
	for _, g := range b.Groups() {
		held, cols := g.HeldColumns(), g.Columns()
		for col := range cols.Len() {
			if cols.HasName(col) && !held.Has(col) {
				list = append(list, segment.Hash(cols.ID(col)))
			}
		}
	}
	_, names := b.Names()
	names.Each(func(key []byte) bool {
		list = append(list, segment.Hash(b.SeriesID(key)))
		return true
	})
	return list
}

// Unheld returns those of the series that are known and of which the head holds nothing. During
// a replay the head does not hold everything yet: there are none.
func (k knownSeries) Unheld(hashes []segment.Hash) []segment.Hash {
	s := k.s
	if s.replay.HasPending() {
		return nil
	}
	groups := make(map[uint32]head.Mask) // what they hold
	return slices.DeleteFunc(hashes, func(h segment.Hash) bool {
		ref, ok := s.columns.Index.Lookup(metric.SeriesID(h))
		if !ok || ref.Inactive() {
			return !ok
		}
		held, ok := groups[ref.Group()]
		if !ok {
			g := s.columns.Groups.Get(ref.Group())
			if g == nil {
				return true
			}
			held = g.HeldColumns()
			groups[ref.Group()] = held
		}
		return held.Has(ref.Column())
	})
}

// Drop lets those of the series go of which the head holds nothing. The caller has the gate of
// flushes.
func (k knownSeries) Drop(bucket uint64, ids []metric.SeriesID) error {
	b := k.s.buckets.ID(bucket)
	if b == nil {
		return nil
	}
	return k.s.deletions.Expire(b, ids)
}
