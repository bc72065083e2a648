package head

import (
	"testing"

	"dalmatiner/internal/model/account"
)

// A block is complete when all its cells are set, of whatever kind it is and
// however they were written, and not while one is missing.
func TestCompleteBlocksClose(t *testing.T) {
	log := func(*account.Counts) (uint64, error) { return 1, nil }
	for name, apply := range map[string]func(g *Group, words []uint64, write func(Write)){
		"rows": func(g *Group, words []uint64, write func(Write)) {
			for slot := range int64(testHeight) {
				write(Write{Slot: slot, Words: words[:Width]})
			}
		},
		"columns": func(g *Group, words []uint64, write func(Write)) {
			for col := range Width {
				write(Write{Column: col, Words: words[:testHeight], Down: true})
			}
		},
		"pairs": func(g *Group, words []uint64, write func(Write)) {
			for slot := range int64(testHeight) {
				write(Write{Slot: slot, Words: words[:Width], Pairs: true})
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := testGroup(Width)
			var writes []Write
			apply(g, benchWords(), func(w Write) { writes = append(writes, w) })
			last := writes[len(writes)-1]
			for _, w := range append(writes[:len(writes)-1], writes[0], writes[1]) { // some twice
				if _, err := g.Apply(w, 5, log); err != nil {
					t.Fatal(err)
				}
				if n := g.CloseComplete(6); n != 0 {
					t.Fatal("a block was closed of which cells are missing")
				}
			}
			if _, err := g.Apply(last, 5, log); err != nil {
				t.Fatal(err)
			}
			if n := g.CloseComplete(5); n != 0 {
				t.Error("a block was closed that was just written")
			}
			if n := g.CloseComplete(6); n != 1 {
				t.Error("a complete block stayed open")
			}
		})
	}
}

// A complete block closes when points have gone a fifth into a newer one, whatever
// the clock says, and one of which a cell is missing stays open for it.
func TestCompleteBlocksCloseBehindNewerOnes(t *testing.T) {
	for _, sparse := range []int{0, sparseBlocks} {
		g := testGroup(Width)
		g.blocks.form.sparse = sparse
		words := benchWords()
		var c account.Counts
		write := func(slot int64, n int) (closed int) {
			t.Helper()
			a, err := g.Apply(Write{Slot: slot, Words: words[:n]}, 0,
				func(d *account.Counts) (uint64, error) {
					c.Add(d)
					return 1, nil
				})
			if err != nil {
				t.Fatal(err)
			}
			return a.Closed
		}
		for slot := range int64(testHeight) {
			write(slot, Width)
		}
		const second, third, fifth = testHeight, 2 * testHeight, testHeight / pastPart
		for slot := int64(second); slot < third; slot++ {
			n := Width
			if slot == second+30 {
				n-- // missing
			}
			closed, want := write(slot, n), 0
			if slot == second+fifth {
				want = 1
			}
			if closed != want {
				t.Errorf("sparse %d, slot %d: %d blocks closed, want %d", sparse, slot, closed, want)
			}
		}
		for slot := int64(third); slot < third+2*fifth; slot++ {
			if closed := write(slot, Width); closed != 0 {
				t.Errorf("sparse %d, slot %d: a block was closed of which a cell is missing", sparse, slot)
			}
		}
		write(second+30, Width)
		closed := 0
		for slot := int64(third + 2*fifth); slot <= third+3*fifth; slot++ {
			closed += write(slot, Width)
		}
		if want := uint64(Width * (third + 3*fifth + 1)); closed != 1 || c.Accepted != want ||
			c.Duplicate != Width-1 || c.Late != 0 {
			t.Errorf("sparse %d: %d blocks closed for what was missing, want 1; %+v, want %d accepted",
				sparse, closed, c, want)
		}
	}
}

// A replay keeps the newest block, and the one before it while points for it may
// come.
func TestCloseBehind(t *testing.T) {
	log := func(*account.Counts) (uint64, error) { return 1, nil }
	g := testGroup(Width)
	words := benchWords()
	for block, missing := range []int64{1, 1, 0, 1} {
		for slot := range testHeight - missing {
			if _, err := g.Apply(Write{Slot: int64(block)*testHeight + slot, Words: words}, 0,
				log); err != nil {
				t.Fatal(err)
			}
		}
		g.CloseBehind()
		if want, open := []int{1, 2, 2, 1}[block], len(g.blocks.open); open != want ||
			open+len(g.blocks.closed) != block+1 {
			t.Errorf("behind block %d: %d are open, want %d; %d wait", block, open, want,
				len(g.blocks.closed))
		}
	}
}
