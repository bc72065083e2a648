package store

import (
	"bytes"
	"context"

	"dalmatiner/internal/codec/chunk"
	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/model/metric"
	"dalmatiner/internal/store/reader"
	"dalmatiner/internal/write/columns"
)

// Bucket is a handle of a bucket that is read. It is checked at each use: behind the deletion
// of the bucket its calls, and those of its series, fail with an error that wraps
// buckets.ErrUnknown, whether or not there is another one of its name.
type Bucket struct {
	s *Store
	b *columns.Bucket
}

// Bucket returns a handle of a bucket, or an error that wraps buckets.ErrUnknown.
func (s *Store) Bucket(name string) (Bucket, error) {
	b, err := s.buckets.ByName(name)
	return Bucket{s, b}, err
}

// handle returns a handle of a bucket that was known before.
func (s *Store) handle(info buckets.Info) Bucket {
	b := s.buckets.ID(info.ID)
	if b == nil {
		b = columns.NewBucket(info, 0, nil) // which is not there, as each use finds
	}
	return Bucket{s, b}
}

// Info returns the properties of the bucket.
func (h Bucket) Info() buckets.Info { return h.b.Info() }

// check finds out whether the bucket is still there.
func (h Bucket) check() error {
	if h.s.buckets.ID(h.b.ID) != h.b {
		return buckets.UnknownError(h.b.Name)
	}
	return nil
}

// Series returns a handle of a metric, whether or not there is one. It does not keep key.
func (h Bucket) Series(key []byte) Series { return Series{of: h, id: h.b.SeriesID(key)} }

// Have sets has[i] where metric i certainly has a point in the slots [from, past), in memory or in
// a file. It is cheap, and says nothing of the others.
func (h Bucket) Have(ctx context.Context, keys [][]byte, from, past int64, has []bool) error {
	if err := h.check(); err != nil {
		return err
	}
	ids := make([]metric.SeriesID, len(keys))
	for i, key := range keys {
		ids[i] = h.b.SeriesID(key)
	}
	oldest, _ := h.s.columns.AdmittedSlots(h.b)
	from = max(from, int64(oldest))
	if err := h.s.reader.InHead(ids, from, past, has); err != nil {
		return err
	}
	return h.s.reader.InSegments(ctx, h.b.ID, ids, from, past, has)
}

// Metrics calls fn for every metric of the bucket whose key starts with
// prefix, in no particular order, until fn returns false. The key is valid
// during the call and must not be written to.
func (h Bucket) Metrics(ctx context.Context, prefix []byte, fn func(key []byte) bool) error {
	if err := h.check(); err != nil {
		return err
	}
	columns, names := h.b.Names()
	for _, cols := range columns {
		if err := ctx.Err(); err != nil {
			return err
		}
		begin := cols.Begin() // of a sender's series often more than the prefix
		n := min(len(begin), len(prefix))
		if string(begin[:n]) != string(prefix[:n]) {
			continue
		}
		rest := prefix[n:]
		for col := 0; col < cols.Len(); col += h.b.Width() {
			if cols.HasName(col) && bytes.HasPrefix(cols.Key(col)[n:], rest) && !fn(cols.Key(col)) {
				return nil
			}
		}
	}
	names.Each(func(key []byte) bool {
		return ctx.Err() == nil && (!bytes.HasPrefix(key, prefix) || fn(key))
	})
	return ctx.Err()
}

// Series is a handle of a metric: the id of its series, and where the store had the bucket.
// Both are checked at each use. Several goroutines may use it at once.
type Series struct {
	of    Bucket
	id    metric.SeriesID
	stale bool
}

// Series returns a handle of a metric of a bucket that was known before.
func (s *Store) Series(info buckets.Info, key []byte) Series { return s.handle(info).Series(key) }

// WithStale returns a handle whose reads of words show stale markers, which are unset in those
// of others.
func (h Series) WithStale() Series {
	h.stale = true
	return h
}

// now returns what is to be read.
func (h Series) now() (reader.Series, error) {
	if err := h.of.check(); err != nil {
		return reader.Series{}, err
	}
	oldest, _ := h.of.s.columns.AdmittedSlots(h.of.b)
	return reader.Series{Bucket: h.of.b.ID, ID: h.id, Oldest: int64(oldest), Stale: h.stale}, nil
}

// Exists reports whether the bucket has a series of that metric, with points or not.
func (h Series) Exists() (bool, error) {
	if err := h.of.check(); err != nil {
		return false, err
	}
	return h.of.s.columns.Index.Has(h.id), nil
}

// Read fills dst with the words of the slots [from, from+len(dst)).
// Slots without a point, and all slots of an unknown metric, are unset (0).
// len(dst) is at most reader.MaxRead.
func (h Series) Read(ctx context.Context, from int64, dst []uint64) error {
	of, err := h.now()
	if err != nil {
		return err
	}
	return h.of.s.reader.Read(ctx, of, from, dst, nil)
}

