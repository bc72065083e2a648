package head

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
	g.awaitSealers() // a sealer reads its block without the lock
	cols := g.Columns()
	var held Mask
	if idle {
		held = g.held()
	}
	for col := range Width {
		busy := idle && (held.Has(col) || g.owners.replayed(col))
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
	waiting := &g.unflushed.waiting // no flush is under way
	late := waiting.late.bytes()
	words := g.blocks.drop(&gone) + waiting.drop(&gone)
	g.owners.release(&gone)
	return Deleted{Points: words / int64(width), LateBytes: late - waiting.late.bytes()}, nil
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
