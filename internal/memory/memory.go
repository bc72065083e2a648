// Package memory is the budget of a process: named pools, one limit for their
// sum, and the level of pressure that tells everybody what to give up first.
// DESIGN.md has the levels and who does what at each.
package memory

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Level is how near the use is to the limit. Every level includes what the
// lower ones ask for.
type Level int32

// The levels, lowest first.
const (
	Calm      Level = iota
	Hurry           // blocks close early and are flushed, merging slows down, caches are dropped
	NoQueries       // queries that need new memory are refused
	NoSeries        // new series are refused, known ones are served
	Hold            // senders are held back
	levels    = iota
)

var levelNames = [levels]string{"calm", "hurry", "no_queries", "no_series", "hold"}

// String returns the name under which the level is reported.
func (l Level) String() string { return levelNames[l] }

// rise is the share of the limit, in percent, at which a level begins. It ends
// fallBack below that, so that a use that stands at a mark does not switch a
// level with every look.
var rise = [levels]int64{Hurry: 70, NoQueries: 80, NoSeries: 85, Hold: 95}

const (
	fallBack = 5

	// settle is how long NoSeries lasts at least after the use last stood at
	// its mark. A flood of new series would otherwise come in in waves, each
	// leaving its names behind, until the names alone fill the limit.
	settle = 5 * time.Second
)

// heapStep is the change of the heap's share, as a part of the limit, that is
// worth telling the Go runtime: it stops all goroutines for a moment.
const heapStep = 64

// Pool is memory of one kind.
type Pool struct {
	Name  string
	Holds string // what is in it, for an operator
	// Limit is what the pool's owner keeps it below, in bytes; 0 is a pool that
	// only the process's limit bounds.
	Limit int64
	// Use returns the bytes in use. It is called often, by many goroutines, and
	// must be cheap.
	Use func() int64
	// OffHeap pools are not part of the Go heap.
	OffHeap bool

	leases *Leases // nil for a pool that is not lent out
}

// Usage is a pool at one moment.
type Usage struct {
	Name, Holds string
	Use, Limit  int64        // bytes; a limit of 0 is that of the process
	Leases      *LeaseCounts // nil for a pool that is not lent out
}

// Budget is the memory of one process. Its methods may be called concurrently.
type Budget struct {
	limit   int64
	now     func() time.Time
	setHeap func(bytes int64)
	level   atomic.Int32
	used    atomic.Int64
	heap    atomic.Int64 // what the Go runtime holds, as it was last told

	mu      sync.Mutex // one look at a time
	pools   []Pool
	pressed time.Time // when the use last stood at the mark of NoSeries
	told    int64     // last share of the Go heap
}

// New returns the budget of a process that may use limit bytes, 0 for any
// number: the level then is always Calm. setHeap is given the share of the Go
// heap whenever it changes; it may be nil.
func New(limit int64, now func() time.Time, setHeap func(bytes int64)) *Budget {
	if setHeap == nil {
		setHeap = func(int64) {}
	}
	return &Budget{limit: limit, now: now, setHeap: setHeap}
}

// Limit returns the limit in bytes, 0 for none.
func (b *Budget) Limit() int64 { return b.limit }

// Share returns 1/part of the limit, or what without a limit stands for it, if
// that is less.
func (b *Budget) Share(part, without int64) int64 {
	if b.limit == 0 {
		return without
	}
	return min(b.limit/part, without)
}

// Add adds a pool. A pool of the same name is replaced.
func (b *Budget) Add(p Pool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.pools = append(slices.DeleteFunc(b.pools, func(o Pool) bool { return o.Name == p.Name }), p)
}

// Level returns the level as the last look found it.
func (b *Budget) Level() Level { return Level(b.level.Load()) }

// Used returns the bytes in use as the last look found them.
func (b *Budget) Used() int64 { return b.used.Load() }

// SetHeap tells the bytes that the Go runtime holds and cannot give back. They
// count where they are more than the sum of the pools on the heap.
func (b *Budget) SetHeap(bytes int64) { b.heap.Store(bytes) }

// Look adds up the pools and returns the level that follows. A caller that
// finds another one looking gets the level of before.
func (b *Budget) Look() Level {
	if b.limit == 0 || !b.mu.TryLock() {
		return b.Level()
	}
	defer b.mu.Unlock()
	var on, off int64
	for i := range b.pools {
		if p := &b.pools[i]; p.OffHeap {
			off += p.Use()
		} else {
			on += p.Use()
		}
	}
	heap := max(on, b.heap.Load())
	b.used.Store(off + heap)
	l := b.next(off + heap)
	b.level.Store(int32(l))
	b.share(off, heap)
	return l
}

// next returns the level that a use leads to.
func (b *Budget) next(used int64) Level {
	now, was := b.now(), b.Level()
	reached, kept := Calm, Calm
	for l := Hurry; l < levels; l++ {
		if used >= b.limit/100*rise[l] {
			reached = l
		}
		if used >= b.limit/100*(rise[l]-fallBack) {
			kept = l
		}
	}
	if reached >= NoSeries {
		b.pressed = now
	}
	l := max(reached, min(was, kept))
	if was >= NoSeries && l < NoSeries && now.Sub(b.pressed) < settle {
		l = NoSeries
	}
	return l
}

// share tells the Go runtime what is left beside the memory that is not its
// own. Less than an eighth more than it needs would have it collect all the
// time.
func (b *Budget) share(off, heap int64) {
	share := max(b.limit-off, heap+heap/8)
	if d := share - b.told; d > b.limit/heapStep || -d > b.limit/heapStep {
		b.told = share
		b.setHeap(share)
	}
}

// Pools returns the pools in the order in which they were added.
func (b *Budget) Pools() []Usage {
	b.mu.Lock()
	defer b.mu.Unlock()
	out := make([]Usage, len(b.pools))
	for i, p := range b.pools {
		out[i] = Usage{Name: p.Name, Holds: p.Holds, Use: p.Use(), Limit: p.Limit}
		if p.leases != nil {
			c := p.leases.Counts()
			out[i].Leases = &c
		}
	}
	return out
}
