package head

import "dalmatiner/internal/metric"

// activity bounds the last write to a column from above: its position in the
// log and its coarse time in nanoseconds.
type activity struct {
	lsn uint64
	at  int64
}

func (a activity) or(b activity) activity { return activity{max(a.lsn, b.lsn), max(a.at, b.at)} }

// noteSealed remembers which columns a sealed block held: nothing is noted per
// point.
func (g *Group) noteSealed(t *sealedBlock, last activity) {
	for col := range len(t.offs) - 1 {
		if len(t.piece(col)) > 0 {
			g.written[col] = g.written[col].or(last)
		}
	}
}

// noteLate remembers which columns the late points are of.
func (g *Group) noteLate() {
	for col, c := range g.late.columns {
		if c == nil {
			continue
		}
		g.written[col] = g.written[col].or(g.late.last)
	}
}

// Bind gives free columns from col on to series, whose definition is the record
// at lsn of the log; the first has a name. Callers serialise Bind, Deactivate and
// Release of one group.
func (g *Group) Bind(col int, key []byte, lsn uint64, now int64, ids ...metric.SeriesID) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for i := range ids {
		g.written[col+i] = activity{lsn, now}
	}
	g.unsettled = true
	g.cols.Store(g.Columns().with(col, key, ids...))
}

// Committed tells the group that no record below replay position will be replayed for it
// and returns how many of its columns would be free after Deactivate: gaps, and those of
// series that were silent since before, as far as is known without a look at the
// blocks that are open.
func (g *Group) Committed(replayFrom uint64, before int64) (free int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.replayFrom = max(g.replayFrom, replayFrom)
	cols := g.Columns()
	for col := range cols.Len() {
		if !cols.Has(col) || g.silent(col, before) {
			free++
		}
	}
	return free
}

// silent reports whether a column has a series all of whose records lie below
// the replay position and whose last write was before the given time. Points in open
// blocks are not known to it.
func (g *Group) silent(col int, before int64) bool {
	w := &g.written[col]
	return w.lsn < g.replayFrom && w.at < before && g.Columns().Has(col)
}

// Deactivate takes the columns from series that were silent since before and of which
// all points are in committed segments and all records below the group's replay position,
// so that a replay never meets a record of theirs. width columns go together.
// inactive is called for the first of each, ascending, when they are free for
// others; it may keep neither lock nor key.
func (g *Group) Deactivate(before int64, width int, inactive func(col int, key []byte, id metric.SeriesID)) {
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
	cols = g.Columns()
	held := g.held()
	for col := 0; col < cols.Len(); col += width {
		if g.silent(col, before) && g.silent(col+width-1, before) && !held.Has(col) && !held.Has(col+width-1) {
			gone.Set(col)
			gone.Set(col + width - 1)
		}
	}
	g.release(&gone)
	return gone, cols
}

// Release takes width columns from col on from their series, whatever the group
// holds of them. It is for a replay, which has made sure that this is nothing.
func (g *Group) Release(col, width int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	var gone Mask
	for i := range width {
		gone.Set(col + i)
	}
	g.release(&gone)
}

func (g *Group) release(gone *Mask) {
	if !gone.Empty() {
		g.cols.Store(g.Columns().without(gone))
	}
}

// Held returns the columns of which the group holds points that may not be in a
// committed segment.
func (g *Group) Held() Mask {
	g.mu.RLock()
	defer g.mu.RUnlock()
	return g.held()
}

// held is Held under the lock.
func (g *Group) held() (held Mask) {
	for _, sealedBlocks := range [][]*sealedBlock{g.flushing, g.sealedBlocks} {
		for _, t := range sealedBlocks {
			for col := range len(t.offs) - 1 {
				if len(t.piece(col)) > 0 {
					held.Set(col)
				}
			}
		}
	}
	for _, late := range []*lateRuns{&g.lateOut, &g.late} {
		for col, c := range late.columns {
			if c != nil {
				held.Set(col)
			}
		}
	}
	for _, blocks := range [][]*block{g.sealing, g.open} {
		for _, b := range blocks {
			b.held(&held)
		}
	}
	return held
}
