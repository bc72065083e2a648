package columns

import (
	"bytes"
	"context"
	"maps"
	"slices"

	"dalmatiner/internal/disk/version"
	"dalmatiner/internal/disk/wal"
	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/model/metric"
	"dalmatiner/internal/write/head"
	"dalmatiner/internal/write/logrecord"
	"dalmatiner/internal/write/series"
)

// Deletion is series that are taken out of a bucket.
type Deletion struct {
	Bucket         *Bucket
	DeleteSequence uint64
	Why            logrecord.Reason
	Incarnation    uint64 // that they have from then on, or go on to have; 0 where they expired

	// Elsewhere says that another node has made the deletion. Series with its incarnation or a higher
	// one stay, and it is remembered for series that are not there.
	Elsewhere bool

	Series []version.Tombstone // that are gone by now
	Head   head.DeletedCounts  // what it held of them

	absent []version.Tombstone // of series that are not there, and remembered

	lsn uint64 // of the last record
	rec []byte
}

// IDs returns the series that are gone by now, and those that were not there and are remembered.
func (d *Deletion) IDs() []metric.SeriesID {
	ids := make([]metric.SeriesID, 0, len(d.Series)+len(d.absent))
	for _, list := range [][]version.Tombstone{d.Series, d.absent} {
		for i := range list {
			ids = append(ids, list[i].ID)
		}
	}
	return ids
}

// LSN is the position of the last record of the deletion, 0 where it had none.
func (d *Deletion) LSN() wal.LSN { return wal.LSN(d.lsn) }

// refOf is the column that a deleted series had.
func refOf(t *version.Tombstone) series.Ref { return series.RefAt(t.Group, int(t.Column)) }

// Choose returns the series of a bucket whose keys takes wants, those of a group together.
// The error is that of ctx, or wraps buckets.ErrUnknown.
func (b *Bucket) Choose(ctx context.Context,
	takes func(key []byte) bool) (ids []metric.SeriesID, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.deleted {
		return nil, buckets.UnknownError(b.Name)
	}
	for _, g := range b.groups {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		cols := g.Columns()
		for col := range cols.Len() {
			if cols.HasName(col) && takes(cols.Key(col)) {
				ids = append(ids, cols.ID(col))
			}
		}
	}
	for _, ref := range b.inactive.Find(takes) {
		ids = append(ids, b.SeriesID(b.inactive.Key(ref)))
	}
	return ids, nil
}

// Delete takes those of the series out of the bucket that are still there: from the log, the
// head and the index. One that began anew since it was chosen is the same series. Of expired
// series it takes those of which the head holds nothing. Nobody can begin one of them anew
// before all is done and, of those that were deleted, readers have the tombstones. d says
// what was done, also after an error, which is that of the log or wraps buckets.ErrUnknown.
// The lock of flushes is held.
func (t *Table) Delete(d *Deletion, ids []metric.SeriesID) error {
	b := d.Bucket
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.deleted {
		return buckets.UnknownError(b.Name)
	}
	var absent []metric.SeriesID
	if d.Elsewhere {
		ids, absent = d.news(&t.Index, ids)
	}
	err := t.deleteAll(d, ids)
	if err == nil {
		err = d.remember(t, absent)
	}
	if d.Why == logrecord.Expired || len(d.Series)+len(d.absent) == 0 {
		return err
	}
	for _, list := range [][]version.Tombstone{d.Series, d.absent} {
		for i := range list {
			list[i].LSN = d.lsn
		}
	}
	all := slices.Concat(d.Series, d.absent)
	t.PublishTombstones(b.ID, all)
	t.Unflushed.AddTombstones(b, all)
	return err
}

// news returns the series for which the deletion is news: those that are there, and the absent
// ones.
func (d *Deletion) news(index *series.Index, ids []metric.SeriesID) (here,
	absent []metric.SeriesID) {
	for _, id := range ids {
		switch {
		case d.Incarnation <= d.Bucket.Incarnations.Get(id):
		case index.Has(id):
			here = append(here, id)
		default:
			absent = append(absent, id)
		}
	}
	return here, absent
}

// remember logs and notes the deletion of series that are not there.
func (d *Deletion) remember(t *Table, ids []metric.SeriesID) error {
	for part := range slices.Chunk(ids, head.Width) {
		list := make([]version.Tombstone, len(part))
		for i, id := range part {
			list[i] = d.tombstone(id, series.None)
		}
		if err := t.logDeletion(d, series.None.Group(), list); err != nil {
			return err
		}
		for _, id := range part {
			d.Bucket.Incarnations.Raise(id, d.Incarnation)
		}
		d.absent = append(d.absent, list...)
	}
	return nil
}

// PublishTombstones adds tombstones to those of a bucket that readers see. The lock of
// flushes is held, or the store is not in use yet.
func (t *Table) PublishTombstones(bucket uint64, list []version.Tombstone) {
	all := t.Tombstones(bucket).Union(list)
	t.o.Versions.Publish(func(v *version.Version) { v.Delete(bucket, all) })
}

// Tombstones returns the tombstones of a bucket that readers see.
func (t *Table) Tombstones(bucket uint64) version.Tombstones {
	return t.o.Versions.Latest().Tombstones(bucket)
}

