package memory

import (
	"fmt"
	"sync/atomic"
)

// Leases is a pool that is lent out before it is used, such as that of the
// queries.
type Leases struct {
	b     *Budget
	name  string
	limit int64
	small int64
	used  atomic.Int64
}

// NewLeases adds a pool of leases to the budget. From level NoQueries on only
// leases of at most small bytes grow.
func (b *Budget) NewLeases(name, holds string, limit, small int64) *Leases {
	p := &Leases{b: b, name: name, limit: limit, small: small}
	b.Add(Pool{Name: name, Holds: holds, Limit: limit, Use: p.used.Load})
	return p
}

// Lease is what one user of a pool was lent. A nil lease is granted everything.
// It is not for concurrent use.
type Lease struct {
	of    *Leases
	bytes int64
}

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
}

// Error names the need, the limit and the remedy.
func (e *Refusal) Error() string {
	switch {
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
	p, need := l.of, l.bytes+n
	used := p.used.Add(n) - n // first: of two that ask at a time one sees the other
	if p.b.limit > 0 {
		var refusal *Refusal
		switch {
		case need > p.limit:
			refusal = &Refusal{Pool: p.name, Need: need, Limit: p.limit, TooLarge: true}
		case need > p.small && p.b.Level() >= NoQueries:
			refusal = &Refusal{Pool: p.name, Need: need, Used: p.b.Used(), Limit: p.b.limit, OfPressure: true}
		case used > p.limit-n:
			refusal = &Refusal{Pool: p.name, Need: need, Used: used - l.bytes, Limit: p.limit}
		}
		if refusal != nil {
			p.used.Add(-n)
			return refusal
		}
	}
	l.bytes = need
	return nil
}

// Release gives everything back.
func (l *Lease) Release() {
	if l == nil {
		return
	}
	l.of.used.Add(-l.bytes)
	l.bytes = 0
}
