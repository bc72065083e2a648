package store

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"testing"

	"dalmatiner/internal/account"
	"dalmatiner/internal/head"
	"dalmatiner/internal/metric"
	"dalmatiner/internal/point"
)

// A flush gives the same chunks in the same order, whatever the size of its
// shares: by bucket, id and number.
func TestSharesOfAFlush(t *testing.T) {
	const height, series = 60, 100
	f := &flushing{}
	arena := head.NewArena(height)
	var sealer head.Sealer
	for i, bucket := range []uint32{7, 3, 7} {
		g := head.NewGroup(uint32(i), bucket, height, arena)
		for col := range series {
			key := fmt.Appendf(nil, "series %d of %d", col, i)
			g.Bind(col, key, 1, 0, metric.Series(bucket, key))
		}
		words := make([]uint64, series)
		for slot := range int64(1500) {
			for col := range words {
				words[col] = point.FromInt(slot * int64(i+col))
			}
			if _, err := g.Apply(head.Write{Slot: slot, Words: words}, 0, func(*account.Counts) (uint64, error) { return 1, nil }); err != nil {
				t.Fatal(err)
			}
		}
		g.CloseBlocks(func(uint64, int64, int64) bool { return true })
		for _, ok := sealer.Seal(g); ok; {
			_, ok = sealer.Seal(g)
		}
		f.groups, f.captures = append(f.groups, g), append(f.captures, g.BeginFlush())
	}
	var want []encoded
	for _, share := range []int64{1 << 40, 50_000, 1} {
		var got []encoded
		err := f.each(share, func(e *encoded) error {
			c := *e
			c.data = bytes.Clone(e.data)
			got = append(got, c)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if want == nil {
			want = got
		}
		if len(got) != 3*3*series || !slices.EqualFunc(got, want, func(a, b encoded) bool {
			return a.bucket == b.bucket && a.id == b.id && a.number == b.number && a.points == b.points && bytes.Equal(a.data, b.data)
		}) {
			t.Fatalf("shares of %d bytes: %d chunks, not those of one share, which are %d", share, len(got), len(want))
		}
		if !slices.IsSortedFunc(got, func(a, b encoded) int {
			return cmp.Or(cmp.Compare(a.bucket, b.bucket), bytes.Compare(a.id[:], b.id[:]), cmp.Compare(a.number, b.number))
		}) {
			t.Errorf("shares of %d bytes: out of order", share)
		}
	}
	failed := fmt.Errorf("the disk is gone")
	if err := f.each(1, func(*encoded) error { return failed }); err != failed {
		t.Errorf("the error of emit became %v", err)
	}
}
