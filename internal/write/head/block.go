package head

import (
	"dalmatiner/internal/codec/kernel"
	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/model/account"
)

// block is height rows of Width cells, all of them or those that are set.
type block struct {
	start     int64
	height    int64
	from      int64      // first slot it takes: one below was in a block that is closed
	first     int64      // first slot written
	last      int64      // last slot written
	set       int        // cells
	parts     []Cells    // its rows, those that were written to with some around them, or nil and
	table     *cellTable // those of its cells that are set
	arena     *Arena
	firstLSN  uint64
	lastLSN   uint64
	opened    int64 // coarse clock, nanoseconds
	lastWrite int64
	claimed   bool
	deeper    bool // reached a fifth of its rows since closePast
}

func (b *block) timestamp(lsn uint64, now int64) {
	if b.firstLSN == 0 {
		b.firstLSN = lsn
		b.opened = now
	}
	b.lastLSN = lsn
	b.lastWrite = now
}

func (b *block) markWritten(first, last int64) {
	b.first = min(b.first, first)
	if last > b.last {
		fifth := max(1, b.height/pastPart)
		b.deeper = b.deeper || (last-b.start)/fifth > (b.last-b.start)/fifth
		b.last = last
	}
}

// complete reports whether every cell of the columns that have a series is set, from the
// first row that was written on: what comes for the block then are points it already has,
// or such as are older than any before. bound is the number of these columns.
func (b *block) complete(bound int) bool { return b.set >= bound*int(b.start+b.height-b.first) }

// grow returns the cells from a row on to the end of its part, which has memory
// from then on. The block is no table.
func (b *block) grow(row int) []uint64 {
	n := row / b.arena.rows
	p := &b.parts[n]
	if p.Words == nil {
		*p = b.arena.Alloc()
	}
	return p.Words[(row-n*b.arena.rows)*Width:]
}

// put stores words over cells and counts what became of them.
func put(cells, words []uint64, c *account.Counts) {
	unset, same, other := kernel.Lay(cells, words)
	c.Accepted += uint64(len(words) - unset - same - other)
	c.Unset += uint64(unset)
	c.Duplicate += uint64(same)
	c.Conflicting += uint64(other)
}

// putDown is put for the cells of a column from a row on. The block is no table.
func (b *block) putDown(row, col int, words []uint64, c *account.Counts) {
	for len(words) > 0 {
		cells := b.grow(row)
		n := min(len(words), len(cells)/Width)
		for i := range n {
			put(cells[i*Width+col:][:1], words[i:i+1], c)
		}
		words, row = words[n:], row+n
	}
}

// cellsAt returns the cells from a row on to the end of its part, nil where it was not
// written to, and the number of these rows. The block is no table.
func (b *block) cellsAt(row int) (cells []uint64, rows int) {
	n, in := row/b.arena.rows, row%b.arena.rows
	if all := b.parts[n].Words; all != nil {
		cells = all[in*Width:]
	}
	return cells, b.arena.rows - in
}

// cell returns the word of a row and column.
func (b *block) cell(row, col int) uint64 {
	if b.table != nil {
		return b.table.get(row*Width + col)
	}
	if cells, _ := b.cellsAt(row); cells != nil {
		return cells[col]
	}
	return 0
}

// fetch asks for what cell reads.
func (b *block) fetch(row, col int) {
	if t := b.table; t != nil {
		at := t.home(uint32(row*Width+col) + 1)
		kernel.FetchOf(&t.places[at])
		kernel.FetchOf(&t.words[at])
	} else if cells, _ := b.cellsAt(row); cells != nil {
		kernel.FetchOf(&cells[col])
	}
}

// read lays the set cells of a column over dst, which stands for the rows from
// row on.
func (b *block) read(row, col int, dst []uint64) {
	if b.table != nil {
		for i := range dst {
			dst[i] = point.Overwrite(b.table.get((row+i)*Width+col), dst[i])
		}
		return
	}
	for len(dst) > 0 {
		cells, n := b.cellsAt(row)
		n = min(n, len(dst))
		if cells != nil {
			for i := range n {
				dst[i] = point.Overwrite(cells[i*Width+col], dst[i])
			}
		}
		dst, row = dst[n:], row+n
	}
}

// readSlots is read for dst that stands for the slots from from on, wherever it lies.
func (b *block) readSlots(col int, from int64, dst []uint64) {
	lo, hi := max(from, b.start), min(from+int64(len(dst)), b.start+b.height)
	if lo < hi {
		b.read(int(lo-b.start), col, dst[lo-from:hi-from])
	}
}

// drop unsets the cells of a column and returns how many were set.
func (b *block) drop(col int) (words int64) {
	for row := range int(b.height) {
		if b.cell(row, col) == 0 {
			continue
		}
		words++
		if b.table != nil {
			*b.table.cell(row*Width + col) = 0
		} else {
			b.grow(row)[col] = 0
		}
	}
	b.set -= int(words)
	return words
}

// addHeld adds the columns that have a set cell.
func (b *block) addHeld(held *Mask) {
	if b.table != nil {
		b.table.all(func(place int, _ uint64) { held.Set(place % Width) })
		return
	}
	var row [Width]uint64
	for i := range b.parts {
		for cells := b.parts[i].Words; len(cells) >= Width; cells = cells[Width:] {
			for col, w := range cells[:Width] {
				row[col] |= w
			}
		}
	}
	for col, w := range row {
		if w != 0 {
			held.Set(col)
		}
	}
}

// bytes returns the memory of a block, which is more than it takes when it is sealed.
func (b *block) bytes() (n int64) {
	if b.table != nil {
		return b.table.bytes()
	}
	for i := range b.parts {
		n += int64(len(b.parts[i].Words)) * 8
	}
	return n
}

// free gives the memory of a block back.
func (b *block) free() {
	if b.table != nil {
		b.table.free()
		return
	}
	for i := range b.parts {
		if b.parts[i].Words != nil {
			b.arena.Free(b.parts[i])
		}
	}
}
