package head

import (
	"testing"

	"dalmatiner/internal/codec/chunk"
	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/model/account"
)

// A block takes memory for the rows that are reached, in parts; what is read and
// sealed of the others is unset.
func TestBlocksTakeMemoryAsTheyGrow(t *testing.T) {
	const part = partRows * Width * 8
	words := benchWords()
	for _, c := range []struct {
		name  string
		write []Write
		parts int64 // in use after each write, and in the end
	}{
		{"the last row", []Write{{Slot: testHeight - 1}}, 1},
		{"both sides of a border", []Write{{Slot: partRows - 1}, {Slot: partRows}}, 2},
		{"down over two borders", []Write{{Slot: partRows - 1, Down: true, Words: words[:partRows+2]}},
			3},
		{"pairs down over two borders",
			[]Write{{Slot: partRows - 1, Down: true, Pairs: true, Words: words[:2*partRows+4]}}, 3},
		{"with a gap", []Write{{Slot: 4 * partRows}, {Slot: 0}, {Slot: 4*partRows + 1}}, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := testGroup(Width)
			g.blocks.form.sparse = 0
			want := make(map[int64]uint64) // of column 0
			for _, w := range c.write {
				if w.Words == nil {
					w.Words = words
				}
				if _, err := g.Apply(w, 0, func(*account.Counts) (uint64, error) {
					return 1, nil
				}); err != nil {
					t.Fatal(err)
				}
				step := 1
				if w.Pairs {
					step = 2
				}
				for i := 0; i < len(w.Words) && (i == 0 || w.Down); i += step {
					want[w.Slot+int64(i/step)] = w.Words[i]
				}
			}
			check := func() {
				t.Helper()
				got := make([]uint64, chunk.Slots)
				if _, err := g.Read(0, g.Columns().ID(0), 0, got); err != nil {
					t.Fatal(err)
				}
				for slot, w := range got {
					if w != want[int64(slot)] {
						t.Fatalf("slot %d holds %#x, want %#x", slot, w, want[int64(slot)])
					}
				}
			}
			if n, _ := g.blocks.arena.Bytes(); n != c.parts*part {
				t.Errorf("%d bytes are in use, want %d", n, c.parts*part)
			}
			check()
			g.CloseBlocks(func(uint64, int64, int64) bool { return true })
			var s Sealer
			s.cols = make([]uint64, stripe*testHeight)
			for i := range s.cols {
				s.cols[i] = point.FromInt(5) // of another block
			}
			s.Seal(g)
			check()
			if n, _ := g.blocks.arena.Bytes(); n != 0 {
				t.Errorf("%d bytes are in use after the seal", n)
			}
		})
	}
}

// The parts of a block have the same height, and are whole pages where the block is.
func TestPartsDivideTheBlock(t *testing.T) {
	for height := 1; height <= chunk.Slots; height++ {
		if chunk.Slots%height != 0 {
			continue
		}
		a := NewArena(height)
		if a.rows > partRows || height%a.rows != 0 || height%2 == 0 && a.rows%2 != 0 || height > 1 &&
			a.rows == 1 {
			t.Errorf("blocks of %d rows have parts of %d", height, a.rows)
		}
	}
}
