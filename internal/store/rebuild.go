package store

import (
	"bytes"
	"cmp"
	"slices"

	"dalmatiner/internal/manifest"
	"dalmatiner/internal/metric"
	"dalmatiner/internal/segment"
)

// rebuildCatalogue takes the series from the segments that name them.
func (s *Store) rebuildCatalogue(known *bindings) error {
	known.rebuilt = true
	all, err := s.names()
	if err != nil {
		return err
	}
	list := s.columns(latest(all))
	for _, e := range list {
		if err := known.restore(e); err != nil {
			return err
		}
	}
	known.settle()
	if err := s.catalogue.Put(list); err != nil {
		return err
	}
	if err := s.catalogue.Flush(); err != nil {
		return err
	}
	return s.manifest.Commit(manifest.Edit{Catalogue: catalogueState(s.catalogue)})
}

// names returns all names in segments but those of series that were deleted
// after the segment was written.
func (s *Store) names() (all []segment.Series, err error) {
	tombs := make(map[uint32]tombstones)
	for _, b := range s.buckets.all() {
		tombs[b.info.ID] = b.tombs()
	}
	for _, seg := range s.segments {
		if seg.info.Identities == 0 {
			continue
		}
		err := seg.reader.Series(func(e segment.Series) error {
			if seg.meta.CleanTo() >= tombs[e.Bucket].below(metric.SeriesID(e.Hash)) {
				e.Key = bytes.Clone(e.Key)
				all = append(all, e)
			}
			return nil
		})
		if damages := segment.Damages(err); err != nil && len(damages) == 0 {
			return nil, err
		} else if len(damages) > 0 {
			s.reportDamage("segment "+seg.name(), err)
		}
	}
	return all, nil
}

// latest returns of every series the identity with the column that it got last.
func latest(all []segment.Series) []segment.Series {
	slices.SortFunc(all, func(a, b segment.Series) int {
		return cmp.Or(cmp.Compare(a.Bucket, b.Bucket), bytes.Compare(a.Hash[:], b.Hash[:]), cmp.Compare(b.Since, a.Since))
	})
	return slices.CompactFunc(all, func(a, b segment.Series) bool { return a.Bucket == b.Bucket && a.Hash == b.Hash })
}

// columns adds the columns of which series were deleted, and returns all in the
// order of the columns.
func (s *Store) columns(list []segment.Series) []segment.Series {
	for _, b := range s.buckets.all() {
		for _, t := range b.tombs() {
			if t.ref != nowhere {
				e := placed(b, t.ref, t.id)
				e.Since = t.lsn
				list = append(list, e)
			}
		}
	}
	place := func(a, b segment.Series) int {
		return cmp.Or(cmp.Compare(a.Bucket, b.Bucket), cmp.Compare(a.Group, b.Group), cmp.Compare(a.Column, b.Column), bytes.Compare(a.Hash[:], b.Hash[:]))
	}
	slices.SortFunc(list, func(a, b segment.Series) int { return cmp.Or(place(a, b), cmp.Compare(b.Since, a.Since)) })
	return slices.CompactFunc(list, func(a, b segment.Series) bool { return place(a, b) == 0 })
}
