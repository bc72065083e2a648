package store

import (
	"math"
	"slices"

	"dalmatiner/internal/hole"
	"dalmatiner/internal/manifest"
	"dalmatiner/internal/segment"
	"dalmatiner/internal/version"
)

// holesOf returns the holes of a bucket, nil where there are none.
func (s *Store) holesOf(bucket uint64) *hole.Set {
	return s.versions.Latest().Holes(bucket)
}

// showHoles puts the holes that are committed into a version, together with the change
// of segments that they belong to.
func (s *Store) showHoles(v *version.Version) {
	all := s.manifest.Holes()
	for _, b := range s.buckets.All() {
		v.Cover(b.info.ID, hole.NewSet(b.info.ID, all))
	}
}

// outsideHoles returns the series that no hole hides a living slot of: of others it is
// not known whether they have points.
func (s *Store) outsideHoles(b *bucket, hashes []segment.Hash) []segment.Hash {
	set := s.holesOf(b.info.ID)
	if set == nil {
		return hashes
	}
	lo, _ := s.admitted(b)
	return slices.DeleteFunc(hashes, func(h segment.Hash) bool {
		return len(set.Spans(nil, hole.PrefixOf(h), int64(lo), math.MaxInt64)) > 0
	})
}

// noteHidden adds the points that the merge leaves out under holes to the segments whose
// loss made them: when such a file comes back, they are recovered as far as it holds
// points for them.
func (m *merging) noteHidden(e *manifest.Edit) {
	if len(m.hidden) == 0 {
		return
	}
	for _, l := range m.s.manifest.State().Lost {
		if n := m.hidden[l.Seq]; n > 0 {
			l.Points += n
			e.Lost = append(e.Lost, l)
		}
	}
}

// loseHidden counts these points as lost, with what hides them: from now on they are in no
// segment. Whether they were out of date is not known.
func (m *merging) loseHidden() {
	for source, n := range m.hidden {
		cause := LostSegment
		if source == 0 {
			cause = LostBlocks
		}
		m.s.account.Lose(cause, n)
	}
}

// outlivedHoles returns the holes all of whose slots are older than the lifetime of
// their bucket.
func (s *Store) outlivedHoles() (ended []hole.Hole) {
	for _, b := range s.buckets.All() {
		lo, _ := s.admitted(b)
		for _, h := range s.holesOf(b.info.ID).Holes() {
			if h.Past <= int64(lo) {
				ended = append(ended, h)
			}
		}
	}
	return ended
}
