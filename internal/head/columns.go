package head

import "dalmatiner/internal/metric"

// Width is the number of columns of a group: 256 cells are 2 KiB, so that the
// run of a sender is long enough to pay for a lock and a log record.
const Width = 256

// Columns is what a group knows of its columns at one moment: an immutable
// view. Names lie one after the other in one arena, so that the decoder's
// compare with the next expected name walks memory forwards.
//
// A column without a name is nobody's: its series was deleted or has expired.
type Columns struct {
	arena []byte
	offs  []uint32 // len = columns + 1
	ids   []metric.SeriesID
	epoch uint32 // changes whenever a column gets another name or loses it
	gaps  bool   // some columns have no name
}

// Epoch tells views apart in which a column has different names: two views of
// a group with the same epoch agree on the columns they share.
func (c *Columns) Epoch() uint32 { return c.epoch }

// Named reports whether a column is a series'.
func (c *Columns) Named(col int) bool { return c.offs[col] < c.offs[col+1] }

// Len returns the number of columns.
func (c *Columns) Len() int { return len(c.ids) }

// Bytes returns the memory of the names and ids.
func (c *Columns) Bytes() int64 { return int64(cap(c.arena) + 4*cap(c.offs) + 16*cap(c.ids)) }

// Key returns the metric key of a column. It must not be written to.
func (c *Columns) Key(col int) []byte { return c.arena[c.offs[col]:c.offs[col+1]:c.offs[col+1]] }

// ID returns the series id of a column. One without a name keeps that of the
// series it had; the id is zero where nothing is known of it.
func (c *Columns) ID(col int) metric.SeriesID { return c.ids[col] }

// Is reports whether col is a column and key is its name.
func (c *Columns) Is(col int, key []byte) bool {
	if uint(col) >= uint(len(c.ids)) {
		return false
	}
	return string(c.arena[c.offs[col]:c.offs[col+1]]) == string(key)
}

// with returns a view that has one column more. Only the newest view may be
// extended, and only by one goroutine at a time: the new column lies behind
// what older views can see of the shared memory.
func (c *Columns) with(key []byte, id metric.SeriesID) *Columns {
	arena := append(c.arena, key...)
	return &Columns{
		arena: arena,
		offs:  append(c.offs, uint32(len(arena))),
		ids:   append(c.ids, id),
		epoch: c.epoch,
		gaps:  c.gaps || len(key) == 0,
	}
}

// renamed returns a view of the next epoch in which the columns have the names
// that name returns. It shares no memory with c.
func (c *Columns) renamed(name func(col int) (key []byte, id metric.SeriesID)) *Columns {
	out := &Columns{offs: make([]uint32, 1, Width+1), ids: make([]metric.SeriesID, 0, Width)}
	for col := range c.Len() {
		out = out.with(name(col))
	}
	out.epoch = c.epoch + 1
	return out
}
