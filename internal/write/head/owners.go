package head

import (
	"sync/atomic"

	"dalmatiner/internal/model/metric"
)

// activity bounds the last write to a column from above: its position in the
// log and its coarse time in nanoseconds.
type activity struct {
	lsn uint64
	at  int64
}

func (a activity) union(b activity) activity { return activity{max(a.lsn, b.lsn), max(a.at, b.at)} }

// owners says which series have the columns of a group, and bounds when each of them was
// written last. The view is read without a lock, and changed under the group's lock, as
// everything else of it is read. Nothing is noted per point.
type owners struct {
	view       atomic.Pointer[Columns]
	replayFrom uint64          // records below are not replayed for the group
	written    [Width]activity // of points that were sealed or flushed; behind what a write needs
}

func (o *owners) columns() *Columns { return o.view.Load() }

// bind gives free columns from col on to series.
func (o *owners) bind(col int, key []byte, bound activity, ids []metric.SeriesID) {
	for i := range ids {
		o.written[col+i] = bound
	}
	o.view.Store(o.columns().withSeries(col, key, ids...))
}

// noteSealed remembers which columns a sealed block held.
func (o *owners) noteSealed(t *sealedBlock, last activity) {
	for col := range len(t.offs) - 1 {
		if len(t.piece(col)) > 0 {
			o.written[col] = o.written[col].union(last)
		}
	}
}

// noteLate remembers which columns late points are of.
func (o *owners) noteLate(late *lateRuns) {
	for col, c := range late.columns {
		if c != nil {
			o.written[col] = o.written[col].union(late.last)
		}
	}
}

// mayReplay reports whether a replay may meet a record of a column.
func (o *owners) mayReplay(col int) bool { return o.written[col].lsn >= o.replayFrom }

// isSilent reports whether a column has a series all of whose records lie below
// the replay position and whose last write was before the given time. Points in open
// blocks are not known to it.
func (o *owners) isSilent(col int, before int64) bool {
	return !o.mayReplay(col) && o.written[col].at < before && o.columns().Has(col)
}

// noteCommit raises the replay position and returns how many columns are gaps or silent.
func (o *owners) noteCommit(replayFrom uint64, before int64) (free int) {
	o.replayFrom = max(o.replayFrom, replayFrom)
	cols := o.columns()
	for col := range cols.Len() {
		if !cols.Has(col) || o.isSilent(col, before) {
			free++
		}
	}
	return free
}

// takeSilent takes the columns of silent series, width together, of which the group
// holds nothing.
func (o *owners) takeSilent(before int64, width int, held *Mask) (gone Mask) {
	for col := 0; col < o.columns().Len(); col += width {
		last := col + width - 1
		if o.isSilent(col, before) && o.isSilent(last, before) && !held.Has(col) && !held.Has(last) {
			gone.Set(col)
			gone.Set(last)
		}
	}
	o.release(&gone)
	return gone
}

// release takes columns from their series.
func (o *owners) release(gone *Mask) {
	if !gone.Empty() {
		o.view.Store(o.columns().withoutColumns(gone))
	}
}

// Bind gives the free columns from col on to series. Their definition is the record at lsn of
// the log, and now is the coarse clock. key, which is copied, is the name of the first one;
// the others have none. Callers serialise Bind, Deactivate and Release of one group.
func (g *Group) Bind(col int, key []byte, lsn uint64, now int64, ids ...metric.SeriesID) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.owners.bind(col, key, activity{lsn, now}, ids)
	g.unflushed.unsettled = true
}

// NoteCommit tells the group that no record below replayFrom will be replayed for it. It returns
// about how many columns would be free after Deactivate(before, …): those without a series,
// and those of silent series. What open blocks hold is not looked at.
func (g *Group) NoteCommit(replayFrom uint64, before int64) (free int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.owners.noteCommit(replayFrom, before)
}

// Deactivate takes the columns from series whose last write was before a coarse time, if all
// their points are in committed segments, and all their records lie below the replay position
// of the group. So a replay never meets a record of theirs. width columns go together.
//
// It calls inactive for the first column of each series, in ascending order, when the columns
// are free for others. The lock of the group is not held then. The key is valid during the
// call.
func (g *Group) Deactivate(before int64, width int,
	inactive func(col int, key []byte, id metric.SeriesID)) {
	gone, cols := g.takeSilent(before, width)
	for col := 0; col < cols.Len(); col += width {
		if gone.Has(col) {
			inactive(col, cols.Key(col), cols.ID(col))
		}
	}
}

// takeSilent frees the columns and returns them with the view that had them.
func (g *Group) takeSilent(before int64, width int) (gone Mask, cols *Columns) {
	g.mu.Lock()
	defer g.mu.Unlock()
	cols, held := g.Columns(), g.heldColumns()
	return g.owners.takeSilent(before, width, &held), cols
}

// Release takes the columns [col, col+width) from their series, whatever the group holds of
// them. It is for a replay, which has made sure that the group holds nothing.
func (g *Group) Release(col, width int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	var gone Mask
	for i := range width {
		gone.Set(col + i)
	}
	g.owners.release(&gone)
}

// HeldColumns returns the columns of which the group holds points, which may not be in a committed
// segment.
func (g *Group) HeldColumns() Mask {
	g.mu.RLock()
	defer g.mu.RUnlock()
	return g.heldColumns()
}

// heldColumns is HeldColumns under the lock.
func (g *Group) heldColumns() (held Mask) {
	for _, b := range g.unflushed.batches() {
		b.addHeld(&held)
	}
	g.blocks.addHeld(&held)
	return held
}
