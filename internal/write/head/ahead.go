package head

import (
	"sync/atomic"
	"unsafe"

	"dalmatiner/internal/codec/kernel"
)

// prefetchHint is where the last run of a group went, so that the next one finds it in the
// cache. It is a hint: no pointers, since what they lead to may be gone.
type prefetchHint struct {
	slot  atomic.Int64   // of the first row of
	cells atomic.Uintptr // the part
	part  atomic.Uintptr // in the list of the block
	block atomic.Uintptr
}

// noSlot is a slot of no part.
const noSlot = -1 << 62

// row returns which of the rows of the part a slot is.
func (a *prefetchHint) row(slot int64, rows int) (row int64, ok bool) {
	row = slot - a.slot.Load()
	return row, row >= 0 && row < int64(rows)
}

// note remembers where a row of a block is. The block is no table.
func (a *prefetchHint) note(b *block, row int) {
	n := row / b.arena.rows
	p := &b.parts[n]
	a.slot.Store(b.start + int64(n*b.arena.rows))
	a.cells.Store(uintptr(unsafe.Pointer(unsafe.SliceData(p.Words))))
	a.part.Store(uintptr(unsafe.Pointer(p)))
	a.block.Store(uintptr(unsafe.Pointer(b)))
}

// How many lines of the cache are asked for. Of what is walked through the beginning is
// enough: the processor goes on by itself, but not from one page to the next.
const (
	groupLines   = (unsafe.Offsetof(Group{}.owners) + unsafe.Offsetof(owners{}.written) + 63) / 64
	columnsLines = (unsafe.Sizeof(Columns{}) + 63) / 64
	blockLines   = (unsafe.Sizeof(block{}) + 63) / 64
	walkedLines  = 4
	page         = 4096
)

// Approach prefetches the memory of the groups that a sender will write next: those that
// followed g the last time. The sender calls it when it begins with g, in slot. With more
// series than the cache holds, a group is a chain of five pieces of memory, each known
// only from the one before: the group, its columns, their names, its block and the cells.
// A call makes one step of the chain for each of the next three groups, so that all of it
// is in the cache when it is needed.
func (g *Group) Approach(slot int64) {
	n := g.Next()
	if n == nil {
		return
	}
	n.fetchRow(slot)
	if n = n.Next(); n == nil {
		return
	}
	n.Columns().Fetch()
	if n = n.Next(); n != nil {
		n.Fetch()
	}
}

// fetchRow asks for what the points of a slot are compared with, and where they go.
func (g *Group) fetchRow(slot int64) {
	c := g.Columns()
	fetchWalked(uintptr(unsafe.Pointer(unsafe.SliceData(c.names))),
		uintptr(len(c.names))*unsafe.Sizeof(kernel.Span{}))
	fetchWalked(uintptr(unsafe.Pointer(unsafe.SliceData(c.arena))), uintptr(len(c.arena)))
	kernel.Fetch(g.ahead.block.Load(), int(blockLines))
	kernel.Fetch(g.ahead.part.Load(), 1)
	if row, ok := g.ahead.row(slot, g.blocks.arena.rows); ok {
		kernel.Fetch(g.ahead.cells.Load()+uintptr(row)*Width*8, walkedLines)
	}
}

// fetchWalked asks for the beginning of memory that is walked through, and of each of
// its pages.
func fetchWalked(from, size uintptr) {
	for at, past := from, from+size; at < past; at = (at + page) &^ (page - 1) {
		kernel.Fetch(at, walkedLines)
	}
}

// Fetch prefetches the memory of a group that is about to be written to.
func (g *Group) Fetch() { kernel.Fetch(uintptr(unsafe.Pointer(g)), int(groupLines)) }

// Fetch prefetches the view.
func (c *Columns) Fetch() { kernel.Fetch(uintptr(unsafe.Pointer(c)), int(columnsLines)) }

// FetchSpan prefetches what Is reads first of a column.
func (c *Columns) FetchSpan(col int) {
	if uint(col) < uint(len(c.names)) {
		kernel.FetchOf(&c.names[col])
	}
}

// FetchName prefetches what Is reads after what FetchSpan has prefetched.
func (c *Columns) FetchName(col int) {
	if uint(col) < uint(len(c.names)) {
		if at := c.names[col].From; uint(at) < uint(len(c.arena)) {
			kernel.FetchOf(&c.arena[at])
		}
	}
}
