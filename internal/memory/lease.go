package memory

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// LeaseOptions are the rules of a pool of leases.
type LeaseOptions struct {
	Name, Holds string
	Limit       int64 // bytes of all leases together
	Small       int64 // from level NoQueries on only leases of at most this many bytes grow

	// Stall is how long an awaited client may make no progress until its lease is
	// cut off, 0 for ever. While memory is short grace counts instead, and the
	// clients without progress for longest go first.
	Stall time.Duration
}

// The rules while somebody waits for memory of a pool, or the pool or the process
// is nearly full. They are no options: an operator who knew better values would
// know how long every one of his senders and readers pauses.
const (
	// grace is how long a client may pause then.
	grace = time.Second

	// patience is how long somebody waits until a client is cut off that does make
	// progress, the one whose message or answer takes longest; where there is none,
	// whoever came last to wait is refused, so that nobody waits for ever.
	patience = 5 * time.Second

	// A pool that is full to fullPart eighths is cleared down to clearPart eighths.
	fullPart  = 6
	clearPart = 4
)

// Leases is a pool whose memory is lent before it is used, such as that of queries.
type Leases struct {
	b    *Budget
	o    LeaseOptions
	used atomic.Int64

	mu      sync.Mutex
	awaited map[*Lease]struct{} // leases whose clients somebody waits for
	waiting []*waiter           // for memory, in their order
	waiters atomic.Int64        // len(waiting)
	counts  LeaseCounts

	refusedAt time.Time // when the last one that waited was refused: its memory comes back soon
}

// LeaseCounts is what a pool of leases refused and cut off since the start.
type LeaseCounts struct {
	Waiting     int64 // leases that wait for memory now
	Refused     int64
	CutStalled  int64 // clients that made no progress for the time they have
	CutPressure int64 // the same while memory was short
}

// waiter waits for memory.
type waiter struct {
	l     *Lease
	n     int64
	since time.Time
	got   chan error // has room for the answer
}

// NewLeases adds a pool of leases to the budget.
func (b *Budget) NewLeases(o LeaseOptions) *Leases {
	p := &Leases{b: b, o: o, awaited: make(map[*Lease]struct{})}
	b.Add(Pool{Name: o.Name, Holds: o.Holds, Limit: o.Limit, Use: p.used.Load, leases: p})
	return p
}

// Lease is what one user of a pool was lent. A nil lease is granted everything.
// Its methods are for one goroutine at a time.
type Lease struct {
	of     *Leases
	bytes  atomic.Int64
	main   *Lease   // with which this one is awaited; see LeaseFor
	beside []*Lease // that are awaited with this one

	// While a client is awaited; under the pool's lock.
	cut    func(why Cut)
	began  time.Time
	isCut  bool
	moved  atomic.Int64 // when the client last made progress, in ns since 1970
	listed bool
}

// Cut is why a client was cut off.
type Cut string

// The reasons.
const (
	CutStalled  Cut = "stalled"  // no progress for the time that its pool gives it
	CutPressure Cut = "pressure" // memory is short, and it made the least progress
)

// Lease returns an empty lease. Release must be called. A nil pool grants
// everything.
func (p *Leases) Lease() *Lease {
	if p == nil {
		return nil
	}
	return &Lease{of: p}
}

// Refusal is memory that was not lent.
type Refusal struct {
	Pool       string
	Need       int64 // bytes of the lease with what was asked for
	Used       int64 // by others: of the pool, or of the process
	Limit      int64 // of the pool, or of the process
	TooLarge   bool  // the need alone is beyond the pool's limit
	OfPressure bool  // the process is short of memory; Used and Limit are its
	Stays      bool  // it was asked of a stock
}

// Error names the need, the limit and the remedy.
func (e *Refusal) Error() string {
	switch {
	case e.Stays && e.OfPressure:
		return fmt.Sprintf("memory is short, %d of %d MiB are in use, and what is known comes first: try again later, or raise memory.limit",
			mebi(e.Used), mebi(e.Limit))
	case e.Stays:
		return fmt.Sprintf("the memory of all %s is taken, %d of %d MiB: delete what is not needed, or raise memory.limit",
			e.Pool, mebi(e.Used), mebi(e.Limit))
	case e.TooLarge:
		return fmt.Sprintf("it needs %d MiB of memory, the limit of all %s together is %d MiB: ask for less, or raise memory.limit",
			mebi(e.Need), e.Pool, mebi(e.Limit))
	case e.OfPressure:
		return fmt.Sprintf("it needs %d MiB of memory and the node is short of it: %d of %d MiB are in use, and points come first: try again later, or raise memory.limit",
			mebi(e.Need), mebi(e.Used), mebi(e.Limit))
	}
	return fmt.Sprintf("it needs %d MiB of memory, other %s have %d MiB and the limit is %d MiB: try again later, or raise memory.limit",
		mebi(e.Need), e.Pool, mebi(e.Used), mebi(e.Limit))
}

