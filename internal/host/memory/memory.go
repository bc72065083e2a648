// Package memory is the memory budget of the process: named pools, one limit for their
// sum, and a level of pressure. The owners of memory ask for the level and give memory up
// accordingly. DESIGN.md says who gives up what at each level.
package memory

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Level says how near the use is to the limit. What a level asks for includes what the
// lower levels ask for.
type Level int32

// The levels, lowest first.
const (
	Calm      Level = iota
	Urgent          // blocks close early and are flushed, merging slows down, caches are dropped
	NoQueries       // queries that need new memory are refused
	NoSeries        // new series are refused, known ones are served
	Hold            // senders are held back
	levels    = iota
)

var levelNames = [levels]string{"calm", "urgent", "no_queries", "no_series", "hold"}

// String returns the name under which the level is reported.
func (l Level) String() string { return levelNames[l] }

// rise is the share of the limit, in percent, at which a level begins. It ends
// fallBack below its mark, so that a use at the mark does not switch a level
// with every look.
var rise = [levels]int64{Urgent: 70, NoQueries: 80, NoSeries: 85, Hold: 95}

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
	heap    atomic.Pointer[heapState]
	atMark  atomic.Bool // a stock was refused since the last look, at the mark of NoSeries

	taking sync.Mutex // one stock at a time; behind mu
	taken  int64      // by stocks since the last look

	mu      sync.Mutex // one look at a time
	pools   []Pool
	on      int64     // bytes of the pools on the Go heap, by the last look
	seen    uint64    // the collection that pooled is of
	pooled  int64     // bytes of these pools when it was
	pressed time.Time // when the use last stood at the mark of NoSeries
	told    int64     // last share of the Go heap
}

// heapState is what the Go runtime holds.
type heapState struct {
	bytes  int64
	cycles uint64 // its collections so far
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

// Share returns 1/part of the limit, but at most without. It returns without when there is
// no limit.
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

// UsedBytes returns the bytes in use as the last look found them.
func (b *Budget) UsedBytes() int64 { return b.used.Load() }

// SetHeap is told the bytes that the Go runtime holds and cannot give back (what its last
// collection found alive, and what it needs beside that now), and the number of its
// collections. The bytes beyond the pools on the heap at that time count beside the pools
// until the next collection.
func (b *Budget) SetHeap(bytes int64, cycles uint64) { b.heap.Store(&heapState{bytes, cycles}) }

// Look adds up the pools and returns the level that follows. A caller that
// finds another one looking gets the level of before.
func (b *Budget) Look() Level {
	if b.limit == 0 || !b.mu.TryLock() {
		return b.Level()
	}
	defer b.mu.Unlock()
	// Before the pools, so that what is taken meanwhile counts twice and not never.
	b.taking.Lock()
	taken := b.taken
	b.taking.Unlock()
	var on, off int64
	for i := range b.pools {
		if p := &b.pools[i]; p.OffHeap {
			off += p.Use()
		} else {
			on += p.Use()
		}
	}
	heap := on + b.outsidePools(on)
	b.taking.Lock()
	b.used.Store(off + heap)
	b.taken -= taken
	b.taking.Unlock()
	l := b.next(off + heap)
	b.level.Store(int32(l))
	b.share(off, heap)
	return l
}

// outsidePools returns what the last collection found beyond the pools on the heap, of
// which there are on bytes now. Under the lock.
//
// The larger one of both sums would not do: what the pools grow by behind a
// collection comes to what it found, or a flood would hide in the difference.
func (b *Budget) outsidePools(on int64) int64 {
	was := b.on
	b.on = on
	heap := b.heap.Load()
	if heap == nil {
		return 0
	}
	if heap.cycles != b.seen {
		// It was at some time since the look before: the pools had the less of both.
		b.seen, b.pooled = heap.cycles, min(was, on)
	}
	return max(0, heap.bytes-b.pooled)
}

// next returns the level that a use leads to.
func (b *Budget) next(used int64) Level {
	now, was := b.now(), b.Level()
	reached, kept := Calm, Calm
	for l := Urgent; l < levels; l++ {
		if used >= b.limit/100*rise[l] {
			reached = l
		}
		if used >= b.limit/100*(rise[l]-fallBack) {
			kept = l
		}
	}
	if b.atMark.Swap(false) {
		reached = max(reached, NoSeries) // but for what was refused
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
