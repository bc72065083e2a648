package columns

import (
	"fmt"
	"sync/atomic"

	"dalmatiner/internal/disk/damage"
	"dalmatiner/internal/disk/segment"
	"dalmatiner/internal/disk/version"
	"dalmatiner/internal/disk/wal"
	"dalmatiner/internal/model/metric"
	"dalmatiner/internal/write/head"
	"dalmatiner/internal/write/logrecord"
	"dalmatiner/internal/write/series"
)

// Ownership is what a start knows of the owners of columns: which series has which column, and
// since when in the log. It changes the table, and is for one goroutine until the start has read
// the log for the first time; then SinceLSNs may be called concurrently.
type Ownership struct {
	t       *Table
	Rebuilt bool // the catalogue was: it may not know every series

	damage *damage.Notes
	bytes  atomic.Int64
	from   uint64 // the replay begins here

	// series has since when a series has its column, or had its last one, by the
	// catalogue, where that is no older than the replay. What the log says then is
	// behind all that it said before, and needs no place here.
	series  map[metric.SeriesID]uint64
	groups  map[uint32]*SinceLSNs
	none    SinceLSNs      // of a group whose series have their columns since before the replay
	claim   segment.Series // that was restored last and has its column only when settled
	claimed bool
	highest uint64
}

// SinceLSNs has the positions in the log since which the columns of a group have their
// series, or had them when they are free; 0 for a column that never had one.
type SinceLSNs struct {
	Column [head.Width]uint64
	Last   uint64 // none is higher
}

// sinceSize is the memory of a SinceLSNs.
const sinceSize = (head.Width + 1) * 8

// NewOwnership returns what a start knows whose replay begins at from. Damage is reported
// to notes.
func (t *Table) NewOwnership(from uint64, notes *damage.Notes) *Ownership {
	return &Ownership{
		t: t, damage: notes, from: from,
		series: make(map[metric.SeriesID]uint64), groups: make(map[uint32]*SinceLSNs),
	}
}

// Bytes returns the memory of what is known of columns. It may be called at any time.
func (o *Ownership) Bytes() int64 { return o.bytes.Load() }

// Highest returns the highest position in the log that a series was restored with.
func (o *Ownership) Highest() uint64 { return o.highest }

// Restore enters a series of the catalogue or of a segment into memory, or one
// without a key, which was taken from a column. Of those that name the same column
// the last one counts; they usually come one after the other. Settle must follow
// the last one.
func (o *Ownership) Restore(e segment.Series) error {
	t := o.t
	b := t.o.Buckets.ID(e.Bucket)
	if b == nil {
		return nil // its bucket was deleted
	}
	if int(e.Column)+b.Width() > head.Width || e.Group >= series.MaxGroups {
		o.damage.Report("catalogue", fmt.Errorf("group %d, column %d of a series: there are %d and %d",
			e.Group, e.Column, series.MaxGroups, head.Width))
		return nil
	}
	o.highest = max(o.highest, e.Since)
	id, ref := metric.SeriesID(e.Hash), series.RefAt(e.Group, int(e.Column))
	if len(e.Key) == 0 {
		t.Unflushed.addUnnamed(formerPlace{e.Bucket, ref, id}, e.Since)
	} else {
		id = b.SeriesID(e.Key)
		if t.Index.Has(id) {
			return nil
		}
		b.Incarnations.Raise(id, e.Incarnation)
		t.Deletions.Advance(e.Incarnation)
		if e.Since >= o.from {
			o.series[id] = e.Since
		}
		b.series++
		t.Index.Define(id, ref)
	}
	c := &o.claim
	switch same := o.claimed && c.Bucket == e.Bucket && c.Group == e.Group && c.Column == e.Column; {
	case same && e.Since <= c.Since:
		o.deactivate(b, ref, e.Key)
		return nil
	case same:
		o.deactivate(b, ref, c.Key)
	default:
		o.Settle()
	}
	key := append(c.Key[:0], e.Key...)
	*c = e
	c.Key, o.claimed = key, true
	return nil
}

// deactivate makes a series one without a column, if there is a name.
func (o *Ownership) deactivate(b *Bucket, ref series.Ref, key []byte) {
	if len(key) > 0 {
		o.t.deactivate(b, ref, key, b.SeriesID(key))
	}
}

// Settle gives the series that was restored last its column.
func (o *Ownership) Settle() {
	t, e := o.t, o.claim
	b := t.o.Buckets.ID(e.Bucket)
	if !o.claimed || b == nil {
		return
	}
	o.claimed = false
	ref := series.RefAt(e.Group, int(e.Column))
	g, err := t.restoreGroup(b, e.Group)
	if err != nil {
		o.damage.Report("catalogue", err)
		o.deactivate(b, ref, e.Key)
		return
	}
	if o.sinceLSN(ref) > e.Since || g.Columns().Has(ref.Column()) && o.sinceLSN(ref) == e.Since {
		o.deactivate(b, ref, e.Key)
		return
	}
	if g.Columns().Has(ref.Column()) {
		o.evict(b, g, ref.Column())
	}
	if len(e.Key) > 0 {
		b.bind(g, ref.Column(), e.Key, b.SeriesID(e.Key), e.Since, t.o.Clock.Monotonic())
	}
	o.note(b, ref, e.Since)
}

