package head

import "dalmatiner/internal/chunk"

// Mask is a set of columns of a group.
type Mask [Width / 64]uint64

// Set adds a column.
func (m *Mask) Set(col int) { m[col/64] |= 1 << (col % 64) }

// Has reports whether a column is in the set.
func (m *Mask) Has(col int) bool { return m[col/64]>>(col%64)&1 != 0 }

// Empty reports whether no column is in the set.
func (m *Mask) Empty() bool { return *m == Mask{} }

func (m *Mask) clear(col int) { m[col/64] &^= 1 << (col % 64) }

// Deleted is what Delete took away.
type Deleted struct {
	Points    int64
	LateBytes int64 // given back
}

// Delete takes columns from their series and drops all points that the group
// holds of them; with idle only those columns of which it holds none and all
// records lie below its replay position. log is called with these columns under the group's
// lock before anything is dropped: records of points stand in front of its record
// or come from a writer that has found the names anew. The columns are free for
// others at once: none of their points is left, and a replay tells the records of
// the former series from those of the next by the definition of the next.
// Callers serialise it with Bind and Deactivate and call it between flushes only.
// With width 2 a series has the column behind its own as well.
func (g *Group) Delete(want Mask, width int, idle bool, log func(Mask) error) (Deleted, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for len(g.sealing) > 0 { // a sealer reads its block without the lock
		g.sealed.Wait()
	}
	cols := g.Columns()
	var held Mask
	if idle {
		held = g.held()
	}
	for col := range Width {
		busy := idle && (held.Has(col) || g.written[col].lsn >= g.replayFrom)
		if want.Has(col) && (g.dead || !cols.Named(col) || busy) {
			want.clear(col)
		}
	}
	if want.Empty() {
		return Deleted{}, nil
	}
	if err := log(want); err != nil {
		return Deleted{}, err
	}
	gone := want
	for col := range Width - 1 {
		if width == 2 && want.Has(col) {
			gone.Set(col + 1)
		}
	}
	f := g.drop(gone, width)
	g.release(&gone)
	return f, nil
}

// drop takes the points of series away. No block is being sealed and no flush
// is under way.
func (g *Group) drop(m Mask, width int) (f Deleted) {
	for col := range Width {
		if !m.Has(col) {
			continue
		}
		for _, b := range g.open {
			f.Points += b.drop(col, int(g.height))
		}
		for _, t := range g.sealedBlocks {
			if h, err := chunk.ParseHeader(t.piece(col)); err == nil {
				f.Points += int64(h.Count)
			}
			t.gone.Set(col)
		}
	}
	before := g.late.bytes()
	f.Points += g.late.drop(&m)
	f.Points /= int64(width)
	f.LateBytes = before - g.late.bytes()
	return f
}

// drop takes the runs of columns out and returns how many points that were.
func (l *lateRuns) drop(m *Mask) (points int64) {
	left := false
	for col, c := range l.columns {
		if c == nil || !m.Has(col) {
			left = left || c != nil
			continue
		}
		points += int64(len(c.words))
		l.size -= lateColumnBytes + 8*int64(len(c.words)) + lateRunBytes*int64(len(c.runs))
		l.columns[col] = nil
	}
	if !left {
		l.columns, l.size = nil, 0
	}
	return points
}
