// Package arena keeps blocks of bytes in few pieces of memory.
package arena

import "math/bits"

// Arena is blocks of bytes without a pointer to each. What is given back is used again for a
// block of the same class, so nothing has to move.
type Arena struct {
	chunks [][]byte
	used   int // units of the last chunk that has several blocks
	last   int // that chunk
	free   [arenaClasses]Ref
	places []int // of chunks that were given back
}

// Ref says where a block is: its first unit. 0 is none.
type Ref uint32

const (
	unit       = 4       // bytes
	chunkUnits = 1 << 14 // what numbers of units a chunk takes up
	chunkBytes = chunkUnits * unit

	// A block takes whole units: each number up to fineUnits is a class of its own, above that
	// each power of two is cut into coarseClasses.
	fineUnits     = 64
	coarseClasses = 8
	arenaClasses  = fineUnits + coarseClasses*6 + 1 // up to largeUnits
	largeUnits    = fineUnits << 6                  // a larger block has a chunk of its own
)

// classFor returns the class of blocks of n units, and how many units they have.
func classFor(n int) (class, units int) {
	if n <= fineUnits {
		return n - 1, n
	}
	shift := bits.Len(uint(n-1)) - 4 // 8 classes between two powers of two
	steps := (n - 1) >> shift        // 8 … 15
	power := shift - 3               // 0 for those above fineUnits
	return fineUnits + power*coarseClasses + steps - coarseClasses, (steps + 1) << shift
}

// Take returns a block of n bytes or a few more, not cleared.
func (a *Arena) Take(n int) (Ref, []byte) {
	units := max(1, (n+unit-1)/unit)
	if units > largeUnits {
		return a.ownChunk(units * unit)
	}
	class, units := classFor(units)
	if r := a.free[class]; r != 0 {
		block := a.Get(r)[:units*unit]
		a.free[class] = Ref(block[0]) | Ref(block[1])<<8 | Ref(block[2])<<16 | Ref(block[3])<<24
		return r, block
	}
	if len(a.chunks) == 0 || a.used+units > chunkUnits {
		a.last = a.place(make([]byte, chunkBytes))
		if a.used = 0; a.last == 0 {
			a.used = 1 // so that no block is 0
		}
	}
	r := Ref(a.last*chunkUnits + a.used)
	a.used += units
	return r, a.Get(r)[:units*unit]
}

// ownChunk makes a chunk for one block.
func (a *Arena) ownChunk(n int) (Ref, []byte) {
	if len(a.chunks) == 0 {
		a.Take(1) // as no block is 0
	}
	chunk := make([]byte, n)
	return Ref(a.place(chunk) * chunkUnits), chunk
}

func (a *Arena) place(chunk []byte) int {
	if n := len(a.places); n > 0 {
		at := a.places[n-1]
		a.places = a.places[:n-1]
		a.chunks[at] = chunk
		return at
	}
	a.chunks = append(a.chunks, chunk)
	return len(a.chunks) - 1
}

// Get returns a block and what lies behind it.
func (a *Arena) Get(r Ref) []byte {
	return a.chunks[r/chunkUnits][r%chunkUnits*unit:]
}

// Give gives back a block that was taken with n bytes.
func (a *Arena) Give(r Ref, n int) {
	units := max(1, (n+unit-1)/unit)
	if units > largeUnits {
		at := int(r / chunkUnits)
		a.chunks[at] = nil
		a.places = append(a.places, at)
		return
	}
	class, _ := classFor(units)
	block := a.Get(r)
	next := a.free[class]
	block[0], block[1], block[2], block[3] = byte(next), byte(next>>8), byte(next>>16), byte(next>>24)
	a.free[class] = r
}

// Fits reports whether blocks of n and of m bytes are of one class.
func Fits(n, m int) bool {
	n, m = max(1, (n+unit-1)/unit), max(1, (m+unit-1)/unit)
	if n > largeUnits || m > largeUnits {
		return n == m
	}
	a, _ := classFor(n)
	b, _ := classFor(m)
	return a == b
}

func (a *Arena) Bytes() (n int64) {
	for _, c := range a.chunks {
		n += int64(cap(c)) + 24
	}
	return n
}
