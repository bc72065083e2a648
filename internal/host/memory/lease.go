package memory

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// LeaseOptions are the rules of a pool of leases.
type LeaseOptions struct {
	Name, Holds string
	Limit       int64 // bytes of all leases together
	Small       int64 // from level NoQueries on only leases of at most this many bytes grow

	// First is how many bytes are kept free for the lease that has had memory for
	// longest, half of the limit at most: however many messages grow at a time, the first
	// one can get as large, ends, and makes room for the next. Without it all of them
	// would stop halfway, and each would hold what the others wait for.
	First int64

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

	// patience is how long somebody waits until a client is cut off although it makes
	// progress: the client whose message or answer takes longest. Where there is no
	// such client, the last one to wait is refused, so that nobody waits for ever.
	// patience does not count where no time would help; see endStuck.
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
	holding []*Lease            // with memory, in the order of coming
	awaited map[*Lease]struct{} // leases whose clients somebody waits for
	waiting []*waiter           // for memory, in their order
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
	o.First = min(o.First, o.Limit/2)
	p := &Leases{b: b, o: o, awaited: make(map[*Lease]struct{})}
	b.Add(Pool{Name: o.Name, Holds: o.Holds, Limit: o.Limit, Use: p.used.Load, leases: p})
	return p
}

// Lease is what one user of a pool was lent. A nil lease is granted everything.
// Its methods are for one goroutine at a time. A client has one lease of a pool: with a
// second one it could wait for memory that its first one holds.
type Lease struct {
	of     *Leases
	bytes  atomic.Int64
	main   *Lease   // with which this one is awaited; see LeaseFor
	beside []*Lease // that are awaited with this one

	// The time of a client, without that in which nobody waited for it.
	moved  atomic.Int64 // when it last made progress, in ns since 1970
	began  time.Time    // its message or answer; zero for one that has yet to begin
	paused time.Time    // the last Resume
	listed bool

	// While a client is awaited; under the pool's lock.
	cut   func(why CutReason)
	cutAt time.Time // zero for one that is not cut off

	waits *waiter // while it waits for more; under the pool's lock
}

// CutReason is why a client was cut off.
type CutReason string

// The reasons.
const (
	CutStalled  CutReason = "stalled"  // no progress for the time that its pool gives it
	CutPressure CutReason = "pressure" // memory is short, and it made the least progress
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
		return fmt.Sprintf("memory is short, %d of %d MiB are in use, and what is known comes first: "+
			"try again later, or raise memory.limit",
			mebi(e.Used), mebi(e.Limit))
	case e.Stays:
		return fmt.Sprintf("the memory of all %s is taken, %d of %d MiB: delete what is not needed, or "+
			"raise memory.limit",
			e.Pool, mebi(e.Used), mebi(e.Limit))
	case e.TooLarge:
		return fmt.Sprintf("it needs %d MiB of memory, the limit of all %s together is %d MiB: ask for "+
			"less, or raise memory.limit",
			mebi(e.Need), e.Pool, mebi(e.Limit))
	case e.OfPressure:
		return fmt.Sprintf("it needs %d MiB of memory and the node is short of it: %d of %d MiB are in "+
			"use, and points come first: try again later, or raise memory.limit",
			mebi(e.Need), mebi(e.Used), mebi(e.Limit))
	}
	return fmt.Sprintf("it needs %d MiB of memory, other %s have %d MiB and the limit is %d MiB: "+
		"try again later, or raise memory.limit",
		mebi(e.Need), e.Pool, mebi(e.Used), mebi(e.Limit))
}

// mebi rounds up.
func mebi(bytes int64) int64 { return (bytes + 1<<20 - 1) >> 20 }

// Grow lends n further bytes, before they are used. The error is a *Refusal.
func (l *Lease) Grow(n int64) error {
	if l == nil {
		return nil
	}
	l.of.mu.Lock()
	defer l.of.mu.Unlock()
	if refusal := l.take(n); refusal != nil {
		l.of.counts.Refused++
		return refusal
	}
	return nil
}

// take lends n bytes or says why not. Under the lock.
func (l *Lease) take(n int64) *Refusal {
	if refusal := l.lacks(n); refusal != nil {
		return refusal
	}
	p, need := l.of, l.bytes.Load()+n
	if need > 0 && need == n {
		p.holding = append(p.holding, l)
	}
	p.used.Add(n)
	l.bytes.Store(need)
	return nil
}

