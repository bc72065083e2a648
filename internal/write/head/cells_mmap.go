//go:build !race && !invariants

package head

import (
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// mapCells returns n zeroed cells in memory of their own, as mapBytes does.
func mapCells(n int) []uint64 {
	return unsafe.Slice((*uint64)(unsafe.Pointer(unsafe.SliceData(mapBytes(n*8)))), n)
}

func unmapCells(cells []uint64) {
	unmapBytes(unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(cells))), len(cells)*8))
}

// mapBytes returns n zeroed bytes in memory of their own, of which those that are
// written to take any. Running out of address space cannot be handled where a point
// is being written, so it ends the process with the number that was asked for.
func mapBytes(n int) []byte {
	mem, err := unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		panic(fmt.Sprintf("mapping %d bytes for points: %v", n, err))
	}
	// A kernel without huge pages serves small ones.
	_ = unix.Madvise(mem, unix.MADV_HUGEPAGE)
	return mem
}

func unmapBytes(mem []byte) {
	if err := unix.Munmap(mem); err != nil {
		panic(fmt.Sprintf("unmapping %d bytes of points: %v", len(mem), err))
	}
}

// spoil is for the race detector: see cells_heap.go.
func spoil([]byte) {}

// wholePages reports whether parts of n cells in a row are pages of their own.
func wholePages(n int) bool { return n*8%os.Getpagesize() == 0 }

// dropPages gives the memory of cells back and keeps their addresses: they read
// as zero from then on.
func dropPages(cells []uint64) {
	mem := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(cells))), len(cells)*8)
	if err := unix.Madvise(mem, unix.MADV_DONTNEED); err != nil {
		panic(fmt.Sprintf("giving back %d bytes of head blocks: %v", len(mem), err))
	}
}
