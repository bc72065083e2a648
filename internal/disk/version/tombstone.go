package version

import (
	"bytes"
	"cmp"
	"slices"

	"dalmatiner/internal/disk/manifest"
	"dalmatiner/internal/disk/segment"
	"dalmatiner/internal/model/metric"
)

// Tombstone says that a series was deleted: what a segment holds of it is hidden if the
// segment's PurgedThrough is lower than DeleteSequence.
type Tombstone struct {
	ID             metric.SeriesID
	Group          uint32 // the column it had
	Column         uint8
	DeleteSequence uint64
	LSN            uint64 // of the deletion

	Incarnation uint64 // that it gave, 0 where the series expired
}

// Tombstones are those of a bucket, sorted by id: one a series, the newest. A slice that
// readers have seen is not changed any more.
type Tombstones []Tombstone

func (t Tombstones) search(id metric.SeriesID) (int, bool) {
	return slices.BinarySearchFunc(t, id, func(a Tombstone, id metric.SeriesID) int {
		return bytes.Compare(a.ID[:], id[:])
	})
}

// DeleteSequence returns the number from which on segments may be read for a series.
func (t Tombstones) DeleteSequence(id metric.SeriesID) uint64 {
	if len(t) == 0 {
		return 0
	}
	if i, ok := t.search(id); ok {
		return t[i].DeleteSequence
	}
	return 0
}

// Find returns the tombstone of a series.
func (t Tombstones) Find(id metric.SeriesID) (stone Tombstone, ok bool) {
	i, ok := t.search(id)
	if ok {
		stone = t[i]
	}
	return stone, ok
}

// Union returns t and more. Of two for one series the later counts.
func (t Tombstones) Union(more []Tombstone) Tombstones {
	order := func(a, b *Tombstone) int {
		return cmp.Or(bytes.Compare(a.ID[:], b.ID[:]), -cmp.Compare(a.DeleteSequence, b.DeleteSequence))
	}
	more = slices.Clone(more)
	slices.SortStableFunc(more, func(a, b Tombstone) int { return order(&a, &b) })
	// t is in order: the slices of a large deletion do not sort it again.
	all := make(Tombstones, 0, len(t)+len(more))
	for len(t) > 0 || len(more) > 0 {
		from := (*[]Tombstone)(&t)
		if len(t) == 0 || len(more) > 0 && order(&more[0], &t[0]) < 0 {
			from = &more
		}
		if n := len(all); n == 0 || all[n-1].ID != (*from)[0].ID {
			all = append(all, (*from)[0])
		}
		*from = (*from)[1:]
	}
	return all
}

// Subtract returns t without those that the MANIFEST has no more.
func (t Tombstones) Subtract(b manifest.DroppedTombstones) Tombstones {
	return slices.DeleteFunc(slices.Clone(t), func(s Tombstone) bool {
		return s.DeleteSequence <= b.DeleteSequence && s.LSN < b.LSN
	})
}

// HashesAfter returns the hashes that are deleted in a segment with that PurgedThrough, sorted.
func (t Tombstones) HashesAfter(purged uint64) (hashes []segment.Hash) {
	for i := range t {
		if purged < t[i].DeleteSequence {
			hashes = append(hashes, segment.Hash(t[i].ID))
		}
	}
	return hashes
}

// FromManifest returns what the MANIFEST has of a bucket.
func FromManifest(bucket uint64, all []manifest.Tombstones) Tombstones {
	var list []Tombstone
	for i := range all {
		t := &all[i]
		if t.Bucket != bucket {
			continue
		}
		for _, d := range t.Series {
			list = append(list, Tombstone{metric.SeriesID(d.Hash), d.Group, d.Column, t.DeleteSequence,
				t.LSN, t.Incarnation})
		}
	}
	return Tombstones(nil).Union(list)
}

// CountDeleted returns how many tombstones there are in all, of several of one series each.
func CountDeleted(all []manifest.Tombstones) (n int64) {
	for i := range all {
		n += int64(len(all[i].Series))
	}
	return n
}

// Deletion is the tombstones of one deletion as the MANIFEST has them. All have the same
// DeleteSequence, LSN and Incarnation.
func Deletion(bucket uint64, list []Tombstone) manifest.Tombstones {
	t := manifest.Tombstones{Bucket: bucket, DeleteSequence: list[0].DeleteSequence, LSN: list[0].LSN,
		Incarnation: list[0].Incarnation,
		Series:      make([]manifest.DeletedSeries, len(list))}
	for i := range list {
		t.Series[i] = manifest.DeletedSeries{
			Hash:   list[i].ID,
			Group:  list[i].Group,
			Column: list[i].Column,
		}
	}
	return t
}

// ByDeletion puts tombstones in order so that those of one deletion stand together, and
// returns them deletion by deletion.
func ByDeletion(list []Tombstone) (all [][]Tombstone) {
	order := func(x, y Tombstone) int {
		return cmp.Or(cmp.Compare(x.DeleteSequence, y.DeleteSequence), cmp.Compare(x.LSN, y.LSN),
			cmp.Compare(x.Incarnation, y.Incarnation))
	}
	slices.SortFunc(list, order)
	for len(list) > 0 {
		n := 1
		for n < len(list) && order(list[n], list[0]) == 0 {
			n++
		}
		all = append(all, list[:n])
		list = list[n:]
	}
	return all
}
