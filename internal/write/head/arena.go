package head

import (
	"slices"
	"sync"
	"sync/atomic"
)

// Arena hands out the cells of parts of blocks, all of one size, and takes them
// back. Cells come zeroed. It may be used concurrently.
//
// The memory lies outside the Go heap (but see cells_heap.go), so that the
// collector neither scans it nor paces itself by it. It is mapped in slabs of
// many parts: a slab is large and aligned enough for huge pages, and a
// page fault then costs 2 MiB and not 4 KiB. With a mapping for every block,
// the first touch of its pages was a third of what a point cost at a million
// series.
type Arena struct {
	rows  int // of a part
	size  int // cells of a part
	slots int // parts of a slab

	tables       atomic.Int64 // bytes of the blocks that have a table instead
	sealedBlocks sealedMemory // of what was in blocks

	mu    sync.Mutex
	slabs []*slab // with free parts; the last one is used first
	inUse int
	free  int                // parts in slabs and not in use
	dirty int                // of them, those that have memory: they were in use
	calls int                // of Alloc since GiveBack
	keep  int                // sum of taken
	taken [giveBackAfter]int // calls before each of the last times
	round int                // of taken
}

// slab is one mapping.
type slab struct {
	cells []uint64
	free  []freePart
}

// freePart is the place of a part in its slab.
type freePart struct {
	cells []uint64
	dirty bool // was in use: must be cleared
}

// Cells are the cells of one part.
type Cells struct {
	Words []uint64 // row by row; belongs to whoever called Alloc, until Free
	slab  *slab
}

const (
	// slabBytes is the least size of a slab: eight huge pages.
	slabBytes = 16 << 20

	// keepFree is how many free parts stay mapped beyond an eighth of those
	// in use: blocks grow while others are sealed. What a burst
	// leaves beyond that goes back to the system, slab by slab.
	keepFree = 256

	// giveBackAfter is for how many calls of GiveBack what was taken counts.
	giveBackAfter = 100

	// partRows bounds the rows of a part: 24 KiB, a fifth of a block of a minute
	// of seconds. Blocks of many groups begin together, so what they do not yet
	// need of their height is worth more than what a block has at an end.
	partRows = 12
)

// NewArena returns an arena for blocks of height rows. Two rows are a page, so the parts of
// blocks with an even number of rows have an even number as well.
func NewArena(height int) *Arena {
	rows := min(height, partRows)
	for height%rows != 0 || height%2 != rows%2 {
		rows--
	}
	return newArena(rows)
}

func newArena(rows int) *Arena {
	size := rows * Width
	return &Arena{rows: rows, size: size, slots: max(1, slabBytes/(size*8))}
}

// Alloc returns the zeroed cells of one part.
func (a *Arena) Alloc() Cells {
	a.mu.Lock()
	if len(a.slabs) == 0 {
		a.addSlab()
	}
	n := len(a.slabs) - 1
	s := a.slabs[n]
	b := s.free[len(s.free)-1]
	s.free = s.free[:len(s.free)-1]
	if len(s.free) == 0 {
		a.slabs = a.slabs[:n]
	}
	a.inUse++
	a.free--
	if b.dirty {
		a.dirty--
	}
	a.calls++
	a.mu.Unlock()
	if b.dirty {
		clear(b.cells)
	}
	return Cells{Words: b.cells, slab: s}
}

func (a *Arena) addSlab() {
	s := &slab{cells: mapCells(a.size * a.slots)}
	for i := range a.slots {
		s.free = append(s.free, freePart{cells: s.cells[i*a.size : (i+1)*a.size : (i+1)*a.size]})
	}
	a.slabs = append(a.slabs, s)
	a.free += a.slots
}

// Free takes back what Alloc returned. The caller must not touch it again.
func (a *Arena) Free(c Cells) {
	a.mu.Lock()
	s := c.slab
	if len(s.free) == 0 {
		a.slabs = append(a.slabs, s)
	}
	s.free = append(s.free, freePart{cells: c.Words, dirty: true})
	a.inUse--
	a.free++
	a.dirty++
	var gone *slab
	if len(s.free) == a.slots && a.free-a.slots >= keepFree+a.inUse/8 {
		gone = s
		a.drop(s)
	}
	a.mu.Unlock()
	if gone != nil {
		unmapCells(gone.cells)
	}
}

func (a *Arena) drop(s *slab) {
	a.slabs = slices.DeleteFunc(a.slabs, func(o *slab) bool { return o == s })
	a.free -= a.slots
	for i := range s.free {
		if s.free[i].dirty {
			a.dirty--
		}
	}
}

// Bytes returns the memory of the parts in use, and the memory that is free and kept for
// others: that of free parts, and what sealed blocks have given back. A part that was never in
// use has no memory.
func (a *Arena) Bytes() (inUse, free int64) {
	unused := a.sealedBlocks.unusedBytes()
	a.mu.Lock()
	defer a.mu.Unlock()
	return int64(a.inUse) * int64(a.size) * 8, int64(a.dirty)*int64(a.size)*8 + unused
}

// TableBytes returns the memory of the blocks that are tables. It is on the Go heap.
func (a *Arena) TableBytes() int64 { return a.tables.Load() }

// Trim gives back to the system the memory of all free parts, of whole slabs as well as
// of slabs in use, and the memory that no sealed block needs.
func (a *Arena) Trim() {
	a.Release()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.trim(a.dirty)
}

// GiveBack gives the memory of free parts back to the system. It keeps the number of
// parts that were used during the last giveBackAfter calls, and keepFree more. Once in
// giveBackAfter calls it also gives back the memory that no sealed block needs. It is
// called ten times a second. So blocks that come and go fast keep their memory, and when
// senders in step end all their blocks at the turn of a minute, the next rows find memory.
func (a *Arena) GiveBack() {
	a.mu.Lock()
	a.keep += a.calls - a.taken[a.round]
	a.taken[a.round] = a.calls
	a.calls, a.round = 0, (a.round+1)%len(a.taken)
	a.trim(a.dirty - keepFree - a.keep)
	around := a.round == 0
	a.mu.Unlock()
	if around {
		a.ReleaseSealed()
	}
}

// trim gives the memory of n free parts back, first of those that are used last.
func (a *Arena) trim(n int) {
	if !wholePages(a.size) {
		return
	}
	for _, s := range a.slabs {
		for i := range s.free {
			if n <= 0 {
				return
			}
			if b := &s.free[i]; b.dirty {
				dropPages(b.cells)
				b.dirty = false
				a.dirty--
				n--
			}
		}
	}
}

// Release gives the slabs without a part or a sealed block in use back to the system. The
// arena stays usable.
func (a *Arena) Release() {
	a.ReleaseSealed()
	a.mu.Lock()
	var gone []*slab
	for _, s := range slices.Clone(a.slabs) {
		if len(s.free) == a.slots {
			gone = append(gone, s)
			a.drop(s)
		}
	}
	a.mu.Unlock()
	for _, s := range gone {
		unmapCells(s.cells)
	}
}

// ReleaseSealed gives the memory without a sealed block back to the system.
func (a *Arena) ReleaseSealed() { a.sealedBlocks.release() }
