package head

import (
	"unsafe"

	"dalmatiner/internal/codec/chunk"
	"dalmatiner/internal/codec/kernel"
)

// sealedBlock is what became of a closed block: every column's slots encoded as a piece of a chunk.
type sealedBlock struct {
	start int64
	first int64    // slot written
	last  int64    // likewise
	offs  []uint32 // piece of column i is data[offs[i]:offs[i+1]]; empty when nothing is set
	data  []byte
	full  int  // columns with anything when it was made
	gone  Mask // of these columns nothing is left

	mem  []byte // offs and data, in the slab
	slab *sealedSlab
}

// newSealedBlock returns a sealed block with copies of the offsets and the pieces.
func newSealedBlock(m *sealedMemory, b *block, offs []uint32, data []byte, full int) *sealedBlock {
	mem, slab := m.alloc(4*len(offs) + len(data))
	t := &sealedBlock{start: b.start, first: b.first, last: b.last, full: full, mem: mem, slab: slab}
	t.offs = unsafe.Slice((*uint32)(unsafe.Pointer(unsafe.SliceData(mem))), len(offs))
	t.data = mem[4*len(offs):][:len(data)]
	copy(t.offs, offs)
	copy(t.data, data)
	return t
}

func (t *sealedBlock) bytes() int64 { return int64(len(t.mem)) }

// addHeld adds the columns that have anything.
func (t *sealedBlock) addHeld(held *Mask) {
	for col := range len(t.offs) - 1 {
		if len(t.piece(col)) > 0 {
			held.Set(col)
		}
	}
}

// drop takes columns out and returns how many words that were.
func (t *sealedBlock) drop(m *Mask) (words int64) {
	for col := range Width {
		if !m.Has(col) {
			continue
		}
		if n, err := chunk.Count(t.piece(col)); err == nil {
			words += int64(n)
		}
		t.gone.Set(col)
	}
	return words
}

// piece returns what the block holds of a column, encoded; empty for nothing.
func (t *sealedBlock) piece(col int) []byte {
	if col+1 >= len(t.offs) || t.gone.Has(col) {
		return nil // the column came after the block was closed, or was dropped
	}
	return t.data[t.offs[col]:t.offs[col+1]]
}

// Sealer encodes closed blocks. It holds scratch memory. The zero value is ready; it must not
// be used by two goroutines at once. Several Sealers may work on one group.
type Sealer struct {
	enc  chunk.Encoder
	cols []uint64 // of a stripe, one behind the other
	rows []uint64 // the cells of a table; all 0 between two blocks
	offs []uint32
	data []byte
}

// stripe is how many columns are transposed at a time: eight cells are one
// cache line, so every line of the block is read once.
const stripe = kernel.TurnColumns

// Seal encodes one closed block of the group, puts the sealed block in its place, and returns
// the bytes of that, 0 if the group was killed meanwhile. ok is false if no block waits.
// Readers see the points before, during and after.
func (s *Sealer) Seal(g *Group) (sealedBytes int64, ok bool) {
	b := g.claim()
	if b == nil {
		return 0, false
	}
	// Nobody writes to a closed block, so it is read without the lock.
	return g.replace(b, s.encode(b, g.Columns().Len(), int(b.height))), true
}

// claim returns a closed block for the caller to encode, nil if none waits.
func (g *Group) claim() *block {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.blocks.claim()
}

// replace puts a sealed block where the closed one was that it was made of, and returns its
// bytes. A group that has died meanwhile drops both.
func (g *Group) replace(b *block, t *sealedBlock) (sealedBytes int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.dead {
		g.unflushed.memory.free(t.mem, t.slab)
	} else {
		g.unflushed.waiting.sealedBlocks = append(g.unflushed.waiting.sealedBlocks, t)
		sealedBytes = t.bytes()
		g.owners.noteSealed(t, activity{b.lastLSN, b.lastWrite})
	}
	g.blocks.removeSealed(b)
	g.sealed.Broadcast()
	return sealedBytes
}

func (s *Sealer) encode(b *block, columns, height int) *sealedBlock {
	if len(s.cols) < stripe*height {
		s.cols = make([]uint64, stripe*height)
	}
	parts, rows := s.spread(b, height)
	defer s.clearRows(b)
	off := int(b.start % chunk.Slots)
	s.offs, s.data = append(s.offs[:0], 0), s.data[:0]
	full := 0
	for first := 0; first < columns; first += stripe {
		s.turn(parts, rows, first, height)
		for i := range min(stripe, columns-first) {
			s.data = s.enc.Append(s.data, off, s.cols[i*height:(i+1)*height])
			if n := uint32(len(s.data)); n > s.offs[len(s.offs)-1] {
				full++
			}
			s.offs = append(s.offs, uint32(len(s.data)))
		}
	}
	return newSealedBlock(&b.arena.sealedBlocks, b, s.offs, s.data, full)
}

// turn puts a stripe of a block, from column first on, into cols.
func (s *Sealer) turn(parts []Cells, rows, first, height int) {
	for i := range parts {
		dst := s.cols[i*rows:]
		if words := parts[i].Words; words != nil {
			kernel.Turn(dst, height, words[first:], Width, rows)
			continue
		}
		for col := range stripe {
			clear(dst[col*height:][:rows])
		}
	}
}
