package store

import (
	"bytes"
	"cmp"
	"slices"

	"dalmatiner/internal/incarnation"
	"dalmatiner/internal/manifest"
	"dalmatiner/internal/metric"
	"dalmatiner/internal/segment"
	"dalmatiner/internal/series"
)

// tombstone says that a series was deleted: what a segment holds of it is
// hidden if the segment's CleanTo is lower than below.
type tombstone struct {
	id    metric.SeriesID
	ref   series.Ref // the column it had
	below uint64
	lsn   uint64 // of the deletion

	incarnation uint64 // that it gave, 0 where the series expired
}

// tombstones are those of a bucket, sorted by id: one a series, the newest. A
// slice that readers have seen is not changed any more.
type tombstones []tombstone

func (t tombstones) search(id metric.SeriesID) (int, bool) {
	return slices.BinarySearchFunc(t, id, func(a tombstone, id metric.SeriesID) int { return bytes.Compare(a.id[:], id[:]) })
}

// below returns the number from which on segments may be read for a series.
func (t tombstones) below(id metric.SeriesID) uint64 {
	if len(t) == 0 {
		return 0
	}
	if i, ok := t.search(id); ok {
		return t[i].below
	}
	return 0
}

// with returns t and more. Of two for one series the later counts.
func (t tombstones) with(more []tombstone) tombstones {
	order := func(a, b *tombstone) int {
		return cmp.Or(bytes.Compare(a.id[:], b.id[:]), -cmp.Compare(a.below, b.below))
	}
	more = slices.Clone(more)
	slices.SortStableFunc(more, func(a, b tombstone) int { return order(&a, &b) })
	// t is in order: the slices of a large deletion do not sort it again.
	all := make(tombstones, 0, len(t)+len(more))
	for len(t) > 0 || len(more) > 0 {
		from := (*[]tombstone)(&t)
		if len(t) == 0 || len(more) > 0 && order(&more[0], &t[0]) < 0 {
			from = &more
		}
		if n := len(all); n == 0 || all[n-1].id != (*from)[0].id {
			all = append(all, (*from)[0])
		}
		*from = (*from)[1:]
	}
	return all
}

// without returns t without those that are buried.
func (t tombstones) without(b manifest.Buried) tombstones {
	return slices.DeleteFunc(slices.Clone(t), func(s tombstone) bool { return s.below <= b.Below && s.lsn < b.LSN })
}

// over returns the hashes that are deleted in a segment, sorted.
func (t tombstones) over(clean uint64) (hashes []segment.Hash) {
	for i := range t {
		if clean < t[i].below {
			hashes = append(hashes, segment.Hash(t[i].id))
		}
	}
	return hashes
}

// manifestGraves returns what the MANIFEST has of a bucket.
func manifestGraves(bucket uint64, all []manifest.Tombstones) tombstones {
	var list []tombstone
	for i := range all {
		t := &all[i]
		if t.Bucket != bucket {
			continue
		}
		for _, d := range t.Series {
			list = append(list, tombstone{metric.SeriesID(d.Hash), series.At(d.Group, int(d.Column)), t.Below, t.LSN, t.Incarnation})
		}
	}
	return tombstones(nil).with(list)
}

// tombs returns the tombstones of a bucket.
func (s *Store) tombs(bucket uint64) tombstones { return s.versions.latest().tombs(bucket) }

// bury adds tombstones to those of a bucket. flushMu is held, or the store is not in
// use yet.
func (s *Store) bury(bucket uint64, list []tombstone) {
	all := s.tombs(bucket).with(list)
	s.versions.publish(func(v *version) {
		v.hide(bucket, all)
		v.deletions++
	})
}

// manifestTombstones is one deletion as the MANIFEST has it. All have the same
// below, lsn and incarnation.
func manifestTombstones(bucket uint64, list []tombstone) manifest.Tombstones {
	t := manifest.Tombstones{Bucket: bucket, Below: list[0].below, LSN: list[0].lsn, Incarnation: list[0].incarnation,
		Series: make([]manifest.DeletedSeries, len(list))}
	for i := range list {
		t.Series[i] = manifest.DeletedSeries{Hash: list[i].id, Group: list[i].ref.Group(), Column: uint8(list[i].ref.Column())}
	}
	return t
}

// addTombstones names the deleted series in a segment as well: the MANIFEST may
// lose the edit that has them.
func addTombstones(w *segment.Writer, t *manifest.Tombstones) {
	for i := range t.Series {
		d := &t.Series[i]
		w.AddSeries(segment.Series{Bucket: t.Bucket, Hash: d.Hash, Group: d.Group, Column: uint16(d.Column), Since: t.LSN, Below: t.Below, Incarnation: t.Incarnation})
	}
}

// compareDeletions is 0 for tombstones of one deletion.
func compareDeletions(x, y *tombstone) int {
	return cmp.Or(cmp.Compare(x.below, y.below), cmp.Compare(x.lsn, y.lsn), cmp.Compare(x.incarnation, y.incarnation))
}

// exhume puts up the tombstones that segments carry and the MANIFEST has lost, and
// adds them to an edit. Those that nothing needs any more may be among them: they
// hide nothing. It reports whether all segments could be read.
func (s *Store) exhume(e *manifest.Edit) (whole bool, err error) {
	whole = true
	remembered := max(s.rememberAfter.Load(), incarnation.Expired(s.o.Now()))
	found := make(map[*bucket][]tombstone)
	for _, seg := range s.versions.latest().segments {
		if seg.info.Identities == 0 {
			continue
		}
		err := seg.reader.Series(func(d segment.Series) error {
			b, id := s.buckets.ID(d.Bucket), metric.SeriesID(d.Hash)
			s.sawIncarnation(d.Incarnation)
			if d.Below == 0 || b == nil || s.tombs(d.Bucket).below(id) >= d.Below {
				return nil
			}
			if d.Incarnation <= remembered { // the series may have begun anew without it
				d.Incarnation = 0
			}
			b.incarnations.Raise(id, d.Incarnation)
			found[b] = append(found[b], tombstone{id, series.At(d.Group, int(d.Column)), d.Below, d.Since, d.Incarnation})
			return nil
		})
		whole = whole && !segment.ReadFailed(err)
		if err := s.noteUnreadable(seg, err); err != nil {
			return false, err
		}
	}
	for b, list := range found {
		list = tombstones(nil).with(list)
		s.bury(b.info.ID, list)
		slices.SortFunc(list, func(x, y tombstone) int { return compareDeletions(&x, &y) })
		for len(list) > 0 {
			n := 1
			for n < len(list) && compareDeletions(&list[n], &list[0]) == 0 {
				n++
			}
			s.nextSeq.Store(max(s.nextSeq.Load(), list[0].below))
			e.Tombstones = append(e.Tombstones, manifestTombstones(b.info.ID, list[:n]))
			list = list[n:]
		}
	}
	return whole, nil
}
