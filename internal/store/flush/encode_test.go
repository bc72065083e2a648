package flush

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"testing"
	"unsafe"

	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/model/account"
	"dalmatiner/internal/model/history"
	"dalmatiner/internal/model/metric"
	"dalmatiner/internal/write/head"
)

// capturedSlots returns what a flush captures of groups of the given buckets whose
// series have points in the first slots.
func capturedSlots(t *testing.T, buckets []uint64, series int, slots int64,
	word func(group, col int, slot int64) uint64) *Captures {
	t.Helper()
	const height = 60
	f := &Captures{}
	arena := head.NewArena(height)
	var sealer head.Sealer
	words := make([]uint64, series)
	for i, bucket := range buckets {
		g := head.NewGroup(uint32(i), bucket, height, arena, new(history.Journal))
		for col := range series {
			key := fmt.Appendf(nil, "series %d of %d", col, i)
			g.Bind(col, key, 1, 0, metric.Series(bucket, key))
		}
		for slot := range slots {
			for col := range words {
				words[col] = word(i, col, slot)
			}
			if _, err := g.Apply(head.Write{Slot: slot, Words: words}, 0,
				func(*account.Counts) (uint64, error) {
					return 1, nil
				}); err != nil {
				t.Fatal(err)
			}
		}
		g.CloseBlocks(func(uint64, int64, int64) bool { return true })
		for _, ok := sealer.Seal(g); ok; {
			_, ok = sealer.Seal(g)
		}
		f.Groups, f.List = append(f.Groups, g), append(f.List, g.BeginFlush())
	}
	return f
}

// A flush gives the same chunks in the same order, whatever the size of its
// shares: by bucket, id and number.
func TestSharesOfAFlush(t *testing.T) {
	const series = 100
	f := capturedSlots(t, []uint64{7, 3, 7}, series, 1500, func(group, col int, slot int64) uint64 {
		return point.FromInt(slot * int64(group+col))
	})
	var want []Chunk
	for _, share := range []int64{1 << 40, 50_000, 1} {
		var got []Chunk
		err := new(Encoder).Each(f, share, func(e *Chunk) error {
			c := *e
			c.Data = bytes.Clone(e.Data)
			got = append(got, c)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if want == nil {
			want = got
		}
		if len(got) != 3*3*series || !slices.EqualFunc(got, want, func(a, b Chunk) bool {
			return a.Bucket == b.Bucket && a.ID == b.ID && a.Number == b.Number && a.Points == b.Points &&
				bytes.Equal(a.Data, b.Data)
		}) {
			t.Fatalf("shares of %d bytes: %d chunks, not those of one share, which are %d", share, len(got),
				len(want))
		}
		if !slices.IsSortedFunc(got, func(a, b Chunk) int {
			return cmp.Or(cmp.Compare(a.Bucket, b.Bucket), bytes.Compare(a.ID[:], b.ID[:]),
				cmp.Compare(a.Number, b.Number))
		}) {
			t.Errorf("shares of %d bytes: out of order", share)
		}
	}
	failed := fmt.Errorf("the disk is gone")
	if err := new(Encoder).Each(f, 1, func(*Chunk) error { return failed }); err != failed {
		t.Errorf("the error of emit became %v", err)
	}
}

// What is counted for the shares of a flush is what they take.
func TestShareNeed(t *testing.T) {
	random := func(_, col int, slot int64) uint64 {
		return point.FromFloat(float64(uint64(col+1)*uint64(slot+1)*0x9e3779b97f4a7c15>>12) / 7)
	}
	alike := func(int, int, int64) uint64 { return point.FromInt(7) }
	for name, c := range map[string]struct {
		groups int
		slots  int64
		share  int64
		word   func(int, int, int64) uint64
	}{
		"one share":            {40, 60, 64 << 20, random},
		"several shares":       {40, 60, 256 << 10, random},
		"several blocks":       {20, 180, 1 << 20, random},
		"long lists":           {100, 60, 64 << 20, alike},
		"shares of long lists": {100, 60, 128 << 10, alike},
	} {
		t.Run(name, func(t *testing.T) {
			f := capturedSlots(t, slices.Repeat([]uint64{7}, c.groups), head.Width, c.slots, c.word)
			var bytes, chunks, held int64
			for _, g := range f.Groups {
				n, size := g.FlushChunks()
				chunks, bytes = chunks+n, bytes+size
			}
			var e Encoder
			if err := e.Each(f, c.share, func(*Chunk) error {
				held = int64(cap(e.all))*int64(unsafe.Sizeof(Chunk{})) +
					int64(cap(e.order.keys)+cap(e.order.other))*8
				for _, slab := range e.slabs {
					held += int64(cap(slab))
				}
				return nil
			}); err != nil {
				t.Fatal(err)
			}
			if need := ShareNeed(bytes, chunks, c.share); held > need+slabSize || held < need*2/3 {
				t.Errorf("%d bytes are held, %d were counted", held, need)
			}
		})
	}
}
