package head

import (
	"dalmatiner/internal/chunk"
	"dalmatiner/internal/metric"
)

// Mask is a set of columns of a group.
type Mask [Width / 64]uint64

// Set adds a column.
func (m *Mask) Set(col int) { m[col/64] |= 1 << (col % 64) }

// Has reports whether a column is in the set.
func (m *Mask) Has(col int) bool { return m[col/64]>>(col%64)&1 != 0 }

// Empty reports whether no column is in the set.
func (m *Mask) Empty() bool { return *m == Mask{} }

func (m *Mask) clear(col int) { m[col/64] &^= 1 << (col % 64) }

// Forgotten is what Forget took away.
type Forgotten struct {
	Columns   Mask
	Points    int64
	LateBytes int64 // given back
}

// Forget takes the names of columns away and drops all points that the group
// holds of them; with idle only of those columns of which it holds none. log is
// called with these columns under the group's lock before anything is dropped:
// records of points stand in front of its record or come from a writer that has
// found the names anew. Callers serialise it with AddColumn and call it between
// flushes only.
// With width 2 a series has the column behind its own as well.
func (g *Group) Forget(want Mask, width int, idle bool, log func(Mask) error) (Forgotten, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for len(g.sealing) > 0 { // a sealer reads its block without the lock
		g.sealed.Wait()
	}
	cols := g.Columns()
	for col := range Width {
		if want.Has(col) && (g.dead || col >= cols.Len() || !cols.Named(col) || idle && g.holds(col)) {
			want.clear(col)
		}
	}
	if want.Empty() {
		return Forgotten{}, nil
	}
	if err := log(want); err != nil {
		return Forgotten{}, err
	}
	f := g.drop(want, width)
	g.cols.Store(cols.renamed(func(col int) ([]byte, metric.SeriesID) {
		if want.Has(col) {
			return nil, cols.ID(col)
		}
		return cols.Key(col), cols.ID(col)
	}))
	return f, nil
}

// Rename gives a column without a name to a series. It is for a store that
// opens: a writer that has found the names before would have to find them again.
func (g *Group) Rename(at int, key []byte, id metric.SeriesID) {
	cols := g.Columns()
	g.cols.Store(cols.renamed(func(col int) ([]byte, metric.SeriesID) {
		if col == at {
			return key, id
		}
		return cols.Key(col), cols.ID(col)
	}))
}

// Holding returns those of the columns of which the group holds points.
func (g *Group) Holding(m Mask) Mask {
	g.mu.RLock()
	defer g.mu.RUnlock()
	for col := range Width {
		if m.Has(col) && !g.holds(col) {
			m.clear(col)
		}
	}
	return m
}

// holds reports whether the group holds a point of a column, or may hold one
// in a block that is being sealed.
func (g *Group) holds(col int) bool {
	for _, tiles := range [][]*tile{g.flushing, g.tiles} {
		for _, t := range tiles {
			if len(t.piece(col)) > 0 {
				return true
			}
		}
	}
	for _, blocks := range [][]*block{g.sealing, g.open} {
		for _, b := range blocks {
			if b.holds(col, int(g.height)) {
				return true
			}
		}
	}
	return g.late.holds(col) || g.lateOut.holds(col)
}

// drop takes the points of series away. No block is being sealed and no flush
// is under way.
func (g *Group) drop(columns Mask, width int) Forgotten {
	f := Forgotten{Columns: columns}
	m := columns
	for col := range Width - 1 {
		if width == 2 && columns.Has(col) {
			m.Set(col + 1)
		}
	}
	for col := range Width {
		if !m.Has(col) {
			continue
		}
		for _, b := range g.open {
			f.Points += b.drop(col, int(g.height))
		}
		for _, t := range g.tiles {
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

func (l *lateRuns) holds(col int) bool { return l.column(col) != nil }

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
