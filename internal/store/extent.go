package store

import (
	"context"
	"errors"

	"dalmatiner/internal/buckets"
	"dalmatiner/internal/chunk"
	"dalmatiner/internal/head"
	"dalmatiner/internal/manifest"
	"dalmatiner/internal/version"
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
	within := version.Chunks{First: begin / chunk.Slots, Past: (end-1)/chunk.Slots + 1}
	found := version.Chunks{First: within.Past, Past: within.First} // nothing yet
	add := func(first, past int64) {
		found.First, found.Past = min(found.First, max(first, within.First)), max(found.Past, min(past, within.Past))
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
	err = r.version.SegmentsOf(info.ID, id, within, func(seg *version.Segment) error {
		for _, r := range seg.Meta.Ranges {
			if r.Bucket == info.ID && seg.Overlaps(manifest.Range{Bucket: r.Bucket, First: within.First, Past: within.Past}) {
				add(r.First, r.Past)
			}
		}
		return ctx.Err()
	})
	if err != nil {
		return from, from, err
	}
	if found.First >= found.Past {
		return from, from, nil
	}
	return max(begin, found.First*chunk.Slots), min(end, found.Past*chunk.Slots), nil
}
