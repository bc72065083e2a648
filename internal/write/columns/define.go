package columns

import (
	"errors"
	"fmt"
	"slices"

	"dalmatiner/internal/disk/catalogue"
	"dalmatiner/internal/disk/segment"
	"dalmatiner/internal/disk/wal"
	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/model/metric"
	"dalmatiner/internal/write/head"
	"dalmatiner/internal/write/logrecord"
	"dalmatiner/internal/write/series"
)

const (
	// MinReuse is how many columns of a group must be silent before they are given
	// to other series: a sender whose new series were scattered over single columns
	// of many groups would pay a lock and a log record for each point. So at most an
	// eighth of the columns of a group that is in use lies idle for good.
	MinReuse = head.Width / 8

	// columnCost is what a new series takes in its group beside its key, until the
	// next count: its id and the place of its key, in lists that grow.
	columnCost = 48

	// groupCost is a group without columns; most of it is the last write to each.
	groupCost = 5 << 10
)

// Why a series gets no column. An unknown bucket is buckets.ErrUnknown.
var (
	ErrNoMemory    = errors.New("there is no memory for new series; raise memory.limit")
	ErrSeriesLimit = fmt.Errorf("the node holds %d groups of series, which is the limit",
		series.MaxGroups)

	// ErrSameHash is for a name of which another one has the hash, which chance does
	// not make. The first name keeps it.
	ErrSameHash = errors.New("another series has the same hash")
)

// silentGroup is a group with columns that others may get.
type silentGroup struct {
	g *head.Group
	n int
}

// Filler gives columns to the new series of one sender, one behind the other in a group
// that no other sender fills. It is not for concurrent use.
type Filler struct {
	t     *Table
	b     *Bucket
	group *head.Group // the group that takes this sender's new series
	last  int         // the last column that one of them got
	rec   []byte
}

// NewFiller returns a filler for a bucket. Close must be called.
func (t *Table) NewFiller(b *Bucket) Filler { return Filler{t: t, b: b} }

// Define gives a series a column that has none, be it new or inactive: first in the log, at
// lsn, then where others find it. lsn is 0 where another sender was faster. The error is one
// of those above, buckets.ErrUnknown, or that of the log.
func (f *Filler) Define(id metric.SeriesID, key []byte) (p Position, lsn wal.LSN, err error) {
	t, b := f.t, f.b
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.deleted {
		return p, 0, buckets.ErrUnknown
	}
	ref, known := t.Index.Lookup(id)
	if known && !ref.Inactive() {
		g := t.Groups.Get(ref.Group())
		if g == nil {
			return p, 0, buckets.ErrUnknown
		}
		if p = (Position{g, g.Columns(), ref.Column()}); !p.Columns.Is(p.Column, key) {
			return p, 0, ErrSameHash
		}
		return p, 0, nil // another session was faster
	}
	if known && !b.inactive.Is(ref, key) {
		return p, 0, ErrSameHash
	}
	if !known && t.o.Names.IsFull() {
		return p, 0, ErrNoMemory // at once: a flood must not search for a place with each of its points
	}
	g, col, err := f.freeColumn(known)
	if err != nil {
		return p, 0, err
	}
	taken := int64(0)
	if !known {
		var ok bool
		if taken, ok = t.takeName(g, &id, key); !ok {
			return p, 0, ErrNoMemory
		}
	}
	f.rec = logrecord.AppendSeries(f.rec[:0], b.ID, g.ID, col, b.Incarnations.Get(id), key)
	err = t.o.Log.Define(f.rec, func(at wal.LSN) {
		lsn, f.last = at, col+b.Width()-1
		t.define(b, g, col, id, key, lsn, ref, known)
	})
	if err != nil {
		t.o.Names.Add(-taken)
		return p, 0, err
	}
	if !known {
		t.Arrivals.Add(id, t.o.Clock.Unix())
	}
	return Position{g, g.Columns(), col}, lsn, nil
}

// Close leaves the group to other senders.
func (f *Filler) Close() {
	if f.group == nil {
		return
	}
	f.b.mu.Lock()
	defer f.b.mu.Unlock()
	if !f.b.deleted {
		f.b.offer(f.group)
	}
	f.group = nil
}

// offer lists a group that no sender fills if it has free columns. The bucket's lock is
// held.
func (b *Bucket) offer(g *head.Group) {
	if g.Columns().Bound() < head.Width {
		b.partial = append(b.partial, g)
	}
}

// freeColumn returns a free column, behind the one that this sender got last where it
// can. A known series gets a group even where there is no memory for new ones. The
// bucket's lock is held.
func (f *Filler) freeColumn(known bool) (*head.Group, int, error) {
	if f.group != nil {
		if col, ok := f.group.Columns().Free(f.last); ok {
			return f.group, col, nil
		}
	}
	g, err := f.t.groupToFill(f.b, known)
	if err != nil {
		return nil, 0, err
	}
	f.group = g
	col, _ := g.Columns().Free(-1)
	return g, col, nil
}

