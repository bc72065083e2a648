package store

import (
	"dalmatiner/internal/columns"
	"dalmatiner/internal/incarnation"
	"dalmatiner/internal/manifest"
	"dalmatiner/internal/metric"
)

// restoreIncarnations notes the deletions of a bucket that the MANIFEST has.
func (s *Store) restoreIncarnations(b *columns.Bucket, all []manifest.Tombstones) {
	for i := range all {
		if t := &all[i]; t.Bucket == b.ID {
			for j := range t.Series {
				b.Incarnations.Raise(metric.SeriesID(t.Series[j].Hash), t.Incarnation)
			}
		}
	}
}

// outlived says up to which clock an edit that adds tombstones forgets deletions, 0
// for none, and of how many series too early.
func (s *Store) outlived(more int64) (clock uint64, early int64) {
	return s.manifest.Outlived(incarnation.Expired(s.o.Now()), s.maxTombstones-more)
}

// forgetDeletions forgets what an edit did that is committed. flushMu is held.
func (s *Store) forgetDeletions(upTo uint64, early int64) {
	if s.columns.ForgetDeletions(upTo) && early > 0 {
		s.counters.deletionsForgotten.Add(early)
		s.o.Logger.Warn("deletions of series are forgotten before their time: there are too many", "series", early, "limit", s.maxTombstones)
	}
}
