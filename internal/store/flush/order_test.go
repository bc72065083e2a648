package flush

import (
	"bytes"
	"cmp"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestChunkOrder(t *testing.T) {
	var o chunkOrder
	rapid.Check(t, func(t *rapid.T) {
		all := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Chunk {
			e := Chunk{Number: rapid.Int64Range(0, 5).Draw(t, "number")}
			for i := range e.ID { // few values, so that ids share their first bits
				e.ID[i] = rapid.SampledFrom([]byte{0, 1, 0x80, 0xff}).Draw(t, "byte")
			}
			return e
		}), 0, 200).Draw(t, "chunks")
		want := slices.Clone(all)
		slices.SortStableFunc(want, func(a, b Chunk) int {
			return cmp.Or(bytes.Compare(a.ID[:], b.ID[:]), cmp.Compare(a.Number, b.Number))
		})
		order := o.of(all)
		if len(order) != len(all) {
			t.Fatalf("%d positions of %d chunks", len(order), len(all))
		}
		for i, p := range order {
			got := all[uint32(p)]
			if got.ID != want[i].ID || got.Number != want[i].Number {
				t.Fatalf("at %d stands %v, want %v", i, got, want[i])
			}
		}
	})
}

func BenchmarkChunkOrder(b *testing.B) {
	const n = 200_000
	all := make([]Chunk, n)
	for i := range all {
		k := uint64(i) * 0x9e3779b97f4a7c15
		for j := range 8 {
			all[i].ID[j] = byte(k >> (8 * j))
		}
	}
	var o chunkOrder
	for range b.N / n {
		o.of(all)
	}
}
