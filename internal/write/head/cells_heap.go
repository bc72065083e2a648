//go:build race || invariants

package head

// Under the race detector and with the invariants tag the cells lie on the Go
// heap: the detector does not see mapped memory, and a use after Free cannot
// fault there.

func mapCells(n int) []uint64 { return make([]uint64, n) }

// unmapCells overwrites what was freed, so that a reader that kept it shows.
func unmapCells(cells []uint64) {
	for i := range cells {
		cells[i] = 0xdeaddeaddeaddead
	}
}

func mapBytes(n int) []byte { return make([]byte, n) }

func unmapBytes(mem []byte) { spoil(mem) }

// spoil overwrites what was freed in memory that stays mapped.
func spoil(mem []byte) {
	for i := copy(mem, "\xde\xad\xde\xad"); i > 0 && i < len(mem); i *= 2 {
		copy(mem[i:], mem[:i])
	}
}

func wholePages(int) bool { return true }

// dropPages leaves the cells zero, as the system does.
func dropPages(cells []uint64) { clear(cells) }
