package store

import (
	"bytes"
	"cmp"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestInOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) encoded {
			e := encoded{bucket: rapid.Uint32Range(1, 3).Draw(t, "bucket"), number: rapid.Int64Range(0, 5).Draw(t, "number")}
			for i := range e.id { // few values, so that ids share their first bits
				e.id[i] = rapid.SampledFrom([]byte{0, 1, 0x80, 0xff}).Draw(t, "byte")
			}
			return e
		}), 0, 200).Draw(t, "chunks")
		want := slices.Clone(all)
		slices.SortStableFunc(want, func(a, b encoded) int {
			return cmp.Or(cmp.Compare(a.bucket, b.bucket), bytes.Compare(a.id[:], b.id[:]), cmp.Compare(a.number, b.number))
		})
		order := inOrder(all)
		if len(order) != len(all) {
			t.Fatalf("%d positions of %d chunks", len(order), len(all))
		}
		for i, p := range order {
			got := all[p]
			if got.bucket != want[i].bucket || got.id != want[i].id || got.number != want[i].number {
				t.Fatalf("at %d stands %v, want %v", i, got, want[i])
			}
		}
	})
}

func BenchmarkInOrder(b *testing.B) {
	const n = 200_000
	all := make([]encoded, n)
	for i := range all {
		k := uint64(i) * 0x9e3779b97f4a7c15
		for j := range 8 {
			all[i].id[j] = byte(k >> (8 * j))
		}
	}
	for range b.N / n {
		inOrder(all)
	}
}
