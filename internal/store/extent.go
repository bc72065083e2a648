package store

import (
	"context"
	"errors"

	"dalmatiner/internal/buckets"
	"dalmatiner/internal/chunk"
	"dalmatiner/internal/head"
	"dalmatiner/internal/manifest"
)

// Extent returns the slots [first, past), inside [from, from+n), outside of which
// the metric certainly has no point: what is asked for beyond them costs nothing
// to answer. It reads no data, but may bring the part of the log that the series
// lies in. Of an unknown metric, and where nothing can be, first and past are
// both from. from is not negative.
func (s *Store) Extent(ctx context.Context, info buckets.Info, key []byte, from, n int64) (first, past int64, err error) {
	b, err := s.buckets.Of(info)
	if err != nil {
		return from, from, err
	}
	lo, _ := s.admitted(b)
	begin, end := max(from, int64(lo)), min(from+n, buckets.MaxSlot+1)
	if begin >= end {
		return from, from, ctx.Err()
	}
	if err := s.bringSeries(ctx, b, key); err != nil {
		return from, from, err
	}
	r, err := s.enter()
	if err != nil {
		return from, from, err
	}
	defer r.leave()
	id := b.seriesID(key)
	within := chunkRange{begin / chunk.Slots, (end-1)/chunk.Slots + 1}
	found := chunkRange{within.past, within.first} // nothing yet
	add := func(first, past int64) {
		found.first, found.past = min(found.first, max(first, within.first)), max(found.past, min(past, within.past))
	}
	known, err := r.look(ctx, id, func(g *head.Group, col int) (bool, error) {
		if g == nil {
			return true, nil
		}
		first, past, own := g.Extent(col, id, begin, end)
		if first < past {
			add(first/chunk.Slots, chunksOf(past))
		}
		return own, nil
	})
	if err != nil || !known {
		return from, from, errors.Join(err, ctx.Err())
	}
	err = r.version.segmentsOf(info.ID, id, within, func(seg *storedSegment) error {
		for _, r := range seg.meta.Ranges {
			if r.Bucket == info.ID && overlaps(seg, manifest.Range{Bucket: r.Bucket, First: within.first, Past: within.past}) {
				add(r.First, r.Past)
			}
		}
		return ctx.Err()
	})
	if err != nil {
		return from, from, err
	}
	if found.first >= found.past {
		return from, from, nil
	}
	return max(begin, found.first*chunk.Slots), min(end, found.past*chunk.Slots), nil
}