// groupToFill returns a group with a free column for one sender alone: one that is not full, else
// one with many silent series, else a new one. For a new one there has to be memory, unless it is
// for a known series. The bucket's lock is held.
func (t *Table) groupToFill(b *Bucket, known bool) (*head.Group, error) {
	for n := len(b.partial); n > 0; n = len(b.partial) {
		g := b.partial[n-1]
		b.partial = b.partial[:n-1]
		if g.Columns().Bound() < head.Width {
			return g, nil
		}
	}
	for n := len(b.silent); n > 0; n = len(b.silent) {
		g := b.silent[n-1].g
		b.silent = b.silent[:n-1]
		if t.takeSilent(b, g); head.Width-g.Columns().Bound() >= MinReuse {
			return g, nil
		}
	}
	if known {
		t.o.Names.Add(groupCost)
	} else if !t.o.Names.Take(groupCost, 0) {
		return nil, ErrNoMemory
	}
	id, ok := t.Groups.Reserve()
	if !ok {
		t.o.Names.Add(-groupCost)
		return nil, ErrSeriesLimit
	}
	return t.addGroup(b, id), nil
}

func (t *Table) addGroup(b *Bucket, id uint32) *head.Group {
	g := head.NewGroup(id, b.ID, b.Height, b.arena, &b.History)
	t.Groups.Put(g)
	b.groups = append(b.groups, g)
	return g
}

// takeName takes the memory of a new series in a group, before anything of it is
// made, and returns what its name takes. It is false where there is none.
func (t *Table) takeName(g *head.Group, id *metric.SeriesID, key []byte) (bytes int64, ok bool) {
	bytes = g.Columns().Growth(len(key)) + columnCost + t.Index.Growth(id)
	if !t.o.Names.Take(bytes, t.o.ChunkNeed+nameNeed(len(key))) {
		return 0, false
	}
	t.o.NewSeries()
	return bytes, true
}

// define gives a column to a series and enters it into the index and the list of
// those whose name or column no committed segment has yet. lsn is the position
// of the definition in the log, old what the index says of the series if it is
// known. The bucket's lock is held.
func (t *Table) define(b *Bucket, g *head.Group, col int, id metric.SeriesID, key []byte,
	lsn wal.LSN, old series.Ref, known bool) {
	ref := series.RefAt(g.ID, col)
	b.bind(g, col, key, id, uint64(lsn), t.o.Clock.Monotonic())
	if known {
		t.Index.Define(id, ref)
	} else {
		b.History.ChangeNames(key, func() { t.Index.Define(id, ref) })
		b.series++
	}
	if known && old.Inactive() {
		old = b.inactive.Remove(old)
	}
	var left *segment.Series
	if known {
		p := b.identityOf(old, id)
		left = &p
	}
	t.AddUnflushed(b, ref, id, g.Columns().Key(col), lsn, left)
}

// AddUnflushed makes the next flush name a series and its column. left is the place
// that it had before, if any.
func (t *Table) AddUnflushed(b *Bucket, ref series.Ref, id metric.SeriesID, key []byte, lsn wal.LSN,
	left *segment.Series) {
	p := b.identityOf(ref, id)
	p.Key, p.Since, p.Incarnation = key, uint64(lsn), b.Incarnations.Get(id)
	t.Unflushed.add(catalogue.Change{Series: p, Left: left}, formerPlace{b.ID, ref, id})
}

// Deactivate takes the columns of the silent series of a group: they are free for others.
func (t *Table) Deactivate(b *Bucket, g *head.Group) {
	b.mu.Lock()
	defer b.mu.Unlock()
	t.takeSilent(b, g)
}

// takeSilent is Deactivate. The bucket's lock is held.
func (t *Table) takeSilent(b *Bucket, g *head.Group) {
	g.Deactivate(t.o.Clock.Monotonic()-int64(b.silence()), b.Width(),
		func(col int, key []byte, id metric.SeriesID) {
			t.deactivate(b, series.RefAt(g.ID, col), key, id)
			t.deactivated.Add(1)
		})
}

// deactivate keeps the name of a series that has no column any more: left is the
// one it had, which is free or another's. The bucket's lock is held.
func (t *Table) deactivate(b *Bucket, left series.Ref, key []byte, id metric.SeriesID) {
	t.Index.Define(id, b.inactive.Add(key, left))
}

// NoteSilent lists the groups of which columns can be given to other series, those with
// the most last. It is called behind the commit of a flush, with the replay positions of
// groups in it.
func (t *Table) NoteSilent(replayPosition func(group uint32) uint64) {
	for _, b := range t.o.Buckets.All() {
		before := t.o.Clock.Monotonic() - int64(b.silence())
		b.mu.Lock()
		b.silent = b.silent[:0]
		for _, g := range b.groups {
			if n := g.NoteCommit(replayPosition(g.ID), before); n >= MinReuse {
				b.silent = append(b.silent, silentGroup{g, n})
			}
		}
		slices.SortStableFunc(b.silent, func(x, y silentGroup) int { return x.n - y.n })
		b.mu.Unlock()
	}
}
