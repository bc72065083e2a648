package columns

import (
	"fmt"
	"sync/atomic"
	"time"

	"dalmatiner/internal/disk/version"
	"dalmatiner/internal/disk/wal"
	"dalmatiner/internal/host/clock"
	"dalmatiner/internal/host/memory"
	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/model/incarnation"
	"dalmatiner/internal/model/metric"
	"dalmatiner/internal/write/head"
	"dalmatiner/internal/write/series"
)

// Log takes the records of what changes.
type Log interface {
	// Define appends a record and calls apply with its position, both or neither in the
	// eyes of a flush: one that ends above the record has what apply did.
	Define(rec []byte, apply func(lsn wal.LSN)) error
	// Delete appends a record of a deletion; with twice it must not get lost where the
	// log is damaged. No flush is under way.
	Delete(rec []byte, twice bool) (wal.LSN, error)
}

// Options are what a table works with.
type Options struct {
	Buckets  *buckets.Registry[*Bucket]
	Log      Log
	Clock    *clock.Clock
	Names    *memory.Stock // takes the memory of names and index
	Versions *version.Versions

	MaxFuture time.Duration // slots that begin further ahead take no points

	// ChunkNeed is what a flush will take for the first points of a new series.
	// NewSeries is called for each one that gets its memory.
	ChunkNeed int64
	NewSeries func()
}

// Table is which series of a node has which column. Its methods may be called
// concurrently.
type Table struct {
	o Options

	// Index and Groups lead from a series to its column. They are changed by this
	// package only.
	Index  series.Index
	Groups series.Groups

	Unflushed PendingChanges
	Deletions incarnation.Clock
	Arrivals  series.Arrivals // of series that senders brought, not of those that a start found

	deactivated atomic.Int64
}

// New returns a table without series.
func New(o Options) *Table { return &Table{o: o} }

// Use sets the stock that takes the memory of names and index, before a series is defined.
func (t *Table) Use(names *memory.Stock) { t.o.Names = names }

// Names returns where names and index take their memory.
func (t *Table) Names() *memory.Stock { return t.o.Names }

// CountNames counts names and index anew: between two counts they are estimated.
func (t *Table) CountNames() {
	was := t.o.Names.Bytes() // what is taken from here on stays counted
	t.o.Names.Add(t.Bytes() - was)
}

// DeactivationCount returns how often a series has lost its column to others.
func (t *Table) DeactivationCount() int64 { return t.deactivated.Load() }

// Position is a column in the view of its group in which it was found.
type Position struct {
	Group   *head.Group
	Columns *head.Columns
	Column  int
}

// Follows returns the position of key if it is what follows here: the column
// itself, in the view of now when the group has grown, the one behind it, when the
// sender has left one out, or the first of the group that followed last time.
func (p Position) Follows(key []byte) (Position, bool) {
	if p.Group == nil {
		return p, false
	}
	cols := p.Group.Columns()
	for col := p.Column; col < p.Column+2; col++ {
		if cols.Is(col, key) {
			return Position{p.Group, cols, col}, true
		}
	}
	if next := p.Group.Next(); next != nil && p.Column >= p.Columns.Len() {
		if cols := next.Columns(); cols.Is(0, key) {
			return Position{next, cols, 0}, true
		}
	}
	return p, false
}

// Locate returns the column of a series that has one.
func (t *Table) Locate(id metric.SeriesID, key []byte) (Position, bool) {
	ref, known := t.Index.Lookup(id)
	if !known || ref.Inactive() {
		return Position{}, false
	}
	g := t.Groups.Get(ref.Group())
	if g == nil {
		return Position{}, false // its bucket was deleted
	}
	p := Position{g, g.Columns(), ref.Column()}
	return p, p.Columns.Is(p.Column, key) // or it is taken at this moment
}

// AdmittedSlots returns the slots [lo, hi) for which a bucket takes points now: the live ones, and
// those that begin soon.
func (t *Table) AdmittedSlots(b *Bucket) (lo, hi uint64) {
	now := t.o.Clock.Unix() / int64(time.Millisecond)
	future := now + t.o.MaxFuture.Milliseconds()
	hi = min(uint64(max(future/b.Resolution+1, 0)), buckets.MaxSlot)
	if ttl := b.TTL(); ttl > 0 {
		lo = uint64(max(now/b.Resolution-ttl, 0))
	}
	return lo, hi
}

