package head

import (
	"math/bits"

	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/model/account"
)

const (
	// sparseShare of its cells is what a sparse block has set, at most; after
	// sparseBlocks of them in a row a group's next ones keep their cells in a
	// table. One that fills up to rowsPart turns into rows at once.
	sparseShare  = 8
	sparseBlocks = 2
	rowsPart     = 4

	// soonRows full rows that lie close together turn into rows, too: the block
	// is dense from its first slot on, and full rows are dear in a table.
	soonRows = 4

	tableCell = 12 // bytes: a place and a word
	tableMin  = 64
)

// cellTable holds the set cells of a block of which few are set: open
// addressing by their place in the block, row × Width + column. It takes 16 to
// 32 bytes a cell, where rows take 8 for every cell, set or not.
type cellTable struct {
	places []uint32 // place + 1; 0 is a free entry
	words  []uint64
	n      int // places taken; a word of 0 among them is unset again
	shift  int
	arena  *Arena // counts the memory
}

// newCellTable returns a table with room for n cells.
func newCellTable(n int, arena *Arena) *cellTable {
	t := &cellTable{arena: arena}
	t.resize(max(tableMin, 1<<bits.Len(uint(n*4/3))))
	return t
}

func (t *cellTable) resize(size int) {
	places, words := t.places, t.words
	t.arena.tables.Add(int64(size-len(places)) * tableCell)
	t.places, t.words = make([]uint32, size), make([]uint64, size)
	t.shift = 32 - bits.Len(uint(size-1))
	for i, p := range places {
		if p != 0 {
			j := t.find(p)
			t.places[j], t.words[j] = p, words[i]
		}
	}
}

// free ends the use of the table. Readers may have it until then.
func (t *cellTable) free() { t.arena.tables.Add(-t.bytes()) }

func (t *cellTable) bytes() int64 { return int64(len(t.places)) * tableCell }

// home returns the first entry that may be that of a place + 1.
func (t *cellTable) home(p uint32) int { return int(p * 0x9E3779B1 >> t.shift) }

// find returns the entry of a place + 1, or the free one where it belongs.
func (t *cellTable) find(p uint32) int {
	for i := t.home(p); ; i = (i + 1) & (len(t.places) - 1) {
		if q := t.places[i]; q == p || q == 0 {
			return i
		}
	}
}

func (t *cellTable) get(place int) uint64 { return t.words[t.find(uint32(place)+1)] }

// cell returns where the word of a place is, until the next call.
func (t *cellTable) cell(place int) *uint64 {
	p := uint32(place) + 1
	i := t.find(p)
	if t.places[i] == 0 {
		if t.n*4 >= len(t.places)*3 {
			t.resize(2 * len(t.places))
			i = t.find(p)
		}
		t.places[i] = p
		t.n++
	}
	return &t.words[i]
}

// put stores words from a place on, step places apart, and counts what became
// of them, as put does for rows.
func (t *cellTable) put(place, step int, words []uint64, c *account.Counts) {
	for _, w := range words {
		if w == 0 {
			c.Unset++
		} else {
			cell := t.cell(place)
			switch *cell {
			case 0:
				c.Accepted++
			case w:
				c.Duplicate++
			default:
				c.Conflicting++
			}
			*cell = point.Overwrite(w, *cell)
		}
		place += step
	}
}

// all calls f with every set cell.
func (t *cellTable) all(f func(place int, word uint64)) {
	for i, p := range t.places {
		if w := t.words[i]; w != 0 {
			f(int(p-1), w)
		}
	}
}

// form is what a group has learned of its blocks for the next one: whether it keeps its
// set cells in a table, and how large that is at first.
type form struct {
	sparse  int // how many of the last sealed blocks were sparse, up to sparseBlocks
	lastSet int // cells that the last sealed block had set
}

// table reports whether the group is sparse.
func (f *form) table() bool { return f.sparse >= sparseBlocks }

// learn notes how many of all its cells a sealed block had set. A group stays sparse
// until a block has filled so far that it turned into rows.
func (f *form) learn(set, all int) {
	f.lastSet = set
	switch {
	case set > all/rowsPart:
		f.sparse = 0
	case f.sparse == sparseBlocks:
	case set < all/sparseShare:
		f.sparse++
	default:
		f.sparse = 0
	}
}

// staysTable reports whether a table with n more cells is better than rows.
func (b *block) staysTable(n int) bool {
	set := b.table.n + n
	dense := set > soonRows*Width && set > int(b.last-b.first+1)*Width/2
	return set <= int(b.height)*Width/rowsPart && !dense
}

// toRows turns a table into rows.
func (b *block) toRows() {
	b.parts = make([]Cells, int(b.height)/b.arena.rows)
	b.table.all(func(place int, word uint64) { b.grow(place / Width)[place%Width] = word })
	b.table.free()
	b.table = nil
}

// spread returns the parts of a block, and how many rows each has: of a table it
// is one, in scratch memory, which clearRows clears again.
func (s *Sealer) spread(b *block, height int) (parts []Cells, rows int) {
	if b.table == nil {
		return b.parts, b.arena.rows
	}
	if len(s.rows) < height*Width {
		s.rows = make([]uint64, height*Width)
	}
	b.table.all(func(place int, word uint64) { s.rows[place] = word })
	return []Cells{{Words: s.rows}}, height
}

func (s *Sealer) clearRows(b *block) {
	if b.table != nil {
		b.table.all(func(place int, _ uint64) { s.rows[place] = 0 })
	}
}