// note remembers since when a series has its columns.
func (o *Ownership) note(b *Bucket, ref series.Ref, since uint64) {
	s := o.groups[ref.Group()]
	if s == nil {
		s = new(SinceLSNs)
		o.groups[ref.Group()] = s
		o.bytes.Add(sinceSize)
	}
	for i := range b.Width() {
		s.Column[ref.Column()+i] = since
	}
	s.Last = max(s.Last, since)
}

// SinceLSNs returns since when the columns of a group have their series. It must not be
// written to.
func (o *Ownership) SinceLSNs(group uint32) *SinceLSNs {
	if s := o.groups[group]; s != nil {
		return s
	}
	return &o.none
}

func (o *Ownership) sinceLSN(ref series.Ref) uint64 {
	return o.SinceLSNs(ref.Group()).Column[ref.Column()]
}

// SeriesSince returns since when a series has its column by the catalogue, 0 where that is
// older than the replay.
func (o *Ownership) SeriesSince(id metric.SeriesID) uint64 { return o.series[id] }

// evict takes the column from the series that has it.
func (o *Ownership) evict(b *Bucket, g *head.Group, col int) {
	cols := g.Columns()
	g.Release(col, b.Width())
	o.t.deactivate(b, series.RefAt(g.ID, col), cols.Key(col), cols.ID(col))
}

// restoreGroup returns the group of a series, which it makes where there is none.
func (t *Table) restoreGroup(b *Bucket, group uint32) (*head.Group, error) {
	g := t.Groups.Get(group)
	if g == nil {
		g = t.addGroup(b, group)
	}
	if g.Bucket != b.ID {
		return nil, fmt.Errorf("group %d is of bucket %d; a series of bucket %d wants a column in it",
			group, g.Bucket, b.ID)
	}
	return g, nil
}

// Define does again what gave a column to a series: the record p at lsn. known says that
// the index has the series, at old. Neither its old nor its new column may hold anything.
func (o *Ownership) Define(b *Bucket, p *logrecord.Record, lsn wal.LSN, old series.Ref,
	known bool) {
	t, id, ref := o.t, b.SeriesID(p.Key), series.RefAt(p.Group, p.Column)
	b.mu.Lock()
	defer b.mu.Unlock()
	g, err := t.restoreGroup(b, p.Group)
	if err != nil {
		o.damage.Report("log", err)
		return
	}
	if o.sinceLSN(ref) > uint64(lsn) {
		if !known { // the catalogue knows whose the column became, and lost who had it
			b.series++
			t.deactivate(b, ref, p.Key, id)
		}
		return
	}
	if known && !old.Inactive() {
		t.Groups.Get(old.Group()).Release(old.Column(), b.Width())
	}
	if g.Columns().Has(p.Column) {
		o.evict(b, g, p.Column)
	}
	if !known {
		// it is there: it cannot be refused
		t.o.Names.Add(int64(len(p.Key)) + columnCost + t.Index.Growth(&id))
	}
	t.define(b, g, p.Column, id, p.Key, lsn, old, known)
	o.note(b, ref, uint64(lsn))
}

// Delete takes series away again, wherever they are: the record p at lsn. One that began
// anew stays: then the catalogue is ahead of the record. d has the tombstones of all, which
// go to the next flush; readers do not see them yet. The lock of flushes is held.
func (o *Ownership) Delete(d *Deletion, p *logrecord.Record, lsn wal.LSN) {
	b := d.Bucket
	b.mu.Lock()
	defer b.mu.Unlock()
	d.lsn = uint64(lsn)
	o.t.Deletions.Advance(p.Incarnation)
	for col, id := range p.DeletedSeries() {
		s := d.tombstone(id, series.RefAt(p.Group, col))
		s.LSN = d.lsn
		o.deleteOne(d, s)
	}
	o.t.Unflushed.AddTombstones(b, d.Series)
}

func (o *Ownership) deleteOne(d *Deletion, s version.Tombstone) {
	t, b := o.t, d.Bucket
	ref, known := t.Index.Lookup(s.ID)
	switch {
	case !known || o.series[s.ID] > d.lsn:
		b.Incarnations.Raise(s.ID, s.Incarnation)
		d.Series = append(d.Series, s)
		if refOf(&s) != series.None {
			t.dropPlace(d, s, refOf(&s))
		}
	case ref.Inactive():
		t.drop(d, s, nil, b.inactive.Remove(ref))
	default:
		if g := t.Groups.Get(ref.Group()); g != nil {
			var want head.Mask
			want.Set(ref.Column())
			cols := g.Columns()
			gone, err := g.Delete(want, b.Width(), false, func(head.Mask) error { return nil })
			if err == nil {
				d.noteDropped(g, cols, gone)
			}
		}
		t.drop(d, s, nil, ref)
	}
}

// FinishReplay offers the columns that are free to new series, and drops what is known of
// series: the log was read once.
func (o *Ownership) FinishReplay() {
	for _, b := range o.t.o.Buckets.All() {
		for _, g := range b.groups {
			b.offer(g)
		}
	}
	o.series = nil
}
