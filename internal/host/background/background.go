// Package background is for work in no hurry, such as merges: it yields to points, and the memory
// that it takes is counted.
package background

import (
	"context"
	"runtime"
	"sync/atomic"
	"time"
)

const (
	// step is how long work goes on before it looks who waits. While it yields to points it then
	// pauses pause times as long. A step of which other processes took the larger part counts no
	// more than stepMax.
	step    = 2 * time.Millisecond
	stepMax = 20 * time.Millisecond
	pause   = 40

	// patience is how long work waits for a processor at most where points leave time for it.
	// Where they do not, it waits for the end of somebody's time slice, which is 10 ms.
	patience = 4 * time.Millisecond
)

// Work is one kind of work. Its methods may be called concurrently.
type Work struct {
	yields func(busy bool) bool
	bytes  atomic.Int64
}

// New returns work that makes way for points whenever yields says so. busy says that somebody
// computes on all processors.
func New(yields func(busy bool) bool) *Work { return &Work{yields: yields} }

// Bytes returns the memory that all turns hold.
func (w *Work) Bytes() int64 { return w.bytes.Load() }

// Begin begins a turn of work. End must follow.
func (w *Work) Begin() *Turn { return &Turn{w: w, since: time.Now()} }

// Turn is one piece of work under way. Its methods are for one goroutine.
type Turn struct {
	w     *Work
	since time.Time // it has worked without a look who waits
	bytes int64
}

// Yield lets points go first, if they wait and the turn has worked for long enough; it is called
// often. It goes by time, not by what is written: a chunk of a few bytes may take as much of the
// processor as one of thousands. The error is that of ctx, which ends a pause.
func (t *Turn) Yield(ctx context.Context) error {
	now := time.Now()
	worked := now.Sub(t.since)
	if worked < step {
		return nil
	}
	// Whoever is ready to run runs first. That takes long only where somebody computes all the
	// time: a sender that is read from as fast as it goes.
	runtime.Gosched()
	if t.w.yields(time.Since(now) > patience) {
		wait := time.NewTimer(pause * min(worked, stepMax))
		defer wait.Stop()
		select {
		case <-wait.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	t.since = time.Now()
	return nil
}

// Hold says how much memory the turn has now. It is counted until the next call, or End.
func (t *Turn) Hold(bytes int64) {
	t.w.bytes.Add(bytes - t.bytes)
	t.bytes = bytes
}

// Grow says that the turn has n bytes more.
func (t *Turn) Grow(n int64) { t.Hold(t.bytes + n) }

// End gives back what the turn holds.
func (t *Turn) End() { t.Hold(0) }
