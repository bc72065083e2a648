package store

import (
	"context"

	"dalmatiner/internal/chunk"
	"dalmatiner/internal/manifest"
)

// Extent returns the slots [first, past), inside [from, from+n), outside of which
// the metric certainly has no point: what is asked for beyond them costs nothing
// to answer. It reads no data, but may bring the part of the log that the series
// lies in. Of an unknown metric, and where nothing can be, first and past are
// both from. from is not negative.
func (s *Store) Extent(ctx context.Context, info BucketInfo, key []byte, from, n int64) (first, past int64, err error) {
	b, err := s.buckets.of(info)
	if err != nil {
		return from, from, err
	}
	lo, _ := s.admitted(b)
	begin, end := max(from, int64(lo)), min(from+n, maxSlot+1)
	if begin >= end {
		return from, from, ctx.Err()
	}
	if err := s.bringSeries(ctx, b, key); err != nil {
		return from, from, err
	}
	s.view.RLock()
	defer s.view.RUnlock()
	if s.gone {
		return from, from, ErrClosed
	}
	id := b.seriesID(key)
	ref, ok := s.index.get(id)
	if !ok {
		return from, from, ctx.Err()
	}
	within := chunkRange{begin / chunk.Slots, (end-1)/chunk.Slots + 1}
	found := chunkRange{within.past, within.first} // nothing yet
	add := func(first, past int64) {
		found.first, found.past = min(found.first, max(first, within.first)), max(found.past, min(past, within.past))
	}
	err = s.segmentsOf(info.ID, id, within, func(seg *storedSegment) error {
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
	if g := s.groups.get(ref.group()); !ref.parked() && g != nil {
		for _, c := range g.Chunks(ref.column(), id, begin, end, nil) {
			add(c, c+1)
		}
	}
	if found.first >= found.past {
		return from, from, nil
	}
	return max(begin, found.first*chunk.Slots), min(end, found.past*chunk.Slots), nil
}
