package head

import (
	"dalmatiner/internal/model/history"
	"testing"
	"unsafe"

	"dalmatiner/internal/model/account"
)

// The hint says where the next row of a part is, for every row that was written and
// of every part.
func TestHintIsWhereRowsAre(t *testing.T) {
	g := testGroup(Width)
	g.blocks.form.sparse = 0
	words := benchWords()
	for slot := range int64(3 * testHeight) {
		if _, err := g.Apply(Write{Slot: slot, Words: words}, 0, func(*account.Counts) (uint64, error) {
			return 1, nil
		}); err != nil {
			t.Fatal(err)
		}
		b, row := g.blocks.cur, int(slot%testHeight)
		at := g.ahead.cells.Load() + uintptr(slot-g.ahead.slot.Load())*Width*8
		if want := uintptr(unsafe.Pointer(&b.grow(row)[0])); at != want {
			t.Fatalf("slot %d is at %x, the hint says %x", slot, want, at)
		}
		part := uintptr(unsafe.Pointer(&b.parts[row/g.blocks.arena.rows]))
		if g.ahead.part.Load() != part || g.ahead.block.Load() != uintptr(unsafe.Pointer(b)) {
			t.Fatalf("slot %d: another block or part", slot)
		}
	}
}

// A sender may approach whatever follows: nothing, a group without columns, one whose
// block is a table, one whose cells are gone.
func TestApproach(t *testing.T) {
	arena := NewArena(testHeight)
	var groups []*Group
	for i := range uint32(5) {
		groups = append(groups, NewGroup(i, 1, testHeight, arena, new(history.Journal)))
	}
	approach := func() {
		for _, g := range groups {
			for _, slot := range []int64{0, 1, testHeight, -1, 1 << 52} {
				g.Approach(slot)
			}
		}
	}
	approach()
	for i, g := range groups[1:] {
		groups[i].SetNext(g)
		approach()
	}
	groups[4].SetNext(groups[0])
	approach()
	full := testGroup(Width)
	full.blocks.form.sparse = 0
	for _, g := range groups {
		g.SetNext(full)
	}
	if _, err := full.Apply(Write{Words: benchWords()}, 0, func(*account.Counts) (uint64, error) {
		return 1, nil
	}); err != nil {
		t.Fatal(err)
	}
	approach()
	full.Kill()
	full.blocks.arena.Release()
	approach()
}
