package head

import (
	"dalmatiner/internal/chunk"
)

// tile is a sealed block: every column's slots encoded as a piece of a chunk.
type tile struct {
	start int64
	offs  []uint32 // piece of column i is data[offs[i]:offs[i+1]]; empty when nothing is set
	data  []byte
	gone  Mask // of these columns nothing is left
}

func (t *tile) piece(col int) []byte {
	if col+1 >= len(t.offs) || t.gone.Has(col) {
		return nil // the column came after the block was closed, or was dropped
	}
	return t.data[t.offs[col]:t.offs[col+1]]
}

// Sealer encodes closed blocks. It holds scratch memory and is not for
// concurrent use; every sealing goroutine has its own.
type Sealer struct {
	enc  chunk.Encoder
	cols [stripe][]uint64
	rows []uint64 // the cells of a table; all 0 between two blocks
	data []byte
}

// stripe is how many columns are transposed at a time: eight cells are one
// cache line, so every line of the block is read once.
const stripe = 8

// Seal encodes one closed block of the group into a tile and returns the bytes
// of the tile and the memory given back. ok is false when no block waits.
// Readers see the points before, during and after.
func (s *Sealer) Seal(g *Group) (tileBytes int64, ok bool) {
	b := g.claim()
	if b == nil {
		return 0, false
	}
	// Nobody writes to a closed block, so it is read without the lock.
	t := s.encode(b, g.Columns().Len(), int(g.height))
	set := t.set()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.sealedWith(set)
	for i := range g.sealing {
		if g.sealing[i] == b {
			g.sealing = append(g.sealing[:i], g.sealing[i+1:]...)
			break
		}
	}
	if !g.dead {
		g.tiles = append(g.tiles, t)
		tileBytes = t.bytes()
	}
	b.free(g.arena)
	g.sealed.Broadcast()
	return tileBytes, true
}

func (t *tile) bytes() int64 { return int64(cap(t.data) + 4*cap(t.offs)) }

func (g *Group) claim() *block {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, b := range g.sealing {
		if !b.claimed {
			b.claimed = true
			return b
		}
	}
	return nil
}

func (s *Sealer) encode(b *block, columns, height int) *tile {
	if len(s.cols[0]) < height {
		for i := range s.cols {
			s.cols[i] = make([]uint64, height)
		}
	}
	cells := s.spread(b, height)
	defer s.gather(b)
	off := int(b.start % chunk.Slots)
	offs := make([]uint32, 1, columns+1)
	s.data = s.data[:0]
	for first := 0; first < columns; first += stripe {
		s.transpose(cells, first, height)
		for i := range min(stripe, columns-first) {
			s.data = s.enc.Append(s.data, off, s.cols[i][:height])
			offs = append(offs, uint32(len(s.data)))
		}
	}
	return &tile{start: b.start, offs: offs, data: append([]byte(nil), s.data...)}
}

// transpose reads the cells of a stripe of columns into s.cols.
func (s *Sealer) transpose(cells []uint64, first, height int) {
	c0, c1, c2, c3 := s.cols[0][:height], s.cols[1][:height], s.cols[2][:height], s.cols[3][:height]
	c4, c5, c6, c7 := s.cols[4][:height], s.cols[5][:height], s.cols[6][:height], s.cols[7][:height]
	for r := range height {
		row := (*[stripe]uint64)(cells[r*Width+first:])
		c0[r], c1[r], c2[r], c3[r] = row[0], row[1], row[2], row[3]
		c4[r], c5[r], c6[r], c7[r] = row[4], row[5], row[6], row[7]
	}
}
