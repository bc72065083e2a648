package store

import (
	"bytes"
	"context"
	"fmt"

	"dalmatiner/internal/chunk"
	"dalmatiner/internal/head"
	"dalmatiner/internal/metric"
	"dalmatiner/internal/segment"
)

// MaxRead is the largest number of slots of one Read: it bounds how long a
// reader holds back the publication of a flush.
const MaxRead = 1 << 17

// Read fills dst with the words of the metric's slots [from, from+len(dst)).
// Slots without a point, and all slots of an unknown metric, are unset (0).
// len(dst) is at most MaxRead.
func (s *Store) Read(ctx context.Context, info BucketInfo, key []byte, from int64, dst []uint64) error {
	if len(dst) > MaxRead {
		return fmt.Errorf("a read of %d slots, the limit is %d", len(dst), MaxRead)
	}
	clear(dst)
	b := s.buckets.id(info.ID)
	if b == nil {
		return fmt.Errorf("%w %s", ErrUnknownBucket, metric.Quoted(info.Name))
	}
	if from < 0 {
		skip := -max(from, -int64(len(dst)))
		from, dst = from+skip, dst[skip:]
	}
	if lo, _ := s.admitted(b); from < int64(lo) {
		skip := min(int64(lo)-from, int64(len(dst))) // older than the TTL: hidden at once
		from, dst = from+skip, dst[skip:]
	}
	id := metric.Series(info.ID, key)
	ref, ok := s.index.get(id)
	if !ok || len(dst) == 0 || from > maxSlot {
		return ctx.Err()
	}
	s.view.RLock()
	defer s.view.RUnlock()
	if s.gone {
		return ErrClosed
	}
	if err := s.readSegments(ctx, info.ID, id, from, dst); err != nil {
		return err
	}
	g := s.groups.get(ref.group())
	if g == nil {
		return ctx.Err() // deleted a moment ago
	}
	return g.Read(ref.column(), from, dst)
}

// readSegments lays the chunks of all segments over dst, oldest first: of two
// that hold a slot the newer one wins.
func (s *Store) readSegments(ctx context.Context, bucket uint32, id metric.SeriesID, from int64, dst []uint64) error {
	first, last := from/chunk.Slots, (from+int64(len(dst))-1)/chunk.Slots
	for _, seg := range s.segments {
		if err := ctx.Err(); err != nil {
			return err
		}
		if seg.info.Chunks == 0 || first > seg.info.MaxChunk || last < seg.info.MinChunk {
			continue
		}
		err := seg.reader.Chunks(bucket, segment.Hash(id), first, last+1, func(number int64, data []byte) error {
			if err := head.DecodeChunk(dst, from, data, number); err != nil {
				s.reportDamage("segment "+seg.name(), seg.reader.Undecodable(segment.Hash(id), number, err))
			}
			return nil
		})
		if err != nil {
			damages := segment.Damages(err)
			if len(damages) == 0 {
				return fmt.Errorf("reading segment %s: %w", seg.name(), err)
			}
			for _, d := range damages {
				s.reportDamage("segment "+seg.name(), d)
			}
		}
	}
	return nil
}

// Metrics calls fn for every metric of the bucket whose key starts with
// prefix, in no particular order, until fn returns false. The key is valid
// during the call and must not be written to.
func (s *Store) Metrics(ctx context.Context, info BucketInfo, prefix []byte, fn func(key []byte) bool) error {
	b := s.buckets.id(info.ID)
	if b == nil {
		return fmt.Errorf("%w %s", ErrUnknownBucket, metric.Quoted(info.Name))
	}
	for _, g := range b.snapshot() {
		if err := ctx.Err(); err != nil {
			return err
		}
		cols := g.Columns()
		for col := range cols.Len() {
			if key := cols.Key(col); bytes.HasPrefix(key, prefix) && !fn(key) {
				return nil
			}
		}
	}
	return nil
}
