package head

// Mask is a set of columns of a group. The zero value is empty.
type Mask [Width / 64]uint64

// Set adds a column.
func (m *Mask) Set(col int) { m[col/64] |= 1 << (col % 64) }

// Has reports whether a column is in the set.
func (m *Mask) Has(col int) bool { return m[col/64]>>(col%64)&1 != 0 }

// Empty reports whether no column is in the set.
func (m *Mask) Empty() bool { return *m == Mask{} }

func (m *Mask) clear(col int) { m[col/64] &^= 1 << (col % 64) }

// DeletedCounts is what Delete took away.
type DeletedCounts struct {
	Points    int64 // how many; those with a timestamp count once
	LateBytes int64 // of late points, given back
}

// Delete takes the columns of want that have a name from their series, and drops all points
// that the group holds of them. If idle is true it takes only columns of which the group holds
// no points, and all of whose records lie below the replay position. With a width of 2 a
// series has the column behind its own as well.
//
// If any column is left to be taken, it calls log with them under the lock of the group,
// before anything is dropped. An error of log is returned, and nothing is dropped. Records of
// points of the series lie before its record in the log. Those behind it are of writers that
// have found the names anew.
//
// The columns are free for others at once. A replay tells the records of the former series
// from those of the next by the definition of the next. The caller serialises Delete with
// Bind and Deactivate, and calls it between flushes only.
func (g *Group) Delete(want Mask, width int, idle bool,
	log func(Mask) error) (DeletedCounts, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.awaitSealers() // a sealer reads its block without the lock
	cols := g.Columns()
	var held Mask
	if idle {
		held = g.heldColumns()
	}
	for col := range Width {
		busy := idle && (held.Has(col) || g.owners.mayReplay(col))
		if want.Has(col) && (g.dead || !cols.HasName(col) || busy) {
			want.clear(col)
		}
	}
	if want.Empty() {
		return DeletedCounts{}, nil
	}
	if err := log(want); err != nil {
		return DeletedCounts{}, err
	}
	gone := want
	for col := range Width - 1 {
		if width == 2 && want.Has(col) {
			gone.Set(col + 1)
		}
	}
	if !idle {
		g.journal.NoteChange()
	}
	waiting := &g.unflushed.waiting // no flush is under way
	late := waiting.late.bytes()
	words := g.blocks.drop(&gone) + waiting.drop(&gone)
	g.owners.release(&gone)
	return DeletedCounts{Points: words / int64(width), LateBytes: late - waiting.late.bytes()}, nil
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
