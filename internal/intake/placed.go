package intake

import "dalmatiner/internal/columns"

// Placed is series of a bucket whose columns were found: who sends a point of each of them again and again spares
// the names. It is not for concurrent use.
type Placed struct{ pieces []piece }

// piece is consecutive series of a Placed that have consecutive columns of a group.
type piece struct {
	columns.Position     // of the first one
	from, past       int // of Placed
}

// Place finds the columns of series. It is false where one of them has none yet, which its first point gives it, and
// in a bucket with timestamps. The keys are only read during the call.
func (x *Session) Place(keys [][]byte) (*Placed, bool) {
	if x.sink.width != 1 {
		return nil, false
	}
	p := new(Placed)
	for i, key := range keys {
		at, ok := x.sink.o.Columns.Locate(x.sink.b.SeriesID(key), key)
		if !ok {
			return nil, false
		}
		if n := len(p.pieces); n > 0 && p.pieces[n-1].goesOn(at) {
			p.pieces[n-1].past++
			p.pieces[n-1].Columns = at.Columns // the view of now has both
			continue
		}
		p.pieces = append(p.pieces, piece{at, i, i + 1})
	}
	return p, true
}

// goesOn reports whether a position is the one behind those of a piece.
func (p *piece) goesOn(at columns.Position) bool {
	return at.Group == p.Group && at.Column == p.Column+p.past-p.from && at.Columns.Epoch() == p.Columns.Epoch()
}

// Row takes a point in a slot of each of consecutive series of p, the first of which is number from. The words are as
// they are stored, none is unset. It is false, and takes nothing, where series have other columns by now: Place finds
// them.
func (x *Session) Row(p *Placed, from int, slot uint64, words []uint64) bool {
	past := from + len(words)
	for i := range p.pieces {
		if c := &p.pieces[i]; c.past > from && c.from < past && c.Columns.Epoch() != c.Group.Columns().Epoch() {
			return false
		}
	}
	for i := range p.pieces {
		c := &p.pieces[i]
		lo, hi := max(from, c.from), min(past, c.past)
		if lo >= hi {
			continue
		}
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
