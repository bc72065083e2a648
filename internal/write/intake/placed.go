package intake

import (
	"cmp"
	"slices"

	"dalmatiner/internal/write/columns"
)

// SeriesColumns is series of a bucket whose columns were found: who sends a point of each of them
// again and again spares the names. It is not for concurrent use.
type SeriesColumns struct{ pieces []piece }

// piece is consecutive series of a SeriesColumns that have consecutive columns of a group.
type piece struct {
	columns.Position     // of the first one
	from, past       int // of SeriesColumns
}

// Place finds the columns of series, by their keys, which are only read during the call. Those that
// have none are left out, and so are empty keys: the first point of a series gives it a column. It
// is nil in a bucket with timestamps.
func (x *Session) Place(keys [][]byte) *SeriesColumns {
	if x.storer.width != 1 {
		return nil
	}
	p := new(SeriesColumns)
	for i, key := range keys {
		at, ok := x.storer.o.Columns.Locate(x.storer.b.SeriesID(key), key)
		if !ok || len(key) == 0 {
			continue
		}
		if n := len(p.pieces); n > 0 && p.pieces[n-1].goesOn(i, at) {
			p.pieces[n-1].past++
			p.pieces[n-1].Columns = at.Columns // the view of now has both
			continue
		}
		p.pieces = append(p.pieces, piece{at, i, i + 1})
	}
	return p
}

// goesOn reports whether series number i, whose position this is, comes behind those of a piece.
func (p *piece) goesOn(i int, at columns.Position) bool {
	return i == p.past && at.Group == p.Group && at.Column == p.Column+p.past-p.from &&
		at.Columns.Epoch() == p.Columns.Epoch()
}

// Row takes a point in a slot of each of consecutive series of p, the first of which is number
// from. The words are as they are stored, none is unset. It is false, and takes nothing, where one
// of them was left out or columns have lost their series since: Place finds those of now.
func (x *Session) Row(p *SeriesColumns, from int, slot uint64, words []uint64) bool {
	past := from + len(words)
	pieces := p.piecesOf(from, past)
	if pieces == nil {
		return false
	}
	for i := range pieces {
		c := &pieces[i]
		lo, hi := max(from, c.from), min(past, c.past)
		at := c.Position
		at.Column += lo - c.from
		x.predict(at)
		if !x.buffer.goesOn(slot, at.Column) {
			x.begin(slot)
		}
		n := copy(x.buffer.room(), words[lo-from:hi-from])
		x.buffer.runLen += n
		x.position.Column += n
	}
	return true
}

// piecesOf returns the pieces of the series from one number to another: nil, if not all have the
// columns that were found.
func (p *SeriesColumns) piecesOf(from, past int) []piece {
	first, _ := slices.BinarySearchFunc(p.pieces, from, func(c piece, from int) int {
		return cmp.Compare(c.past, from+1)
	})
	for i := first; i < len(p.pieces); i++ {
		c := &p.pieces[i]
		if c.from > from || c.Columns.Epoch() != c.Group.Columns().Epoch() {
			return nil
		}
		if from = c.past; from >= past {
			return p.pieces[first : i+1]
		}
	}
	return nil
}
