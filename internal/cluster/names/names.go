// Package names keeps the names of series that nodes speak of: rows between nodes carry ids
// only, and who stores a row of a new series needs its bucket and key.
package names

import (
	"sync"
	"sync/atomic"
	"time"

	"dalmatiner/internal/model/metric"
)

const (
	// Kept is how long a name stays at least after it was noted or looked up last, whatever the
	// limit is.
	Kept = time.Minute

	// PeriodLength is that of Registry.Period.
	PeriodLength = 15 * time.Second

	// kept is Kept for those who use a name once a period.
	kept = int64(Kept + PeriodLength)

	shards = 64 // a power of two
)

// Fallback says what the store knows of a series. Where only the bucket is known, as of a series
// that was deleted, it returns that and false; a bucket's id is never 0.
type Fallback func(id metric.SeriesID) (bucket uint64, key []byte, ok bool)

// Registry holds names by the ids of series; in buckets with timestamps by those of values. Its
// methods may be called concurrently.
type Registry struct {
	fallback Fallback
	steady   func() int64
	began    int64
	limit    int64 // of a shard, in bytes
	bytes    atomic.Int64
	epochs   atomic.Uint64
	shards   [shards]shard
}

// New returns an empty registry. limit is in bytes, with all that a name takes in memory, so it
// bounds the number of names as well. Names that were used within Kept stay beyond it. steady is
// a clock in nanoseconds that never steps back. fallback is asked for what is not here; it may be
// called concurrently.
func New(fallback Fallback, limit int, steady func() int64) *Registry {
	r := &Registry{fallback: fallback, steady: steady, began: steady(), limit: int64(limit) / shards}
	for i := range r.shards {
		r.shards[i].began = r.began
	}
	return r
}

// Note keeps the name of a series. It copies the key, and returns the copy, which never changes. A
// key that no metric can have is passed over.
func (r *Registry) Note(id metric.SeriesID, bucket uint64, key []byte) (kept []byte) {
	if len(key) > metric.MaxKey {
		return nil
	}
	return r.note(id, name{bucket: bucket, key: key, named: true}).key
}

// NoteBucket keeps the bucket of a series whose name nobody may know: of one that was deleted.
func (r *Registry) NoteBucket(id metric.SeriesID, bucket uint64) {
	r.note(id, name{bucket: bucket})
}

// Lookup returns the bucket and the key of a series. The key is the registry's: it never changes.
func (r *Registry) Lookup(id metric.SeriesID) (bucket uint64, key []byte, ok bool) {
	n, ok := r.find(id)
	if ok && n.named {
		return n.bucket, n.key, true
	}
	if bucket, key, ok = r.fallback(id); !ok || len(key) > metric.MaxKey {
		return 0, nil, false
	}
	n = r.note(id, name{bucket: bucket, key: key, named: true})
	return n.bucket, n.key, true
}

// Bucket returns the bucket of a series, also where no key is known.
func (r *Registry) Bucket(id metric.SeriesID) (bucket uint64, ok bool) {
	if n, ok := r.find(id); ok {
		return n.bucket, true
	}
	bucket, key, named := r.fallback(id)
	if bucket == 0 || len(key) > metric.MaxKey {
		return 0, false
	}
	return r.note(id, name{bucket: bucket, key: key, named: named}).bucket, true
}

// Bytes returns the memory that the names take.
func (r *Registry) Bytes() int64 { return r.bytes.Load() }

// NewEpoch returns a number that it has not returned before, from 1. Tables that are made from
// these names for other nodes are told apart by it, also those for a peer that was forgotten.
func (r *Registry) NewEpoch() uint64 { return r.epochs.Add(1) }

// Period returns a number that rises every PeriodLength. Who looks a name up once in a period in
// which it is used, and not again, still finds it for Kept after each use.
func (r *Registry) Period() uint32 { return uint32((r.steady()-r.began)/int64(PeriodLength)) + 1 }

// find returns a name that is here.
func (r *Registry) find(id metric.SeriesID) (name, bool) {
	s := r.shard(id)
	s.mu.RLock()
	n, ok := s.young.find(id)
	due := s.isDue(r)
	s.mu.RUnlock()
	if ok && !due {
		return n, true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.take(r, id)
}

// note keeps a name, and returns what is kept. Nothing is known better than a key.
func (r *Registry) note(id metric.SeriesID, n name) name {
	if here, ok := r.find(id); ok && (here.named || !n.named) {
		return here
	}
	s := r.shard(id)
	s.mu.Lock()
	defer s.mu.Unlock()
	if here, ok := s.take(r, id); ok && (here.named || !n.named) {
		return here
	}
	return s.put(r, id, n)
}

// shard returns the shard of a series: by bits of the hash that choose no partition.
func (r *Registry) shard(id metric.SeriesID) *shard { return &r.shards[id[8]%shards] }

// shard is a part of the names with a lock of its own. Names that are used are in the young
// generation, or move there. When memory is over the limit, the old one goes, and the young one
// takes its place, once that is older than names are kept: so all that goes was not used since.
type shard struct {
	mu         sync.RWMutex
	young, old generation
	began      int64 // when young was empty
	_          [64]byte
}

// isDue reports whether the old generation is to go.
func (s *shard) isDue(r *Registry) bool {
	return s.young.bytes+s.old.bytes > r.limit && r.steady()-s.began >= kept
}

// take returns a name, which is young from now on.
func (s *shard) take(r *Registry, id metric.SeriesID) (name, bool) {
	if s.isDue(r) {
		r.bytes.Add(-s.old.bytes)
		s.old, s.young = s.young, generation{}
		s.began = r.steady()
	}
	n, ok := s.young.find(id)
	if !ok {
		if n, ok = s.old.find(id); ok {
			n = s.put(r, id, n)
		}
	}
	return n, ok
}

func (s *shard) put(r *Registry, id metric.SeriesID, n name) name {
	before := s.young.bytes
	n = s.young.put(id, n)
	r.bytes.Add(s.young.bytes - before)
	return n
}