func (t *Table) deleteAll(d *Deletion, ids []metric.SeriesID) error {
	byGroup := make(map[uint32]*head.Mask)
	var inactive []series.Ref
	for _, id := range ids {
		if ref, ok := t.Index.Lookup(id); ok && ref.Inactive() {
			inactive = append(inactive, ref)
		} else if ok {
			if byGroup[ref.Group()] == nil {
				byGroup[ref.Group()] = new(head.Mask)
			}
			byGroup[ref.Group()].Set(ref.Column())
		}
	}
	for _, group := range slices.Sorted(maps.Keys(byGroup)) {
		if g := t.Groups.Get(group); g != nil {
			if err := t.deleteColumns(d, g, *byGroup[group]); err != nil {
				return err
			}
		}
	}
	return t.deleteInactive(d, inactive)
}

// deleteColumns takes columns of a group away from their series.
func (t *Table) deleteColumns(d *Deletion, g *head.Group, want head.Mask) error {
	cols := g.Columns()
	var list []version.Tombstone
	gone, err := g.Delete(want, d.Bucket.Width(), d.Why == logrecord.Expired, func(m head.Mask) error {
		for col := range cols.Len() {
			if m.Has(col) {
				list = append(list, d.tombstone(cols.ID(col), series.RefAt(g.ID, col)))
			}
		}
		return t.logDeletion(d, g.ID, list)
	})
	if err != nil {
		return err
	}
	for i := range list {
		t.drop(d, list[i], cols.Key(int(list[i].Column)), refOf(&list[i]))
	}
	d.noteDropped(g, cols, gone)
	return nil
}

// deleteInactive takes series out of the bucket that have no column.
func (t *Table) deleteInactive(d *Deletion, refs []series.Ref) error {
	b := d.Bucket
	for part := range slices.Chunk(refs, head.Width) {
		list := make([]version.Tombstone, len(part))
		for i, ref := range part {
			list[i] = d.tombstone(b.SeriesID(b.inactive.Key(ref)), series.None)
		}
		if err := t.logDeletion(d, series.None.Group(), list); err != nil {
			return err
		}
		for i, ref := range part {
			key := bytes.Clone(b.inactive.Key(ref))
			t.drop(d, list[i], key, b.inactive.Remove(ref))
		}
	}
	return nil
}

func (d *Deletion) tombstone(id metric.SeriesID, ref series.Ref) version.Tombstone {
	return version.Tombstone{
		ID:             id,
		Group:          ref.Group(),
		Column:         uint8(ref.Column()),
		DeleteSequence: d.DeleteSequence,
		Incarnation:    d.Incarnation,
	}
}

func (t *Table) logDeletion(d *Deletion, group uint32, list []version.Tombstone) error {
	d.rec = logrecord.AppendSeriesDeleted(d.rec[:0], d.Bucket.ID, group, d.Why, d.Incarnation)
	for i := range list {
		d.rec = logrecord.AppendDeleted(d.rec, int(list[i].Column), list[i].ID)
	}
	// what was deleted must not come back
	lsn, err := t.o.Log.Delete(d.rec, d.Why != logrecord.Expired)
	if err == nil {
		d.lsn = uint64(lsn)
	}
	return err
}

// drop takes a series out of the index, and out of the catalogue, which has it at the place it has
// or had last. key is its name, nil in the replay of the log, when marks say nothing.
func (t *Table) drop(d *Deletion, s version.Tombstone, key []byte, last series.Ref) {
	d.Bucket.Incarnations.Raise(s.ID, s.Incarnation)
	t.dropPlace(d, s, last) // before a merge may find that the index has it no more
	d.Bucket.History.ChangeNames(key, func() { t.Index.Delete(s.ID) })
	d.Bucket.series--
	d.Series = append(d.Series, s)
}

// dropPlace makes the next flush tell the catalogue that a series is gone, which it has at
// last. Records of a deleted one may be replayed: then the catalogue keeps the place
// without a name.
func (t *Table) dropPlace(d *Deletion, s version.Tombstone, last series.Ref) {
	since := uint64(0)
	if d.Why != logrecord.Expired && refOf(&s) != series.None {
		since = d.lsn
	}
	left := d.Bucket.identityOf(last, s.ID)
	t.Unflushed.addGone(formerPlace{d.Bucket.ID, refOf(&s), s.ID}, since, &left)
}

// noteDropped counts what a group has dropped, and offers its columns to others. cols are the
// columns as they were before.
func (d *Deletion) noteDropped(g *head.Group, cols *head.Columns, gone head.DeletedCounts) {
	d.Head.LateBytes += gone.LateBytes
	d.Head.Points += gone.Points
	if head.Width-cols.Bound() < MinReuse && head.Width-g.Columns().Bound() >= MinReuse {
		d.Bucket.partial = append(d.Bucket.partial, g)
	}
}

// Remembers reports whether a deletion that a segment names is the last one of its
// series, and not yet forgotten.
func (t *Table) Remembers(b *Bucket, id metric.SeriesID, incarnation uint64) bool {
	return incarnation > t.Deletions.ForgottenUpTo() && b.Incarnations.Get(id) == incarnation
}

// ForgetDeletions forgets the deletions up to a clock, as an edit does that is committed. It
// is false where they were forgotten before. The lock of flushes is held.
func (t *Table) ForgetDeletions(upTo uint64) bool {
	if !t.Deletions.Forget(upTo) {
		return false
	}
	for _, b := range t.o.Buckets.All() {
		b.mu.Lock() // nobody begins one of them anew
		tombs := t.o.Versions.Latest().Tombstones(b.ID)
		b.Incarnations.Forget(upTo, func(id metric.SeriesID) bool {
			return t.Index.Has(id) || tombs.DeleteSequence(id) > 0
		})
		b.mu.Unlock()
	}
	return true
}