// RecentSeries returns the series that are new.
func (t *Table) RecentSeries() series.RecentSeries {
	return t.Arrivals.RecentSeries(t.o.Clock.Unix())
}

// Column returns the place at which the catalogue has a series: its column, or the one it
// had last. It is series.NoColumn for one that is not known.
func (t *Table) Column(b *Bucket, id metric.SeriesID) series.Ref {
	ref, ok := t.Index.Lookup(id)
	switch {
	case !ok:
		return series.NoColumn
	case ref.Inactive():
		return b.inactive.Column(ref)
	}
	return ref
}

// RaiseHighest notes that a slot of a bucket is flushed, unless the bucket is deleted. One
// caller at a time does so.
func (t *Table) RaiseHighest(bucket uint64, slot int64) {
	if b := t.o.Buckets.ID(bucket); b != nil {
		b.RaiseHighest(slot)
	}
}

// Bytes returns the memory of buckets, names and index, estimated where they grow.
func (t *Table) Bytes() int64 {
	n := t.Index.Bytes() + t.o.Buckets.DeletionsBytes()
	for _, g := range t.Groups.All() {
		n += g.Columns().Bytes() + groupCost
	}
	for _, b := range t.o.Buckets.All() {
		n += b.bytes()
	}
	return n
}

// TakeBucket takes the memory of a new bucket before anything of it is made. The error
// wraps a *memory.Refusal; else giveBack undoes it.
func (t *Table) TakeBucket(name string) (giveBack func(), err error) {
	n := bucketBytes(name)
	if err := t.o.Names.TakeOrSay(n); err != nil {
		return nil, fmt.Errorf("no new bucket, known ones are served: %w", err)
	}
	return func() { t.o.Names.Add(-n) }, nil
}

// DeleteBucket takes a bucket out of the registry and of what the next flush names, by the
// deletion that of returns. log brings it into the log and then calls apply, in one moment of a
// flush. The error is that of log, or buckets.ErrUnknown where the bucket was deleted before.
func (t *Table) DeleteBucket(b *Bucket, of func() buckets.Deletion,
	log func(d buckets.Deletion, apply func()) error) error {
	return b.Change(func() error {
		d := of()
		return log(d, func() { t.forgetBucket(b, d) })
	})
}

// DeletedBucket does again what the deletion of a bucket stands for.
func (t *Table) DeletedBucket(b *Bucket, d buckets.Deletion) {
	b.mu.Lock()
	defer b.mu.Unlock()
	t.forgetBucket(b, d)
}

// forgetBucket does what a deletion stands for. The bucket's lock is held, so that no
// series is defined any more.
func (t *Table) forgetBucket(b *Bucket, d buckets.Deletion) {
	b.deleted = true
	t.o.Buckets.Remove(b, d)
	t.Unflushed.dropBucket(d)
}

// NoteDeleted notes the deletion of a bucket that was not there: its creation was
// lost, and its id must not be given again all the same.
func (t *Table) NoteDeleted(d buckets.Deletion) {
	if t.o.Buckets.WasDeleted(d.ID) {
		return
	}
	t.o.Buckets.NoteDeleted(d)
	t.Unflushed.dropBucket(d)
}

// DropGroups gives the memory of a deleted bucket back, and returns what its groups had of
// sealed blocks and of late points. Its chunks in segments have no reader any more.
func (t *Table) DropGroups(b *Bucket) (sealed, late int64) {
	b.mu.Lock()
	groups, names := b.groups, b.inactive.View()
	b.groups, b.partial, b.silent, b.inactive, b.series = nil, nil, nil, series.InactiveNames{}, 0
	b.mu.Unlock()
	names.Each(func(key []byte) bool {
		t.Index.Delete(b.SeriesID(key))
		return true
	})
	for _, g := range groups {
		s, l := g.Kill()
		sealed, late = sealed+s, late+l
		cols := g.Columns()
		for col := range cols.Len() {
			if cols.Has(col) {
				t.Index.Delete(cols.ID(col))
			}
		}
		t.Groups.Remove(g.ID)
	}
	return sealed, late
}
