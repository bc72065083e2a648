package store

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
		all := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) encoded {
			e := encoded{number: rapid.Int64Range(0, 5).Draw(t, "number")}
			for i := range e.id { // few values, so that ids share their first bits
				e.id[i] = rapid.SampledFrom([]byte{0, 1, 0x80, 0xff}).Draw(t, "byte")
			}
			return e
		}), 0, 200).Draw(t, "chunks")
		want := slices.Clone(all)
		slices.SortStableFunc(want, func(a, b encoded) int {
			return cmp.Or(bytes.Compare(a.id[:], b.id[:]), cmp.Compare(a.number, b.number))
		})
		order := o.of(all)
		if len(order) != len(all) {
			t.Fatalf("%d positions of %d chunks", len(order), len(all))
		}
		for i, p := range order {
			got := all[uint32(p)]
			if got.id != want[i].id || got.number != want[i].number {
				t.Fatalf("at %d stands %v, want %v", i, got, want[i])
			}
		}
	})
}

func BenchmarkChunkOrder(b *testing.B) {
	const n = 200_000
	all := make([]encoded, n)
	for i := range all {
		k := uint64(i) * 0x9e3779b97f4a7c15
		for j := range 8 {
			all[i].id[j] = byte(k >> (8 * j))
		}
	}
	var o chunkOrder
	for range b.N / n {
		o.of(all)
	}
}
