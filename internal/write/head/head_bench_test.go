package head

import (
	"math/rand/v2"
	"testing"

	"dalmatiner/internal/codec/chunk"
	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/model/account"
)

func benchWords() []uint64 {
	r := rand.New(rand.NewPCG(1, 2))
	words := make([]uint64, Width)
	for i := range words {
		words[i] = point.FromInt(r.Int64N(1000))
	}
	return words
}

// BenchmarkApplyRow is one point of a full row, blocks opened and closed on
// the way but not encoded.
func BenchmarkApplyRow(b *testing.B) {
	g := testGroup(Width)
	words := benchWords()
	log := func(*account.Counts) (uint64, error) { return 1, nil }
	slot := int64(0)
	b.SetBytes(8)
	for n := 0; n < b.N; n += Width {
		if _, err := g.Apply(Write{Slot: slot, Words: words}, 0, log); err != nil {
			b.Fatal(err)
		}
		slot++
		if slot%testHeight == 0 {
			b.StopTimer()
			g.mu.Lock()
			for _, blk := range g.blocks.closed {
				blk.free()
				g.blocks.form.learn(testHeight*Width, testHeight*Width)
			}
			g.blocks.closed = nil
			g.mu.Unlock()
			b.StartTimer()
		}
	}
}

// BenchmarkSeal is one point of a full block, transposed and encoded.
func BenchmarkSeal(b *testing.B) {
	g := testGroup(Width)
	g.blocks.form.sparse = 0
	blk := g.blocks.newBlock(0, 0)
	r := rand.New(rand.NewPCG(1, 2))
	for row := range testHeight {
		for col := range Width {
			blk.grow(row)[col] = point.FromInt(r.Int64N(1000))
		}
	}
	var s Sealer
	b.SetBytes(8)
	for n := 0; n < b.N; n += testHeight * Width {
		s.encode(blk, Width, testHeight)
	}
}

// A year of one series filled in with a point every 12 minutes: 43,800 late
// runs in as many chunks.
func BenchmarkFlushScatteredLate(b *testing.B) {
	g := testGroup(1)
	log := func(*account.Counts) (uint64, error) { return 1, nil }
	const points = 43800
	apply := func(slot int64) {
		if _, err := g.Apply(Write{Slot: slot, Words: []uint64{point.FromInt(slot)}}, 0,
			log); err != nil {
			b.Fatal(err)
		}
	}
	apply((points + 1) * chunk.Slots)
	g.CloseBlocks(func(uint64, int64, int64) bool { return true })
	var sealer Sealer
	sealer.Seal(g)
	for i := range int64(points) {
		apply(i * chunk.Slots)
	}
	c := g.BeginFlush()
	var f Flusher
	for b.Loop() {
		chunks := 0
		err := f.Column(&c, 0, func(int64, int, []byte, bool, bool) error { chunks++; return nil })
		if err != nil || chunks != points+1 {
			b.Fatalf("%d chunks, %v", chunks, err)
		}
	}
}

// BenchmarkApplySparse is one point of a group whose series have one a block, on
// a full row.
func BenchmarkApplySparse(b *testing.B) {
	g := testGroup(Width)
	words := benchWords()
	log := func(*account.Counts) (uint64, error) { return 1, nil }
	slot := int64(0)
	b.SetBytes(8)
	b.ReportAllocs()
	for n := 0; n < b.N; n += Width {
		if _, err := g.Apply(Write{Slot: slot, Words: words}, 0, log); err != nil {
			b.Fatal(err)
		}
		slot += testHeight
		for _, blk := range g.blocks.closed {
			blk.free()
			g.blocks.form.learn(Width, testHeight*Width)
		}
		g.blocks.closed = nil
	}
}
