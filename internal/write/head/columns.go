package head

import (
	"slices"

	"dalmatiner/internal/codec/kernel"
	"dalmatiner/internal/model/metric"
)

// Width is the number of columns of a group: 256 cells are 2 KiB, so that the
// run of a sender is long enough to pay for a lock and a log record.
const Width = 256

// Columns says which series have the columns of a group at one moment. It is immutable, and
// valid for as long as somebody has it. Names lie one after the other in one arena, so that a
// decoder which compares with the next expected name walks memory forwards. Columns are
// numbered from 0.
type Columns struct {
	arena []byte
	names []kernel.Span     // empty, which no key is, for a column that is free or has none
	ids   []metric.SeriesID // zero for a free column
	bound int
	epoch uint32
	begin kernel.Span // in the arena: what all names begin with
}

// Bytes returns the memory of the names and ids, in bytes.
func (c *Columns) Bytes() int64 { return int64(cap(c.arena) + 8*cap(c.names) + 16*cap(c.ids)) }

// Len returns the number of columns up to the last one that a series has.
func (c *Columns) Len() int { return len(c.names) }

// Bound returns the number of columns that have a series.
func (c *Columns) Bound() int { return c.bound }

// Epoch returns a number that grows when a column is taken from its series. A column that has
// a series in two views of one epoch has the same series in both.
func (c *Columns) Epoch() uint32 { return c.epoch }

// Key returns the metric key of a column, empty for one without. The column is below Len. The
// slice must not be written to.
func (c *Columns) Key(col int) []byte {
	n := c.names[col]
	return c.arena[n.From:n.To:n.To]
}

// Begin returns what all names begin with, for who looks for names that begin with something
// else. The slice must not be written to.
func (c *Columns) Begin() []byte { return c.arena[c.begin.From:c.begin.To:c.begin.To] }

// note takes the name of a column into what all begin with.
func (c *Columns) note(name kernel.Span) {
	if name.From == 0 { // the first one
		c.begin = name
		return
	}
	begin, key := c.Begin(), c.arena[name.From:name.To]
	n := 0
	for n < len(begin) && n < len(key) && begin[n] == key[n] {
		n++
	}
	c.begin.To = c.begin.From + uint32(n)
}

// ID returns the id of the series that has a column, zero for none. The column is below Len.
func (c *Columns) ID(col int) metric.SeriesID { return c.ids[col] }

// Has reports whether a column has a series.
func (c *Columns) Has(col int) bool {
	return uint(col) < uint(len(c.ids)) && c.ids[col] != (metric.SeriesID{})
}

// owns reports whether a column is that of the series.
func (c *Columns) owns(id metric.SeriesID, col int) bool { return c.Has(col) && c.ids[col] == id }

// HasName reports whether a column is that of the values of a series: one of timestamps has a
// series, but no name.
func (c *Columns) HasName(col int) bool {
	return uint(col) < uint(len(c.names)) && c.names[col].From < c.names[col].To
}

// Is reports whether col is a column with a name, and key is that name.
func (c *Columns) Is(col int, key []byte) bool {
	if uint(col) >= uint(len(c.names)) {
		return false
	}
	n := c.names[col]
	return string(c.arena[n.From:n.To]) == string(key) && len(key) > 0
}

// NamesFrom returns the names of the columns from col on, as kernel.MatchBatch takes them. They
// must not be written to.
func (c *Columns) NamesFrom(col int) (names []byte, expected []kernel.Span) {
	if uint(col) >= uint(len(c.names)) {
		return nil, nil
	}
	return c.arena, c.names[col:]
}

// Free returns the column for the next series of a sender, whose last series got the column
// after, or -1 for none. It is the one behind that, or else the first of the longest run of
// free columns. ok is false if all columns have a series.
func (c *Columns) Free(after int) (col int, ok bool) {
	if c.bound == Width {
		return 0, false
	}
	if after >= 0 && after+1 < Width && !c.Has(after+1) {
		return after + 1, true
	}
	longest, n := 0, 0
	for i := range Width {
		if c.Has(i) {
			n = 0
			continue
		}
		if n++; n > longest {
			longest, col = n, i-n+1
		}
	}
	return col, true
}

// withSeries returns a view in which free columns from col on have the given series,
// of which the first has a name. Only the newest view may be extended, and only
// by one goroutine at a time: what is appended lies behind what older views can
// see of the shared memory.
func (c *Columns) withSeries(col int, key []byte, ids ...metric.SeriesID) *Columns {
	at := uint32(len(c.arena))
	n := &Columns{
		arena: append(c.room(len(key)), key...),
		names: c.names,
		ids:   c.ids,
		bound: c.bound + len(ids),
		epoch: c.epoch,
		begin: c.begin,
	}
	if col < len(c.names) {
		n.names, n.ids = slices.Clone(c.names), slices.Clone(c.ids)
	}
	for len(n.names) < col+len(ids) {
		n.names = append(n.names, kernel.Span{})
		n.ids = append(n.ids, metric.SeriesID{})
	}
	n.names[col] = kernel.Span{From: at, To: uint32(len(n.arena))}
	n.note(n.names[col])
	copy(n.ids[col:], ids)
	return n
}

// room returns the names in memory that takes n bytes more. Whoever keeps a key
// keeps the memory in which it was bound, and new series are kept until a flush
// has named them: with memory that grew by a quarter at a time they kept four
// times of what the names are. So it grows to what all columns will need by the
// names so far, four times as much at most while there are few.
func (c *Columns) room(n int) []byte { return slices.Grow(c.arena, c.roomFor(n)-len(c.arena)) }

// roomFor returns the size of the memory that room returns.
func (c *Columns) roomFor(n int) int {
	need := len(c.arena) + n
	if need <= cap(c.arena) {
		return cap(c.arena)
	}
	return min(4*need, max(need*Width/(c.bound+1), need+need/8))
}

// Growth returns by how many bytes the memory of the names grows for one more name of n bytes.
func (c *Columns) Growth(n int) int64 { return int64(c.roomFor(n) - cap(c.arena)) }

// withoutColumns returns a view of the next epoch, in memory of its own, in which the
// given columns are free.
func (c *Columns) withoutColumns(gone *Mask) *Columns {
	n := &Columns{arena: make([]byte, 0, len(c.arena)), epoch: c.epoch + 1}
	n.names, n.ids = make([]kernel.Span, len(c.names), Width),
		make([]metric.SeriesID, len(c.names), Width)
	last := 0
	for col := range c.names {
		if !c.Has(col) || gone.Has(col) {
			continue
		}
		at := uint32(len(n.arena))
		n.arena = append(n.arena, c.Key(col)...)
		n.names[col], n.ids[col] = kernel.Span{From: at, To: uint32(len(n.arena))}, c.ids[col]
		if n.HasName(col) {
			n.note(n.names[col])
		}
		n.bound++
		last = col + 1
	}
	if last == 0 {
		return &Columns{epoch: n.epoch}
	}
	n.names, n.ids = n.names[:last], n.ids[:last]
	return n
}
