package events

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
)

// Follower is a live tail of a bucket. It is made by Follow, for one reader.
type Follower struct {
	mu     sync.Mutex
	list   []Event // that wait, in the order of their writing
	bytes  int     // of them
	missed uint64  // events that found no room since the last Next
	err    error   // why there are no more
	limit  int
	more   chan struct{} // has a token when something has changed
	leave  func(*Follower)
	total  *atomic.Int64 // counts what all tails of the store missed
}

// eventCost is what an event takes in memory beside its body.
const eventCost = 64

// newFollower returns a follower that keeps so many bytes. leave is called when it is closed; total
// counts what it misses.
func newFollower(limit int, total *atomic.Int64, leave func(*Follower)) *Follower {
	return &Follower{
		total: total,
		limit: min(max(limit, MaxBody+eventCost), MaxFollow),
		more:  make(chan struct{}, 1),
		leave: leave,
	}
}

// Next returns the events that were written since the last call, in the order of their writing,
// and waits while there are none. missed says how many more there were for which there was no
// room: they were written later than those of the list, and before those of the next call. The
// events are the caller's. The error is that of ctx, ErrClosed, or wraps buckets.ErrUnknown when
// the bucket was deleted; it comes when all events were taken.
func (f *Follower) Next(ctx context.Context) (list []Event, missed uint64, err error) {
	for {
		f.mu.Lock()
		list, missed, err = f.list, f.missed, f.err
		f.list, f.bytes, f.missed = nil, 0, 0
		f.mu.Unlock()
		if len(list) > 0 || missed > 0 {
			return list, missed, nil
		}
		if err != nil {
			return nil, 0, err
		}
		select {
		case <-ctx.Done():
			return nil, 0, ctx.Err()
		case <-f.more:
		}
	}
}

// Close ends the tail. A Next that waits returns ErrClosed.
func (f *Follower) Close() {
	f.leave(f)
	f.end(ErrClosed)
}

// offer gives the follower an event, of which it takes a copy. Once one is missed all are, until
// the reader comes: so it knows where in the order something is missing.
func (f *Follower) offer(e *Event) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if cost := len(e.Body) + eventCost; f.missed > 0 || f.bytes+cost > f.limit {
		f.missed++
		f.total.Add(1)
	} else {
		f.bytes += cost
		f.list = append(f.list, Event{Time: e.Time, ID: e.ID, Body: slices.Clone(e.Body)})
	}
	f.wake()
}

// miss counts events that did not get here.
func (f *Follower) miss(n uint64) {
	if n == 0 {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.missed += n
	f.total.Add(int64(n))
	f.wake()
}

// end says that no event will come.
func (f *Follower) end(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err == nil {
		f.err = err
	}
	f.wake()
}

func (f *Follower) wake() {
	select {
	case f.more <- struct{}{}:
	default:
	}
}
