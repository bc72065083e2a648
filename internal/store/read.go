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
	return s.read(ctx, info, key, from, dst, nil)
}

// read is Read, with the words of the stamps where stamps is not nil.
func (s *Store) read(ctx context.Context, info BucketInfo, key []byte, from int64, dst, stamps []uint64) error {
	if len(dst) > MaxRead {
		return fmt.Errorf("a read of %d slots, the limit is %d", len(dst), MaxRead)
	}
	clear(dst)
	b := s.buckets.id(info.ID)
	if b == nil {
		return fmt.Errorf("%w %s", ErrUnknownBucket, metric.Quoted(info.Name))
	}
	skip := int64(0)
	if from < 0 {
		skip = -max(from, -int64(len(dst)))
	}
	if lo, _ := s.admitted(b); skip < int64(len(dst)) && from+skip < int64(lo) {
		skip = min(int64(lo)-from, int64(len(dst))) // older than the TTL: hidden at once
	}
	from, dst = from+skip, dst[skip:]
	if stamps != nil {
		stamps = stamps[skip:]
	}
	id := b.seriesID(key)
	ref, ok := s.index.get(id)
	if !ok || len(dst) == 0 || from > maxSlot {
		return ctx.Err()
	}
	s.view.RLock()
	defer s.view.RUnlock()
	if s.gone {
		return ErrClosed
	}
	var err error
	if stamps == nil {
		err = s.readSegments(ctx, info.ID, id, from, dst)
	} else {
		err = s.readPairs(ctx, info.ID, id, from, dst, stamps)
	}
	if err != nil {
		return err
	}
	g := s.groups.get(ref.group())
	switch {
	case g == nil:
		return ctx.Err() // deleted a moment ago
	case stamps == nil:
		return g.Read(ref.column(), from, dst)
	default:
		return g.ReadPair(ref.column(), from, dst, stamps)
	}
}

// readSegments lays the chunks of all segments over dst, oldest first: of two
// that hold a slot the newer one wins.
func (s *Store) readSegments(ctx context.Context, bucket uint32, id metric.SeriesID, from int64, dst []uint64) error {
	for _, seg := range s.segments {
		if err := ctx.Err(); err != nil {
			return err
		}
		if _, err := s.readSegment(seg, bucket, id, from, dst); err != nil {
			return err
		}
	}
	return nil
}

// readSegment lays what a segment holds of a series over dst, and says whether
// that was anything.
func (s *Store) readSegment(seg *storedSegment, bucket uint32, id metric.SeriesID, from int64, dst []uint64) (found bool, err error) {
	first, last := from/chunk.Slots, (from+int64(len(dst))-1)/chunk.Slots
	if seg.info.Chunks == 0 || first > seg.info.MaxChunk || last < seg.info.MinChunk {
		return false, nil
	}
	err = seg.reader.Chunks(bucket, segment.Hash(id), first, last+1, func(number int64, data []byte) error {
		found = true
		if err := head.DecodeChunk(dst, from, data, number); err != nil {
			s.reportDamage("segment "+seg.name(), seg.reader.Undecodable(segment.Hash(id), number, err))
		}
		return nil
	})
	if err != nil {
		damages := segment.Damages(err)
		if len(damages) == 0 {
			return found, fmt.Errorf("reading segment %s: %w", seg.name(), err)
		}
		for _, d := range damages {
			s.reportDamage("segment "+seg.name(), d)
		}
	}
	return found, nil
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
		for col := 0; col < cols.Len(); col += b.width() {
			if key := cols.Key(col); bytes.HasPrefix(key, prefix) && !fn(key) {
				return nil
			}
		}
	}
	return nil
}