// mebi rounds up.
func mebi(bytes int64) int64 { return (bytes + 1<<20 - 1) >> 20 }

// Grow lends n further bytes, before they are used. The error is a *Refusal.
func (l *Lease) Grow(n int64) error {
	if l == nil {
		return nil
	}
	if refusal := l.take(n); refusal != nil {
		l.of.mu.Lock()
		l.of.counts.Refused++
		l.of.mu.Unlock()
		return refusal
	}
	return nil
}

// take lends n bytes or says why not. What is refused is not counted, not even for a moment.
func (l *Lease) take(n int64) *Refusal {
	p, need := l.of, l.bytes.Load()+n
	limited := p.b.limit > 0
	switch {
	case limited && need > p.o.Limit:
		return &Refusal{Pool: p.o.Name, Need: need, Limit: p.o.Limit, TooLarge: true}
	case limited && need > p.o.Small && p.b.Level() >= NoQueries:
		return &Refusal{Pool: p.o.Name, Need: need, Used: p.b.Used(), Limit: p.b.limit, OfPressure: true}
	}
	for {
		used := p.used.Load()
		if limited && used > p.o.Limit-n {
			return &Refusal{Pool: p.o.Name, Need: need, Used: used - l.bytes.Load(), Limit: p.o.Limit}
		}
		if p.used.CompareAndSwap(used, used+n) {
			l.bytes.Store(need)
			return nil
		}
	}
}

// GrowWhenFree is Grow, and waits its turn where others have the memory or the
// process is short of it; others are cut off for it by the rules of the pool. It
// returns a *Refusal when even that did not help in time, and ctx's error.
func (l *Lease) GrowWhenFree(ctx context.Context, n int64) error {
	if l == nil {
		return nil
	}
	p := l.of
	if p.waiters.Load() == 0 {
		refusal := l.take(n)
		if refusal == nil || refusal.TooLarge {
			return p.refused(refusal)
		}
	}
	w := &waiter{l: l, n: n, since: p.b.now(), got: make(chan error, 1)}
	p.mu.Lock()
	p.waiting = append(p.waiting, w)
	p.waiters.Add(1)
	p.serve()
	p.mu.Unlock()
	p.sweep(p.b.now())
	select {
	case err := <-w.got:
		return err
	case <-ctx.Done():
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case err := <-w.got: // granted in between
		return err
	default:
	}
	p.drop(w)
	return ctx.Err()
}

// refused counts a refusal and makes an error of it.
func (p *Leases) refused(r *Refusal) error {
	if r == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.counts.Refused++
	return r
}

// Await says that from now on the use of the lease ends when a client does
// something: finishes its message, or takes its answer. Until Resume or Release it
// may be cut off, by a call of cut from another goroutine, which must not call
// the lease and makes its user return. Moved tells of the client's progress.
func (l *Lease) Await(cut func(why Cut)) {
	if l == nil {
		return
	}
	for _, other := range l.beside {
		other.Await(cut)
	}
	now := l.of.b.now()
	l.moved.Store(now.UnixNano())
	l.of.mu.Lock()
	defer l.of.mu.Unlock()
	l.cut, l.began, l.isCut, l.listed = cut, now, false, true
	l.of.awaited[l] = struct{}{}
}

// Moved says that the awaited client has made progress.
func (l *Lease) Moved() {
	if l == nil {
		return
	}
	l.moved.Store(l.of.b.now().UnixNano())
	for _, other := range l.beside {
		other.Moved()
	}
}

// Resume ends what Await began.
func (l *Lease) Resume() {
	if l == nil || !l.listed {
		return
	}
	for _, other := range l.beside {
		other.Resume()
	}
	l.of.mu.Lock()
	defer l.of.mu.Unlock()
	l.listed, l.cut = false, nil
	delete(l.of.awaited, l)
}

// Shrink gives n bytes back.
func (l *Lease) Shrink(n int64) {
	if l == nil || n == 0 {
		return
	}
	l.bytes.Add(-n)
	l.of.used.Add(-n)
	if l.of.waiters.Load() > 0 {
		l.of.mu.Lock()
		defer l.of.mu.Unlock()
		l.of.serve()
	}
}

// Bytes returns what was lent.
func (l *Lease) Bytes() int64 {
	if l == nil {
		return 0
	}
	return l.bytes.Load()
}

// Release gives everything back.
func (l *Lease) Release() {
	if l == nil {
		return
	}
	l.Resume()
	l.leave()
	l.Shrink(l.bytes.Load())
}
