// Package clock is the coarse time of a node: two clocks that are read without a call
// of the system, and are as old as the last Advance.
package clock

import (
	"sync"
	"sync/atomic"
	"time"
)

// Clock is coarse time. Its methods may be called concurrently.
type Clock struct {
	now    func() time.Time
	mu     sync.Mutex // one advance at a time
	unix   atomic.Int64
	steady atomic.Int64
}

// New returns a clock at the time that now gives.
func New(now func() time.Time) *Clock {
	c := &Clock{now: now}
	n := now().UnixNano()
	c.unix.Store(n)
	c.steady.Store(n)
	return c
}

// Unix returns the wall clock in nanoseconds since 1970. It may be set back.
func (c *Clock) Unix() int64 { return c.unix.Load() }

// Monotonic returns nanoseconds that never step back: for ages.
func (c *Clock) Monotonic() int64 { return c.steady.Load() }

// Advance moves both to the time it is. A wall clock that is set back must not keep
// blocks open, nor flushes away, until it has caught up with itself. Two calls at a time
// could set it to the older of their readings: senders would be refused as ahead of it.
func (c *Clock) Advance() {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.now().UnixNano()
	if d := n - c.unix.Swap(n); d > 0 {
		c.steady.Add(d)
	}
}
