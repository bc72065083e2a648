package store

import (
	"context"

	"dalmatiner/internal/codec/chunk"
	"dalmatiner/internal/store/reader"
)

// May sets may[i] where metric i has a point in the slots [from, past), or may have had one there
// that damage took, and clears it where there is none. Few series have to be looked at one by one.
func (h Bucket) May(ctx context.Context, keys [][]byte, from, past int64, may []bool) error {
	err := h.Have(ctx, keys, from, past, may)
	for i := 0; i < len(keys) && err == nil; i++ {
		if !may[i] {
			may[i], err = h.Series(keys[i]).may(ctx, from, past)
		}
	}
	return err
}

// may looks from the end of the range on.
func (h Series) may(ctx context.Context, from, past int64) (bool, error) {
	first, past, err := h.Extent(ctx, from, past-from)
	var all [1]chunk.Header
	for n := int64(chunk.Slots); err == nil && first < past; n *= 4 {
		at := max(first, past-n)
		var st reader.Stats
		st, err = h.Aggregate(ctx, at, past-at, all[:])
		if all[0].Count > 0 || len(st.Unknown) > 0 {
			return true, err
		}
		past = at
	}
	return false, err
}
