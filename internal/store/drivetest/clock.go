package drivetest

import (
	"sync/atomic"
	"time"
)

// Epoch is where a Clock starts, in seconds: a multiple of a chunk.
const Epoch = 1_500_000_480

// Clock is a clock that only moves when told. It may be used concurrently.
type Clock struct{ now atomic.Int64 }

// NewClock returns a clock that stands at Epoch.
func NewClock() *Clock {
	c := &Clock{}
	c.Set(Epoch * int64(time.Second))
	return c
}

// Now returns where the clock stands.
func (c *Clock) Now() time.Time { return time.Unix(0, c.now.Load()) }

// Set sets the clock to a number of ns since 1970.
func (c *Clock) Set(ns int64) { c.now.Store(ns) }

// Advance moves the clock.
func (c *Clock) Advance(d time.Duration) { c.now.Add(int64(d)) }
