package store

import (
	"bytes"
	"context"

	"dalmatiner/internal/buckets"
	"dalmatiner/internal/chunk"
	"dalmatiner/internal/head"
	"dalmatiner/internal/point"
	"dalmatiner/internal/reader"
	"dalmatiner/internal/series"
	"dalmatiner/internal/version"
)

// MaxRead is the largest number of slots of one Read.
const MaxRead = reader.MaxRead

// series returns what is to be read of a metric, as of now.
func (s *Store) series(info buckets.Info, key []byte) (*bucket, reader.Series, error) {
	b, err := s.buckets.Of(info)
	if err != nil {
		return nil, reader.Series{}, err
	}
	oldest, _ := s.admitted(b)
	return b, reader.Series{Bucket: b.info.ID, ID: b.seriesID(key), Oldest: int64(oldest)}, nil
}

// Read fills dst with the words of the metric's slots [from, from+len(dst)).
// Slots without a point, and all slots of an unknown metric, are unset (0).
// len(dst) is at most MaxRead.
func (s *Store) Read(ctx context.Context, info buckets.Info, key []byte, from int64, dst []uint64) error {
	_, of, err := s.series(info, key)
	if err != nil {
		return err
	}
	return s.reader.Read(ctx, of, from, dst, nil)
}

// ReadCounted is Read, and says what it took: slots decoded, and the bytes of
// their chunks in files. What is in memory is not decoded. It names the slots that are
// unset in dst because damage took what was there (reader.Stats.Unknown).
func (s *Store) ReadCounted(ctx context.Context, info buckets.Info, key []byte, from int64, dst []uint64) (st reader.Stats, err error) {
	_, of, err := s.series(info, key)
	if err != nil {
		return st, err
	}
	err = s.reader.Read(ctx, of, from, dst, &st)
	return st, err
}

// ReadOlder is ReadCounted, but where slots are unknown dst has what lies below what
// was lost: points that are intact and may have been overwritten.
func (s *Store) ReadOlder(ctx context.Context, info buckets.Info, key []byte, from int64, dst []uint64) (st reader.Stats, err error) {
	_, of, err := s.series(info, key)
	if err != nil {
		return st, err
	}
	err = s.reader.ReadOlder(ctx, of, from, dst, &st)
	return st, err
}

// ReadTimestamped is Read with the timestamps of the set slots in nanoseconds:
// those that came with the points, or the begin of the slot in a bucket without
// timestamps. len(timestamps) is that of values. A point whose timestamp is lost to damage
// is left out.
func (s *Store) ReadTimestamped(ctx context.Context, info buckets.Info, key []byte, from int64, values, timestamps []uint64) error {
	_, of, err := s.series(info, key)
	if err != nil {
		return err
	}
	if info.HPTS {
		err = s.reader.ReadPairs(ctx, of, from, values, timestamps)
	} else {
		clear(timestamps)
		err = s.reader.Read(ctx, of, from, values, nil)
	}
	for i, w := range values {
		if slot := uint64(from) + uint64(i); w != point.Unset {
			timestamps[i] = info.Timestamp(slot, timestamps[i])
		} else {
			timestamps[i] = 0
		}
	}
	return err
}

// Aggregate fills dst with the aggregates of the metric's slots, step by step, as
// reader.Reader.Aggregate does.
func (s *Store) Aggregate(ctx context.Context, info buckets.Info, key []byte, from, step int64, dst []chunk.Header) (reader.Stats, error) {
	_, of, err := s.series(info, key)
	if err != nil {
		return reader.Stats{}, err
	}
	return s.reader.Aggregate(ctx, of, from, step, dst)
}

// Extent returns the slots [first, past), inside [from, from+n), outside of which
// the metric certainly has no point: what is asked for beyond them costs nothing
// to answer. Of an unknown metric, and where nothing can be, first and past are
// both from. from is not negative.
func (s *Store) Extent(ctx context.Context, info buckets.Info, key []byte, from, n int64) (first, past int64, err error) {
	_, of, err := s.series(info, key)
	if err != nil {
		return from, from, err
	}
	return s.reader.Extent(ctx, of, from, n)
}

// Digest returns the digest of the words that reads give of a metric in the chunks
// [from, past) of its slots, in a bucket with timestamps of these too, as
// reader.Reader.Digest does. Copies of a series are compared by it.
func (s *Store) Digest(ctx context.Context, info buckets.Info, key []byte, from, past int64) (uint64, error) {
	b, of, err := s.series(info, key)
	if err != nil {
		return 0, err
	}
	return s.reader.Digest(ctx, of, b.info.HPTS, &b.incarnations, from, past)
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