// lacks says why n bytes cannot be lent, nil where they can. Under the lock.
func (l *Lease) lacks(n int64) *Refusal {
	p, need := l.of, l.bytes.Load()+n
	used := p.used.Load()
	switch {
	case p.b.limit == 0:
		return nil
	case need > p.o.Limit:
		return &Refusal{Pool: p.o.Name, Need: need, Limit: p.o.Limit, TooLarge: true}
	case need > p.o.Small && p.b.Level() >= NoQueries:
		return &Refusal{Pool: p.o.Name, Need: need, Used: p.b.UsedBytes(), Limit: p.b.limit,
			OfPressure: true}
	case used+n > p.o.Limit-p.keptFrom(l):
		return &Refusal{Pool: p.o.Name, Need: need, Used: used - l.bytes.Load(), Limit: p.o.Limit}
	}
	return nil
}

// keptFrom returns the bytes that a lease may not have, because they are kept for the first one.
// Under the lock.
func (p *Leases) keptFrom(l *Lease) int64 {
	if len(p.holding) == 0 || p.holding[0] == l {
		return 0
	}
	return max(0, p.o.First-p.holding[0].bytes.Load())
}

// GrowWhenFree is Grow, and waits its turn where others have the memory or the
// process is short of it; others are cut off for it by the rules of the pool. It
// returns a *Refusal when even that did not help in time, and ctx's error: ctx ends with
// the client's connection. The client is not awaited any more, as after Resume.
func (l *Lease) GrowWhenFree(ctx context.Context, n int64) error {
	if l == nil {
		return nil
	}
	l.Resume()
	p := l.of
	w := &waiter{l: l, n: n, since: p.b.now(), got: make(chan error, 1)}
	p.mu.Lock()
	p.waiting, l.waits = append(p.waiting, w), w
	p.serve()
	p.mu.Unlock()
	select {
	case err := <-w.got:
		return err
	default:
	}
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
	p.serve() // others need not wait behind it any more
	return ctx.Err()
}

// Await says that from now on the use of the lease ends when a client does
// something: finishes its message, or takes its answer. Until Resume or Release it
// may be cut off, by a call of cut from another goroutine, which must not call
// the lease and makes its user return. Moved tells of the client's progress.
func (l *Lease) Await(cut func(why CutReason)) {
	if l == nil {
		return
	}
	for _, other := range l.beside {
		other.Await(cut)
	}
	if l.Bytes() == 0 || l.listed { // without memory it holds nobody back
		return
	}
	now := l.of.b.now()
	l.of.mu.Lock()
	defer l.of.mu.Unlock()
	if l.began.IsZero() {
		l.began = now
		l.moved.Store(now.UnixNano())
	} else { // nobody has waited for it meanwhile
		l.began = l.began.Add(now.Sub(l.paused))
		l.moved.Add(int64(now.Sub(l.paused)))
	}
	l.cut, l.cutAt, l.listed = cut, time.Time{}, true
	l.of.awaited[l] = struct{}{}
}

// Begin says that with the next Await another message or answer of the client begins.
func (l *Lease) Begin() {
	if l != nil {
		l.Resume()
		l.began = time.Time{}
	}
}

// NoteProgress says that the awaited client has made progress.
func (l *Lease) NoteProgress() {
	if l == nil {
		return
	}
	l.moved.Store(l.of.b.now().UnixNano())
	for _, other := range l.beside {
		other.NoteProgress()
	}
}

// Resume ends what Await began.
func (l *Lease) Resume() {
	if l == nil {
		return
	}
	for _, other := range l.beside {
		other.Resume()
	}
	if !l.listed {
		return
	}
	l.of.mu.Lock()
	defer l.of.mu.Unlock()
	l.listed, l.cut, l.paused = false, nil, l.of.b.now()
	delete(l.of.awaited, l)
}

// Shrink gives n bytes back.
func (l *Lease) Shrink(n int64) {
	if l == nil || n == 0 {
		return
	}
	p := l.of
	p.mu.Lock()
	defer p.mu.Unlock()
	if l.bytes.Add(-n) == 0 {
		p.holding = slices.DeleteFunc(p.holding, func(o *Lease) bool { return o == l })
	}
	p.used.Add(-n)
	p.serve()
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
	l.Begin()
	l.leave()
	l.Shrink(l.bytes.Load())
}
