package head

import (
	"testing"

	"pgregory.net/rapid"
)

// Blocks never overlap and always come zeroed, whatever the order of Alloc and
// Free; what a burst leaves goes back.
func TestArena(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := newArena(16)
		var held []Cells
		for i := range rapid.IntRange(1, 2000).Draw(t, "steps") {
			if len(held) > 0 && rapid.IntRange(0, 2).Draw(t, "free") == 0 {
				n := rapid.IntRange(0, len(held)-1).Draw(t, "which")
				for _, w := range held[n].Words[:4] {
					if w != held[n].Words[0] || w == 0 {
						t.Fatalf("a held block was overwritten with %x", w)
					}
				}
				a.Free(held[n])
				held[n] = held[len(held)-1]
				held = held[:len(held)-1]
				continue
			}
			c := a.Alloc()
			for j, w := range c.Words {
				if w != 0 {
					t.Fatalf("cell %d of a new block holds %x", j, w)
				}
			}
			for j := range c.Words {
				c.Words[j] = uint64(i + 1)
			}
			held = append(held, c)
		}
		inUse, _ := a.Bytes()
		if want := int64(len(held)) << 15; inUse != want {
			t.Fatalf("%d bytes in use, want %d", inUse, want)
		}
		for _, c := range held {
			a.Free(c)
		}
		a.Release()
		if inUse, free := a.Bytes(); inUse != 0 || free != 0 {
			t.Fatalf("%d bytes in use and %d free after the release", inUse, free)
		}
	})
}

func TestABurstGoesBack(t *testing.T) {
	a := newArena(16)
	var held []Cells
	for range 4000 {
		held = append(held, a.Alloc())
	}
	for _, c := range held {
		a.Free(c)
	}
	if _, free := a.Bytes(); free > (keepFree+2*512)<<15 {
		t.Errorf("%d bytes stay after a burst", free)
	}
	a.Release()
}

// What Trim gives back has no memory, comes zeroed again, and blocks in use keep
// theirs.
func TestTrim(t *testing.T) {
	a := newArena(16)
	var held []Cells
	for range 2000 {
		c := a.Alloc()
		for i := range c.Words {
			c.Words[i] = 7
		}
		held = append(held, c)
	}
	for i, c := range held {
		if i%2 == 0 {
			a.Free(c)
		}
	}
	if inUse, free := a.Bytes(); inUse != 1000<<15 || free != 1000<<15 {
		t.Errorf("%d bytes in use, %d free", inUse, free)
	}
	a.Trim()
	if inUse, free := a.Bytes(); inUse != 1000<<15 || free != 0 {
		t.Errorf("after Trim %d bytes in use, %d free", inUse, free)
	}
	for i := range held {
		if i%2 == 0 {
			held[i] = a.Alloc()
		}
		for j, w := range held[i].Words {
			if want := uint64(i % 2 * 7); w != want {
				t.Fatalf("cell %d of block %d holds %x, want %x", j, i, w, want)
			}
		}
	}
	for _, c := range held {
		a.Free(c)
	}
	a.Release()
	if _, free := a.Bytes(); free != 0 {
		t.Errorf("%d bytes free after the release", free)
	}
}

// GiveBack leaves as many blocks as were taken in the last calls, and gives
// back those that nobody needed, but for a few.
func TestGiveBack(t *testing.T) {
	a := newArena(16)
	var held []Cells
	for range 1000 {
		held = append(held, a.Alloc())
	}
	step := func(use, want int) {
		t.Helper()
		for _, c := range held {
			a.Free(c)
		}
		held = held[:0]
		for range use {
			c := a.Alloc()
			for i, w := range c.Words {
				if w != 0 {
					t.Fatalf("cell %d of a new block holds %x", i, w)
				}
			}
			c.Words[1] = 1
			held = append(held, c)
		}
		for _, c := range held[use/2:] {
			a.Free(c)
		}
		held = held[:use/2]
		a.GiveBack()
		if _, free := a.Bytes(); free != int64(want)<<15 {
			t.Errorf("%d blocks are kept, want %d", free>>15, want)
		}
	}
	step(1000, 500) // all were needed since the beginning
	for range giveBackAfter - 1 {
		a.GiveBack()
	}
	if _, free := a.Bytes(); free != 500<<15 {
		t.Errorf("%d blocks are kept of those that were needed, want 500", free>>15)
	}
	a.GiveBack()
	if _, free := a.Bytes(); free != keepFree<<15 {
		t.Errorf("%d blocks are kept that nobody needed, want %d", free>>15, keepFree)
	}
	var more []Cells
	for range 400 {
		more = append(more, a.Alloc())
	}
	for range giveBackAfter {
		a.GiveBack()
	}
	for _, c := range more {
		a.Free(c)
	}
	for range 50 {
		a.Free(a.Alloc())
	}
	a.GiveBack()
	if _, free := a.Bytes(); free != (keepFree+50)<<15 {
		t.Errorf("%d blocks are kept, want %d: as many as were taken and a few", free>>15, keepFree+50)
	}
	for _, c := range held {
		a.Free(c)
	}
	a.Release()
}
