package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"dalmatiner/internal/buckets"
	"dalmatiner/internal/chunk"
	"dalmatiner/internal/head"
	"dalmatiner/internal/point"
	"dalmatiner/internal/series"
	"dalmatiner/internal/version"
)

// MaxRead is the largest number of slots of one Read: it bounds what one keeps in
// memory, and for how long files that are merged away.
const MaxRead = 1 << 17

// Read fills dst with the words of the metric's slots [from, from+len(dst)).
// Slots without a point, and all slots of an unknown metric, are unset (0).
// len(dst) is at most MaxRead.
func (s *Store) Read(ctx context.Context, info buckets.Info, key []byte, from int64, dst []uint64) error {
	return s.read(ctx, info, key, from, dst, reading{})
}

// ReadCounted is Read, and says what it took: slots decoded, and the bytes of
// their chunks in files. What is in memory is not decoded. It names the slots that are
// unset in dst because damage took what was there (AggregateStats.Unknown).
func (s *Store) ReadCounted(ctx context.Context, info buckets.Info, key []byte, from int64, dst []uint64) (AggregateStats, error) {
	var st AggregateStats
	err := s.read(ctx, info, key, from, dst, reading{stats: &st})
	return st, err
}

// ReadOlder is ReadCounted, but where slots are unknown dst has what lies below what
// was lost: points that are intact and may have been overwritten.
func (s *Store) ReadOlder(ctx context.Context, info buckets.Info, key []byte, from int64, dst []uint64) (AggregateStats, error) {
	st, err := s.ReadCounted(ctx, info, key, from, dst)
	if err == nil && len(st.Unknown) > 0 {
		err = s.read(ctx, info, key, from, dst, reading{older: true})
	}
	return st, err
}

// reading says how a read reads.
type reading struct {
	timestamps []uint64        // takes the words of the timestamps, unless it is nil
	stats      *AggregateStats // takes what it took, likewise
	older      bool            // shows what lies below what was lost
}

// read is Read, as it is told.
func (s *Store) read(ctx context.Context, info buckets.Info, key []byte, from int64, dst []uint64, how reading) error {
	if len(dst) > MaxRead {
		return fmt.Errorf("a read of %d slots, the limit is %d", len(dst), MaxRead)
	}
	clear(dst)
	b, err := s.buckets.Of(info)
	if err != nil {
		return err
	}
	skip := int64(0)
	if from < 0 {
		skip = -max(from, -int64(len(dst)))
	}
	if lo, _ := s.admitted(b); skip < int64(len(dst)) && from+skip < int64(lo) {
		skip = min(int64(lo)-from, int64(len(dst))) // older than the TTL: hidden at once
	}
	from, dst = from+skip, dst[skip:]
	timestamps := how.timestamps
	if timestamps != nil {
		timestamps = timestamps[skip:]
	}
	if len(dst) == 0 || from > buckets.MaxSlot {
		return ctx.Err()
	}
	if err := s.bringSeries(ctx, b, key); err != nil {
		return err
	}
	r, err := s.enter()
	if err != nil {
		return err
	}
	defer r.leave()
	id := b.seriesID(key)
	known, err := r.look(ctx, id, func(g *head.Group, col int) (bool, error) {
		return r.copyHead(g, col, id, from, int64(len(dst)), timestamps != nil)
	})
	if err != nil || !known {
		return errors.Join(err, ctx.Err())
	}
	l := laying{s: s, version: r.version, bucket: info.ID, id: id, from: from, stats: how.stats, older: how.older}
	if timestamps == nil {
		err = l.segments(ctx, dst)
	} else {
		err = l.pairs(ctx, dst, timestamps)
	}
	r.layHead(from, dst, timestamps)
	l.end(dst)
	for i := range timestamps {
		if dst[i] == point.Unset {
			timestamps[i] = point.Unset // one of a value that is lost
		}
	}
	return errors.Join(err, ctx.Err())
}

// slotRange is the chunks of the slots from from on that dst stands for.
func slotRange(from int64, dst []uint64) version.Chunks {
	return version.Chunks{First: from / chunk.Slots, Past: (from+int64(len(dst))-1)/chunk.Slots + 1}
}

// noteUnreadable takes what a method of a segment's reader returned: damage is
// named and counted, and what it hit is left out (I5).
func (s *Store) noteUnreadable(seg *version.Segment, err error) error {
	return s.damage.Unreadable(seg, err)
}

// Metrics calls fn for every metric of the bucket whose key starts with
// prefix, in no particular order, until fn returns false. The key is valid
// during the call and must not be written to.
func (s *Store) Metrics(ctx context.Context, info buckets.Info, prefix []byte, fn func(key []byte) bool) error {
	b, err := s.buckets.Of(info)
	if err != nil {
		return err
	}
	columns, names := b.names()
	for _, cols := range columns {
		if err := ctx.Err(); err != nil {
			return err
		}
		for col := 0; col < cols.Len(); col += b.width() {
			if cols.Has(col) && bytes.HasPrefix(cols.Key(col), prefix) && !fn(cols.Key(col)) {
				return nil
			}
		}
	}
	names.Each(func(key []byte) bool {
		return ctx.Err() == nil && (!bytes.HasPrefix(key, prefix) || fn(key))
	})
	return ctx.Err()
}

// HasMetric reports whether the bucket has a series of that metric, with points
// or not.
func (s *Store) HasMetric(info buckets.Info, key []byte) (bool, error) {
	b, err := s.buckets.Of(info)
	if err != nil {
		return false, err
	}
	_, ok := s.index.Lookup(b.seriesID(key))
	return ok, nil
}

// names returns views of all names at one moment, in which every series is once.
func (b *bucket) names() ([]*head.Columns, series.InactiveView) {
	b.mu.Lock()
	defer b.mu.Unlock()
	columns := make([]*head.Columns, len(b.groups))
	for i, g := range b.groups {
		columns[i] = g.Columns()
	}
	return columns, b.inactive.View()
}
