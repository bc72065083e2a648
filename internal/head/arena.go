package head

import "sync"

// Arena hands out the cells of blocks, all of one size, and takes them back.
// Cells come zeroed. It may be used concurrently.
//
// The memory lies outside the Go heap (but see cells_heap.go), so that the
// collector neither scans it nor paces itself by it.
type Arena struct {
	size int // cells of a block

	mu    sync.Mutex
	free  [][]uint64
	inUse int
}

// Freed blocks keep their pages while there are at most minWarm and a quarter
// of those in use: every seal is followed by the opening of a block, and a
// page fault costs more than the write that causes it. What a burst leaves
// beyond that goes back to the system.
const minWarm = 64

// NewArena returns an arena of blocks of the given number of cells.
func NewArena(cells int) *Arena { return &Arena{size: cells} }

// Alloc returns the zeroed cells of one block.
func (a *Arena) Alloc() []uint64 {
	a.mu.Lock()
	a.inUse++
	n := len(a.free)
	if n == 0 {
		a.mu.Unlock()
		return mapCells(a.size)
	}
	cells := a.free[n-1]
	a.free = a.free[:n-1]
	a.mu.Unlock()
	clear(cells)
	return cells
}

// Free takes back what Alloc returned. The caller must not touch it again.
func (a *Arena) Free(cells []uint64) {
	a.mu.Lock()
	a.inUse--
	if len(a.free) < minWarm+a.inUse/4 {
		a.free = append(a.free, cells)
		cells = nil
	}
	a.mu.Unlock()
	if cells != nil {
		unmapCells(cells)
	}
}

// Bytes returns the memory of the blocks in use and of those kept warm.
func (a *Arena) Bytes() (inUse, warm int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return int64(a.inUse) * int64(a.size) * 8, int64(len(a.free)) * int64(a.size) * 8
}

// Release gives the warm blocks back to the system. The arena stays usable.
func (a *Arena) Release() {
	a.mu.Lock()
	free := a.free
	a.free = nil
	a.mu.Unlock()
	for _, cells := range free {
		unmapCells(cells)
	}
}
