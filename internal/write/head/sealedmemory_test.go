package head

import (
	"testing"

	"pgregory.net/rapid"

	"dalmatiner/internal/codec/chunk"
	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/model/account"
)

// heldMemory is memory of which every 512th byte was set.
type heldMemory struct {
	mem  []byte
	slab *sealedSlab
	fill byte
}

func (h *heldMemory) check(t *rapid.T) {
	t.Helper()
	for i := 0; i < len(h.mem); i += 512 {
		if h.mem[i] != h.fill {
			t.Fatalf("byte %d of a sealed block of %d was overwritten", i, len(h.mem))
		}
	}
}

// Sealed blocks never overlap, whatever the order in which they come and go. The counts
// are those of what is there, and all of it goes back.
func TestSealedMemory(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var m sealedMemory
		var all []heldMemory
		var used int64
		for i := range rapid.IntRange(1, 100).Draw(t, "steps") {
			switch step := rapid.IntRange(0, 9).Draw(t, "step"); {
			case step == 0:
				m.release()
			case step < 5 && len(all) > 0:
				n := rapid.IntRange(0, len(all)-1).Draw(t, "which")
				h := all[n]
				h.check(t)
				m.free(h.mem, h.slab)
				used -= int64(len(h.mem))
				all[n] = all[len(all)-1]
				all = all[:len(all)-1]
			default:
				n := rapid.SampledFrom([]int{1, 9, 1000, 30_000, 30_000, 30_000, 200_000, sealedSlabSize +
					5000}).Draw(t, "bytes")
				mem, slab := m.alloc(n)
				if len(mem) < n || len(mem) > n+7 {
					t.Fatalf("%d bytes for a sealed block of %d", len(mem), n)
				}
				h := heldMemory{mem, slab, byte(i + 1)}
				for j := 0; j < len(mem); j += 512 {
					mem[j] = h.fill
				}
				all = append(all, h)
				used += int64(len(mem))
			}
			if m.used != used || m.unusedBytes() < 0 {
				t.Fatalf("%d bytes in use, want %d; %d are taken", m.used, used, m.taken)
			}
		}
		for _, h := range all {
			h.check(t)
			m.free(h.mem, h.slab)
		}
		if m.release(); m.taken != 0 || m.used != 0 {
			t.Fatalf("%d bytes stay and %d in use without a sealed block", m.taken, m.used)
		}
	})
}

// A bucket may be deleted while a flush writes it: the flush goes on reading what
// it captured, and its end gives the memory back.
func TestAGroupThatDiesInAFlush(t *testing.T) {
	for name, end := range map[string]func(g *Group){
		"committed": func(g *Group) { g.EndFlush() },
		"aborted":   (*Group).AbortFlush,
	} {
		t.Run(name, func(t *testing.T) {
			g := testGroup(1)
			write := func(slot int64) {
				t.Helper()
				w := Write{Slot: slot, Words: []uint64{point.FromInt(slot)}}
				if _, err := g.Apply(w, 0, func(*account.Counts) (uint64, error) {
					return 1, nil
				}); err != nil {
					t.Fatal(err)
				}
				g.CloseBlocks(func(uint64, int64, int64) bool { return true })
				var s Sealer
				if _, ok := s.Seal(g); !ok {
					t.Fatal("no block was sealed")
				}
			}
			write(100)
			c := g.BeginFlush()
			write(200)
			before := g.blocks.arena.sealedBlocks.used
			g.Kill()
			if left := g.blocks.arena.sealedBlocks.used; left <= 0 || left >= before {
				t.Fatalf("%d of %d bytes of sealed blocks stay for the flush", left, before)
			}
			got := make([]uint64, chunk.Slots)
			var f Flusher
			err := f.Column(&c, 0, func(_ int64, _ int, data []byte, _, _ bool) error {
				return DecodeChunk(got, 0, data, 0)
			})
			if err != nil || got[100] != point.FromInt(100) || got[200] != 0 {
				t.Fatalf("the flush reads %x and %x, %v", got[100], got[200], err)
			}
			end(g)
			if g.blocks.arena.Release(); g.blocks.arena.sealedBlocks.taken != 0 {
				t.Errorf("%d bytes stay", g.blocks.arena.sealedBlocks.taken)
			}
		})
	}
}
