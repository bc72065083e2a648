package store

import (
	"bytes"
	"context"
	"slices"

	"dalmatiner/internal/head"
	"dalmatiner/internal/logrecord"
	"dalmatiner/internal/metric"
	"dalmatiner/internal/segment"
	"dalmatiner/internal/version"
	"dalmatiner/internal/window"
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
		err := seg.Reader.Hashes(r.Bucket, func(h segment.Hash) { m.expired[r.Bucket] = append(m.expired[r.Bucket], h) })
		if err := m.s.noteUnreadable(seg, err); err != nil {
			return err
		}
	}
	return nil
}

// idle returns all series of which the head holds nothing.
func (s *Store) idle() expiring {
	out := expiring{}
	for _, b := range s.buckets.All() {
		list := out[b.info.ID]
		for _, g := range b.snapshot() {
			held, cols := g.Held(), g.Columns()
			for col := range cols.Len() {
				if cols.Named(col) && !held.Has(col) {
					list = append(list, segment.Hash(cols.ID(col)))
				}
			}
		}
		_, names := b.names()
		names.Each(func(key []byte) bool {
			list = append(list, segment.Hash(b.seriesID(key)))
			return true
		})
		out[b.info.ID] = list
	}
	return out
}

// expire lets those of the series go of which neither a segment nor the head
// holds anything. mergeMu is held: only flushes add segments meanwhile.
// During a replay the head does not hold everything yet: nobody goes.
func (s *Store) expire(ctx context.Context, all expiring) error {
	if s.replayed.Load() != 0 {
		return nil
	}
	for id, hashes := range all {
		b := s.buckets.ID(id)
		if b == nil {
			continue
		}
		hashes = s.outsideHoles(b, s.unheld(hashes))
		segments := s.versions.Latest().Segments
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
		if err := s.forgetExpired(b, hashes, segments); err != nil {
			return err
		}
	}
	return nil
}

// unheld returns those of the series that are known and of which the head holds
// nothing, sorted.
func (s *Store) unheld(hashes []segment.Hash) []segment.Hash {
	slices.SortFunc(hashes, func(a, b segment.Hash) int { return bytes.Compare(a[:], b[:]) })
	hashes = slices.Compact(hashes)
	groups := make(map[uint32]head.Mask) // what they hold
	return slices.DeleteFunc(hashes, func(h segment.Hash) bool {
		ref, ok := s.index.Lookup(metric.SeriesID(h))
		if !ok || ref.Inactive() {
			return !ok
		}
		held, ok := groups[ref.Group()]
		if !ok {
			g := s.groups.Get(ref.Group())
			if g == nil {
				return true
			}
			held = g.Held()
			groups[ref.Group()] = held
		}
		return held.Has(ref.Column())
	})
}

// notIn returns the hashes of which a segment has no chunks. Of a damaged one
// nothing is known: none are left.
func notIn(seg *version.Segment, bucket uint64, hashes []segment.Hash) ([]segment.Hash, error) {
	if len(hashes) == 0 || seg.Info.Chunks == 0 {
		return hashes, nil
	}
	held := make([]bool, len(hashes))
	err := seg.Reader.Holding(bucket, hashes, func(i int) { held[i] = true })
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

// forgetExpired takes series out of a bucket that are in none of the segments
// looked at, nor in those that flushes have added since, nor in the head.
func (s *Store) forgetExpired(b *bucket, hashes []segment.Hash, looked []*version.Segment) error {
	s.flushMu.Lock()
	defer s.flushMu.Unlock()
	now := s.versions.Latest().Segments
	var err error
	for _, seg := range now {
		if !slices.Contains(looked, seg) {
			if hashes, err = notIn(seg, b.info.ID, hashes); err != nil {
				return err
			}
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.deleted || s.flushMu.Closed() {
		return nil
	}
	ids := make([]metric.SeriesID, len(hashes))
	for i, h := range hashes {
		ids[i] = metric.SeriesID(h)
	}
	f := forgetting{b: b, why: logrecord.Expired}
	err = s.forgetAll(&f, ids)
	s.counters.seriesGone.Add(int64(len(f.list)))
	return err
}
