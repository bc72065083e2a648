package store

import "dalmatiner/internal/incarnation"

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
