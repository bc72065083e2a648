package startup

import (
	"bytes"
	"cmp"
	"slices"

	"dalmatiner/internal/disk/segment"
	"dalmatiner/internal/disk/version"
	"dalmatiner/internal/model/metric"
	"dalmatiner/internal/write/series"
)

// nameTries is how often the names of a segment are asked for that the device does not
// give. What the log has of a series without a name is lost, and most failures pass.
const nameTries = 4

// names returns all names in segments but those of series that were deleted
// after the segment was written, what segments say of deletions, and in how many
// segments the device could not read some.
func (s *start) names() (all, deleted []segment.Series, unread int, err error) {
	tombs := make(map[uint64]version.Tombstones)
	v := s.o.Versions.Latest()
	for _, b := range s.o.Buckets.All() {
		tombs[b.ID] = v.Tombstones(b.ID)
	}
	for _, seg := range v.Segments {
		if seg.Info.Identities == 0 {
			continue
		}
		take := func(e segment.Series) error {
			if e.DeleteSequence > 0 {
				deleted = append(deleted, e)
			} else if seg.PurgedThrough() >= tombs[e.Bucket].DeleteSequence(metric.SeriesID(e.Hash)) {
				e.Key = bytes.Clone(e.Key)
				all = append(all, e)
			}
			return nil
		}
		names, gone := len(all), len(deleted)
		err := seg.Reader.Series(take)
		for n := 1; n < nameTries && segment.ReadFailed(err); n++ {
			all, deleted = all[:names], deleted[:gone]
			err = seg.Reader.Series(take)
		}
		if segment.ReadFailed(err) {
			unread++
		}
		if err := s.o.Damage.NoteReadError(seg, err); err != nil {
			return nil, nil, 0, err
		}
	}
	return all, deleted, unread, nil
}

// withoutEnded returns the names of series that began behind their last deletion, as segments and
// MANIFEST say. A segment that was written before a deletion was committed has the name, although
// it holds nothing of the series (store/compaction/DESIGN.md).
func (s *start) withoutEnded(all, deleted []segment.Series) []segment.Series {
	ends := make(map[segment.Hash]uint64)
	for i := range deleted {
		ends[deleted[i].Hash] = max(ends[deleted[i].Hash], deleted[i].Since)
	}
	state := s.d.Manifest.State()
	for _, t := range slices.Concat(state.Tombstones, state.Remembered) {
		for _, d := range t.Series {
			ends[d.Hash] = max(ends[d.Hash], t.LSN)
		}
	}
	return slices.DeleteFunc(all, func(e segment.Series) bool { return e.Since < ends[e.Hash] })
}

// latest returns of every series the identity with the column that it got last. That
// is of its last life, whose incarnation is lower than one before where it expired, was
// forgotten and began anew.
func latest(all []segment.Series) []segment.Series {
	slices.SortFunc(all, func(a, b segment.Series) int {
		return cmp.Or(cmp.Compare(a.Bucket, b.Bucket), bytes.Compare(a.Hash[:], b.Hash[:]),
			cmp.Compare(b.Since, a.Since))
	})
	return slices.CompactFunc(all, func(a, b segment.Series) bool {
		return a.Bucket == b.Bucket && a.Hash == b.Hash
	})
}

// formerColumns adds the columns that deleted series had, by segments and MANIFEST, and
// returns all in the order of the columns. The log may still have records of every
// column that a series had: the last one is not enough. A deletion that the replay does not
// meet any more takes no column: the catalogue had dropped the place, and a start may have
// given it back to the series from which the deleted one took it.
func (s *start) formerColumns(list, deleted []segment.Series) []segment.Series {
	for _, t := range s.d.Manifest.State().Tombstones {
		for _, d := range t.Series {
			deleted = append(deleted, segment.Series{
				Bucket: t.Bucket,
				Hash:   d.Hash,
				Group:  d.Group,
				Column: uint16(d.Column),
				Since:  t.LSN,
			})
		}
	}
	from := s.found.State.ReplayFrom()
	for _, e := range deleted {
		if e.Since <= from {
			continue
		}
		ref := series.RefAt(e.Group, int(e.Column))
		if b := s.o.Buckets.ID(e.Bucket); ref != series.None && b != nil &&
			s.o.Columns.Column(b, metric.SeriesID(e.Hash)) != ref {
			e.Key, e.DeleteSequence, e.Incarnation = nil, 0, 0
			list = append(list, e)
		}
	}
	place := func(a, b segment.Series) int {
		return cmp.Or(cmp.Compare(a.Bucket, b.Bucket), cmp.Compare(a.Group, b.Group),
			cmp.Compare(a.Column, b.Column), bytes.Compare(a.Hash[:], b.Hash[:]))
	}
	slices.SortFunc(list, func(a, b segment.Series) int {
		return cmp.Or(place(a, b), cmp.Compare(b.Since, a.Since))
	})
	return slices.CompactFunc(list, func(a, b segment.Series) bool { return place(a, b) == 0 })
}
