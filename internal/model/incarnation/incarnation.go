// Package incarnation tells a series from an earlier one of the same name, which was
// deleted. The incarnation of a series is the clock of its last deletion, or 0 when none
// is remembered. Points of a lower incarnation were deleted, wherever they turn up.
package incarnation

import (
	"iter"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"dalmatiner/internal/model/metric"
)

// TTL is how long a deletion is remembered at least, also when nothing of the
// series is left anywhere: so old may a copy be from which it could come back.
const TTL = 30 * 24 * time.Hour

// step is how far the end of the memory moves at a time.
const step = time.Hour

// Next returns the clock of a deletion that comes behind the one before: nanoseconds
// since 1970, or one more than before where the wall clock was set back.
func Next(before uint64, now time.Time) uint64 {
	return max(before+1, uint64(max(now.UnixNano(), 0)))
}

// ExpiredUpTo returns up to which clock deletions need not be remembered any more.
func ExpiredUpTo(now time.Time) uint64 {
	return uint64(max(now.Add(-TTL).UnixNano()/int64(step)*int64(step), 0))
}

// entrySize is what an entry of a map takes, with its share of free ones.
const entrySize = 48

// Set is the incarnations of the series of a bucket that are not 0: few. Its methods
// may be called by many goroutines; the zero value is empty. An incarnation never
// falls before it is forgotten.
type Set struct {
	mu sync.RWMutex
	of map[metric.SeriesID]uint64
}

// Get returns the incarnation of a series.
func (s *Set) Get(id metric.SeriesID) uint64 {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.of[id]
}

// All returns the series of the set and their incarnations, as they are at the call, in no
// particular order.
func (s *Set) All() iter.Seq2[metric.SeriesID, uint64] {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return maps.All(maps.Clone(s.of))
}

// Raise notes an incarnation of a series, if it is higher than the one known.
func (s *Set) Raise(id metric.SeriesID, incarnation uint64) {
	if incarnation == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.of == nil {
		s.of = make(map[metric.SeriesID]uint64)
	}
	s.of[id] = max(s.of[id], incarnation)
}

// Forget drops the incarnations up to a clock, but those of series that are kept.
func (s *Set) Forget(upTo uint64, kept func(metric.SeriesID) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, n := range s.of {
		if n <= upTo && !kept(id) {
			delete(s.of, id)
		}
	}
}

// Len returns how many series have an incarnation that is not 0.
func (s *Set) Len() int64 {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return int64(len(s.of))
}

// Bytes returns the memory of the set.
func (s *Set) Bytes() int64 { return s.Len() * entrySize }

// Clock is the clock of the deletions of a node. Its methods may be called concurrently;
// the zero value knows of none.
type Clock struct {
	last      atomic.Uint64 // the highest that is known of any series
	forgotten atomic.Uint64 // deletions up to it are
}

// Next returns the clock of a part of a deletion. of is that of the part before, 0 for the
// first: all have the same, so that it does not matter where a deletion is cut, unless
// another one came in between. One caller at a time may ask.
func (c *Clock) Next(of uint64, now time.Time) uint64 {
	if last := c.last.Load(); of == 0 || of != last {
		of = Next(last, now)
		c.Advance(of)
	}
	return of
}

// Advance makes later deletions have a higher clock.
func (c *Clock) Advance(n uint64) {
	for {
		last := c.last.Load()
		if n <= last || c.last.CompareAndSwap(last, n) {
			return
		}
	}
}

// Highest returns the highest clock that is known.
func (c *Clock) Highest() uint64 { return c.last.Load() }

// Forget notes that deletions up to a clock are forgotten, and reports whether it is
// news. One caller at a time does so.
func (c *Clock) Forget(upTo uint64) bool {
	if upTo <= c.forgotten.Load() {
		return false
	}
	c.forgotten.Store(upTo)
	return true
}

// ForgottenUpTo returns up to which clock deletions are forgotten.
func (c *Clock) ForgottenUpTo() uint64 { return c.forgotten.Load() }