// ReadCounted is Read, and says what it took: slots decoded, and the bytes of
// their chunks in files. What is in memory is not decoded. It names the slots that are
// unset in dst because damage took what was there (reader.Stats.Unknown).
func (h Series) ReadCounted(ctx context.Context, from int64,
	dst []uint64) (st reader.Stats, err error) {
	of, err := h.now()
	if err == nil {
		err = h.of.s.reader.Read(ctx, of, from, dst, &st)
	}
	return st, err
}

// ReadOlder is ReadCounted, but where slots are unknown dst has what lies below what
// was lost: points that are intact and may have been overwritten.
func (h Series) ReadOlder(ctx context.Context, from int64,
	dst []uint64) (st reader.Stats, err error) {
	of, err := h.now()
	if err == nil {
		err = h.of.s.reader.ReadOlder(ctx, of, from, dst, &st)
	}
	return st, err
}

// ReadTimestamped is Read with the timestamps of the set slots in nanoseconds: those that came with
// the points, or the begin of the slot in a bucket without timestamps, and of a stale marker.
// len(timestamps) is that of values. A point whose timestamp is lost to damage is left out.
func (h Series) ReadTimestamped(ctx context.Context, from int64, values,
	timestamps []uint64) error {
	of, err := h.now()
	if err != nil {
		return err
	}
	info := h.of.b.Info()
	if info.HPTS {
		err = h.of.s.reader.ReadPairs(ctx, of, from, values, timestamps)
	} else {
		clear(timestamps)
		err = h.of.s.reader.Read(ctx, of, from, values, nil)
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

// Aggregate fills dst with the aggregates of the slots, step by step, as
// reader.Reader.Aggregate does.
func (h Series) Aggregate(ctx context.Context, from, step int64,
	dst []chunk.Header) (reader.Stats, error) {
	of, err := h.now()
	if err != nil {
		return reader.Stats{}, err
	}
	return h.of.s.reader.Aggregate(ctx, of, from, step, dst)
}

// AggregateEach is Series.Aggregate for series one after the other, as
// reader.Reader.AggregateEach does it.
func (s *Store) AggregateEach(ctx context.Context, list []Series, from, step int64,
	dst []chunk.Header, each func(i int, st reader.Stats, err error) error) error {
	all := make([]reader.Series, len(list))
	for i, h := range list {
		of, err := h.now()
		if err != nil {
			return each(i, reader.Stats{}, err)
		}
		all[i] = of
	}
	return s.reader.AggregateEach(ctx, all, from, step, dst, each)
}

// Extent returns the slots [first, past), inside [from, from+n), outside of which
// the metric certainly has no point: what is asked for beyond them costs nothing
// to answer. Of an unknown metric, and where nothing can be, first and past are
// both from. from is not negative.
func (h Series) Extent(ctx context.Context, from, n int64) (first, past int64, err error) {
	of, err := h.now()
	if err != nil {
		return from, from, err
	}
	return h.of.s.reader.Extent(ctx, of, from, n)
}

// Digest returns the digest of the words that reads give in the chunks
// [from, past) of the slots, in a bucket with timestamps of these too, as
// reader.Reader.Digest does. Copies of a series are compared by it.
func (h Series) Digest(ctx context.Context, from, past int64) (uint64, error) {
	d, _, err := h.DigestCounted(ctx, from, past)
	return d, err
}

// DigestCounted is Digest, and says what it took. It names the slots that are unknown, as an
// aggregate of all of them does.
func (h Series) DigestCounted(ctx context.Context, from, past int64) (uint64, reader.Stats, error) {
	of, err := h.now()
	if err != nil {
		return 0, reader.Stats{}, err
	}
	return h.of.s.reader.Digest(ctx, of, h.of.b.HPTS, &h.of.b.Incarnations, from, past)
}

// Read is Series.Read for a protocol that names bucket and metric in each request.
func (s *Store) Read(ctx context.Context, info buckets.Info, key []byte, from int64,
	dst []uint64) error {
	return s.Series(info, key).Read(ctx, from, dst)
}

// ReadTimestamped is Series.ReadTimestamped, likewise.
func (s *Store) ReadTimestamped(ctx context.Context, info buckets.Info, key []byte, from int64,
	values, timestamps []uint64) error {
	return s.Series(info, key).ReadTimestamped(ctx, from, values, timestamps)
}

// ReadWithStale is Read, or ReadTimestamped where timestamps is not nil, with stale markers.
func (s *Store) ReadWithStale(ctx context.Context, info buckets.Info, key []byte, from int64,
	values, timestamps []uint64) error {
	h := s.Series(info, key).WithStale()
	if timestamps == nil {
		return h.Read(ctx, from, values)
	}
	return h.ReadTimestamped(ctx, from, values, timestamps)
}

// Extent is Series.Extent, likewise.
func (s *Store) Extent(ctx context.Context, info buckets.Info, key []byte, from, n int64) (first,
	past int64, err error) {
	return s.Series(info, key).Extent(ctx, from, n)
}

// Metrics is Bucket.Metrics, likewise.
func (s *Store) Metrics(ctx context.Context, info buckets.Info, prefix []byte,
	fn func(key []byte) bool) error {
	return s.handle(info).Metrics(ctx, prefix, fn)
}
