package store

import (
	"dalmatiner/internal/incarnation"
	"dalmatiner/internal/manifest"
	"dalmatiner/internal/metric"
)

// nextIncarnation returns the clock of a slice of a deletion. of is that of the slice
// before, 0 for the first: all have the same, so that it does not matter where a
// deletion is cut, unless another one came in between. flushMu is held.
func (s *Store) nextIncarnation(of uint64) uint64 {
	if last := s.lastIncarnation.Load(); of == 0 || of != last {
		of = incarnation.Next(last, s.o.Now())
		s.sawIncarnation(of)
	}
	return of
}

// sawIncarnation makes later deletions have a higher clock.
func (s *Store) sawIncarnation(n uint64) {
	for {
		last := s.lastIncarnation.Load()
		if n <= last || s.lastIncarnation.CompareAndSwap(last, n) {
			return
		}
	}
}

// restoreIncarnations notes the deletions of a bucket that the MANIFEST has.
func (s *Store) restoreIncarnations(b *bucket, all []manifest.Tombstones) {
	for i := range all {
		if t := &all[i]; t.Bucket == b.info.ID {
			for j := range t.Series {
				b.incarnations.Raise(metric.SeriesID(t.Series[j].Hash), t.Incarnation)
			}
		}
	}
}

// remembers reports whether a deletion that a segment names is the last one of its
// series, and not yet forgotten.
func (s *Store) remembers(b *bucket, id metric.SeriesID, n uint64) bool {
	return n > s.rememberAfter.Load() && b.incarnations.Of(id) == n
}

// outlived says up to which clock an edit that adds tombstones forgets deletions, 0
// for none, and of how many series too early.
func (s *Store) outlived(more int64) (clock uint64, early int64) {
	return s.manifest.Outlived(incarnation.Expired(s.o.Now()), s.maxTombstones-more)
}

// forgetDeletions forgets what an edit did that is committed. flushMu is held.
func (s *Store) forgetDeletions(upTo uint64, early int64) {
	if upTo <= s.rememberAfter.Load() {
		return
	}
	s.rememberAfter.Store(upTo)
	if early > 0 {
		s.counters.deletionsForgotten.Add(early)
		s.o.Logger.Warn("deletions of series are forgotten before their time: there are too many", "series", early, "limit", s.maxTombstones)
	}
	for _, b := range s.buckets.All() {
		b.mu.Lock() // nobody begins one of them anew
		tombs := s.tombs(b.info.ID)
		b.incarnations.Forget(upTo, func(id metric.SeriesID) bool { return s.index.Has(id) || tombs.DeleteSequence(id) > 0 })
		b.mu.Unlock()
	}
}
