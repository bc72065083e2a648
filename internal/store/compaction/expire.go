package compaction

import (
	"bytes"
	"context"
	"math"
	"slices"
	"time"

	"dalmatiner/internal/disk/hole"
	"dalmatiner/internal/disk/segment"
	"dalmatiner/internal/disk/version"
	"dalmatiner/internal/disk/window"
	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/model/metric"
)

// expiring are the series of which a merge drops chunks that have expired, by
// bucket.
type expiring map[uint64][]segment.Hash

// noteExpired collects the series of a segment that goes away with ranges below
// the lifetime of their bucket.
func (m *merging) noteExpired(seg *version.Segment) error {
	seen := map[uint64]bool{}
	for _, r := range seg.Meta.Ranges {
		b, ok := m.buckets[r.Bucket]
		if !ok || seen[r.Bucket] || r.First-r.First%window.Small+window.Small > b.ExpiredBefore {
			continue
		}
		seen[r.Bucket] = true
		err := seg.Reader.Hashes(r.Bucket, func(h segment.Hash) {
			m.expired[r.Bucket] = append(m.expired[r.Bucket], h)
		})
		if err := m.c.o.Damage.NoteReadError(seg, err); err != nil {
			return err
		}
	}
	return nil
}

// idle returns all series of which the head holds nothing.
func (c *Compactor) idle() expiring {
	out := expiring{}
	for _, b := range c.o.Buckets.Buckets() {
		out[b.ID] = c.o.Series.Idle(b.ID)
	}
	return out
}

// expire lets those of the series go of which neither a segment nor the head
// holds anything. The caller has mu: only flushes add segments meanwhile.
func (c *Compactor) expire(ctx context.Context, all expiring) error {
	for id, hashes := range all {
		b, ok := c.o.Buckets.BucketByID(id)
		if !ok {
			continue
		}
		slices.SortFunc(hashes, func(a, b segment.Hash) int { return bytes.Compare(a[:], b[:]) })
		hashes = c.outsideHoles(&b, c.o.Series.Unheld(slices.Compact(hashes)))
		segments := c.o.Versions.Latest().Segments
		for _, seg := range slices.Backward(segments) { // those that live on are in the newest
			if err := ctx.Err(); err != nil {
				return err
			}
			var err error
			if hashes, err = notIn(seg, id, hashes); err != nil {
				return err
			}
		}
		if len(hashes) == 0 {
			continue
		}
		if err := c.drop(id, hashes, segments); err != nil {
			return err
		}
	}
	return nil
}

// outsideHoles returns the series that no hole hides a living slot of: of others it is
// not known whether they have points.
func (c *Compactor) outsideHoles(b *buckets.Info, hashes []segment.Hash) []segment.Hash {
	set := c.holesOf(b.ID)
	if set == nil {
		return hashes
	}
	lo := c.oldest(b)
	return slices.DeleteFunc(hashes, func(h segment.Hash) bool {
		return len(set.Spans(nil, hole.PrefixOf(h), lo, math.MaxInt64)) > 0
	})
}

// oldest returns the first slot of a bucket that is not older than its lifetime.
func (c *Compactor) oldest(b *buckets.Info) int64 {
	if b.TTL <= 0 {
		return 0
	}
	return max(c.o.Clock.Unix()/int64(time.Millisecond)/b.Resolution-b.TTL, 0)
}

// notIn returns the hashes of which a segment has no chunks. Of a damaged one
// nothing is known: none are left.
func notIn(seg *version.Segment, bucket uint64, hashes []segment.Hash) ([]segment.Hash, error) {
	if len(hashes) == 0 || seg.Info.Chunks == 0 {
		return hashes, nil
	}
	held := make([]bool, len(hashes))
	err := seg.Reader.EachHolding(bucket, hashes, func(i int) { held[i] = true })
	if segment.IsDamage(err) {
		return nil, nil
	}
	left := hashes[:0]
	for i, h := range hashes {
		if !held[i] {
			left = append(left, h)
		}
	}
	return left, err
}

// drop takes series out of a bucket that are in none of the segments
// looked at, nor in those that flushes have added since, nor in the head.
func (c *Compactor) drop(bucket uint64, hashes []segment.Hash, looked []*version.Segment) error {
	c.o.Gate.Lock()
	defer c.o.Gate.Unlock()
	var err error
	for _, seg := range c.o.Versions.Latest().Segments {
		if !slices.Contains(looked, seg) {
			if hashes, err = notIn(seg, bucket, hashes); err != nil {
				return err
			}
		}
	}
	if c.o.Gate.IsClosed() {
		return nil
	}
	ids := make([]metric.SeriesID, len(hashes))
	for i, h := range hashes {
		ids[i] = metric.SeriesID(h)
	}
	return c.o.Series.Drop(bucket, ids)
}
