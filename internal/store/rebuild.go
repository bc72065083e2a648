package store

import (
	"bytes"
	"cmp"
	"slices"

	"dalmatiner/internal/manifest"
	"dalmatiner/internal/metric"
	"dalmatiner/internal/segment"
)

// namedBy is a series and the segment that names it.
type namedBy struct {
	segment.Series
	seq uint64
}

// rebuildCatalogue takes the series from the segments that name them.
func (s *Store) rebuildCatalogue() error {
	all, err := s.names()
	if err != nil {
		return err
	}
	list := s.columns(all)
	for _, e := range list {
		if err := s.restoreSeries(e); err != nil {
			return err
		}
	}
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
func (s *Store) names() (all []namedBy, err error) {
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
				all = append(all, namedBy{e, seg.meta.Seq})
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

// columns returns the columns in their order. A series that is named in several
// has expired and begun anew: it has the one that was named last. The others,
// and those of deleted series, keep their places without a key.
func (s *Store) columns(all []namedBy) (list []segment.Series) {
	slices.SortFunc(all, func(a, b namedBy) int {
		return cmp.Or(cmp.Compare(a.Bucket, b.Bucket), bytes.Compare(a.Hash[:], b.Hash[:]), cmp.Compare(b.seq, a.seq))
	})
	for i := range all {
		e := all[i].Series
		if i > 0 && all[i-1].Bucket == e.Bucket && all[i-1].Hash == e.Hash {
			e.Key = nil
		}
		list = append(list, e)
	}
	for _, b := range s.buckets.all() {
		for _, t := range b.tombs() {
			list = append(list, segment.Series{Bucket: b.info.ID, Hash: segment.Hash(t.id),
				Group: t.ref.group(), Column: uint16(t.ref.column())})
		}
	}
	// Merges carry identities on, so segments do not name them in the order of
	// their columns. Of one column the entry with a key comes first.
	slices.SortStableFunc(list, func(a, b segment.Series) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Column, b.Column), -cmp.Compare(min(len(a.Key), 1), min(len(b.Key), 1)))
	})
	return slices.CompactFunc(list, func(a, b segment.Series) bool { return a.Group == b.Group && a.Column == b.Column })
}
