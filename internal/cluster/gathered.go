package cluster

import (
	"slices"

	"dalmatiner/internal/cluster/replication"
	"dalmatiner/internal/codec/kernel"
	"dalmatiner/internal/model/metric"
)

// shortColumn is how many points a column must have on average: a shorter one costs more than its
// rows.
const shortColumn = 4

// rowBatch are points of a sender that go out together: columns while series come in the order of
// the sender, then rows. A point never comes before an earlier one of its series.
type rowBatch struct {
	number  int // of points
	columns []replication.Column
	rows    []replication.Row

	words, times []uint64 // of all columns; the times of a bucket that has some
	slot         uint64   // of the last column, to which points are added
	from, start  int      // place of its first series, and where in words it begins
	open         bool

	rowwise bool // what follows goes as rows
	next    int  // the place behind that of the last row
	follows int  // how many rows had the place that was next
	last    int  // points of the last time
}

// add adds a point of a series with a place in an order, -1 if it has none.
func (g *rowBatch) add(o *order, id metric.SeriesID, place int, slot uint64, v replication.Value) {
	g.number++
	if place < 0 || g.rowwise {
		g.endColumn(o)
		g.addRow(id, place, slot, v)
		return
	}
	if !g.goesOn(slot, place) && !g.begin(o, slot, place) {
		g.addRow(id, place, slot, v)
		return
	}
	g.words = append(g.words, v.Word)
	if o.hpts {
		g.times = append(g.times, v.Time)
	}
}

// match finds the points at the start of a message that are the expected ones: kernel.MatchBatch,
// or kernel.MatchEntries.
type match func(words []uint64, names []byte, expected []kernel.Span, buf []byte) (points, size int)

// matched is how many points are matched at a time.
const matched = 256

// match takes the points of a slot at the start of buf, while they come in the order of the sender
// and their names have room. They are as add would take them. It returns their bytes in buf, and
// those of their names.
func (g *rowBatch) match(o *order, slot uint64, buf []byte, room int, match match) (size,
	names int) {
	place, keys, expected := o.expectedRun(min(matched, batchRows-g.number))
	for len(expected) > 0 && int(expected[len(expected)-1].To-expected[0].From) > room {
		expected = expected[:len(expected)/2]
	}
	if g.rowwise || len(expected) == 0 {
		return 0, 0
	}
	if len(g.words) == cap(g.words) {
		g.words = slices.Grow(g.words, max(matched, min(g.last, batchRows)-len(g.words)))
	}
	n, size := match(g.words[len(g.words):cap(g.words)], keys, expected, buf)
	if n == 0 || !g.goesOn(slot, place) && !g.begin(o, slot, place) {
		return 0, 0
	}
	g.words = g.words[:len(g.words)+n]
	g.number += n
	o.at = place + n
	return size, int(expected[n-1].To - expected[0].From)
}

// goesOn reports whether a point is the next one of the last column.
func (g *rowBatch) goesOn(slot uint64, place int) bool {
	return g.open && slot == g.slot && place == g.from+len(g.words)-g.start
}

// begin begins a column, but for where columns were too short so far.
func (g *rowBatch) begin(o *order, slot uint64, place int) bool {
	g.endColumn(o)
	if n := len(g.columns); n >= 2*shortColumn && len(g.words) < shortColumn*n {
		return false
	}
	if g.words == nil {
		g.words = make([]uint64, 0, min(max(g.last, 64), batchRows))
	}
	g.open, g.slot, g.from, g.start = true, slot, place, len(g.words)
	return true
}

// addRow adds a point as a row, and all that follow.
func (g *rowBatch) addRow(id metric.SeriesID, place int, slot uint64, v replication.Value) {
	if place >= 0 && place == g.next {
		g.follows++
	}
	g.rowwise, g.next = true, place+1
	if g.rows == nil {
		g.rows = make([]replication.Row, 0, min(max(g.last, 64), batchRows))
	}
	g.rows = append(g.rows, replication.Row{Series: id, Slot: slot, Value: v})
}

func (g *rowBatch) endColumn(o *order) {
	if !g.open {
		return
	}
	g.open = false
	past := len(g.words)
	c := replication.Column{
		Group: o.first(g.from + past - g.start),
		From:  g.from,
		Slot:  g.slot,
		Words: g.words[g.start:past:past],
	}
	if o.hpts {
		c.Times = g.times[g.start:past:past]
	}
	g.columns = append(g.columns, c)
}

// take returns what was gathered, and begins anew: with columns, if most of what went as rows could
// have been in some.
func (g *rowBatch) take(o *order) ([]replication.Column, []replication.Row) {
	g.endColumn(o)
	columns, rows := g.columns, g.rows
	*g = rowBatch{last: g.number, rowwise: g.rowwise &&
		g.follows*shortColumn < len(rows)*(shortColumn-1)}
	return columns, rows
}
