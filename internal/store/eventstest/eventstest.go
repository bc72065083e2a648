// Package eventstest is for tests: a store of events in memory, without the care of the real one.
package eventstest

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"sync"
	"time"

	"dalmatiner/internal/model/account"
	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/store/events"
)

// Store is an events.Store whose buckets are there once they are written to. Gaps is what every
// read says.
type Store struct {
	Gaps []events.Gap

	mu   sync.Mutex
	next uint64
	all  map[string][]events.Event
}

// Write keeps copies of the events.
func (s *Store) Write(bucket string, list []events.Event) (events.Written, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all == nil {
		s.all = make(map[string][]events.Event)
	}
	for i := range list {
		e := &list[i]
		if e.Time == 0 {
			e.Time = time.Now().UnixNano()
		}
		if e.ID == (events.ID{}) {
			s.next++
			binary.BigEndian.PutUint64(e.ID[8:], s.next)
		}
		s.all[bucket] = append(s.all[bucket], events.Event{
			Time: e.Time,
			ID:   e.ID,
			Body: bytes.Clone(e.Body),
		})
	}
	slices.SortFunc(s.all[bucket], func(a, b events.Event) int {
		return cmp.Or(cmp.Compare(a.Time, b.Time), bytes.Compare(a.ID[:], b.ID[:]))
	})
	return events.Written{Counts: account.Counts{Accepted: uint64(len(list))}}, nil
}

// Read gives the events of a range.
func (s *Store) Read(ctx context.Context, bucket string, start, end int64,
	fn func(*events.Event) error) ([]events.Gap, error) {
	s.mu.Lock()
	list, ok := s.all[bucket]
	list = slices.Clone(list)
	s.mu.Unlock()
	if !ok {
		return nil, fmt.Errorf("bucket %s: %w", bucket, buckets.ErrUnknown)
	}
	for i := range list {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if e := &list[i]; e.Time >= start && e.Time < end {
			if err := fn(e); err == events.Stop {
				break
			} else if err != nil {
				return nil, err
			}
		}
	}
	return s.Gaps, nil
}

// ReadBack gives the events of a range, the newest first.
func (s *Store) ReadBack(ctx context.Context, bucket string, start, end int64,
	fn func(*events.Event) error) ([]events.Gap, error) {
	var list []events.Event
	gaps, err := s.Read(ctx, bucket, start, end, func(e *events.Event) error {
		list = append(list, *e)
		return nil
	})
	for i := len(list) - 1; i >= 0 && err == nil; i-- {
		err = fn(&list[i])
	}
	if err == events.Stop {
		err = nil
	}
	return gaps, err
}

// Count counts the events of a range.
func (s *Store) Count(ctx context.Context, bucket string, start, end, step int64) ([]int64,
	[]events.Gap, error) {
	counts := make([]int64, (uint64(end-start)-1)/uint64(step)+1)
	gaps, err := s.Read(ctx, bucket, start, end, func(e *events.Event) error {
		counts[uint64(e.Time-start)/uint64(step)]++
		return nil
	})
	return counts, gaps, err
}

// Extent says that all is in memory.
func (s *Store) Extent(bucket string, start, end int64) (x events.Extent, err error) {
	_, err = s.Read(context.Background(), bucket, start, end, func(*events.Event) error {
		x.InMemory++
		return nil
	})
	return x, err
}

// Follow is not there.
func (s *Store) Follow(string, int) (*events.Follower, error) { return nil, events.ErrClosed }
