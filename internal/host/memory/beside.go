package memory

import (
	"context"
	"slices"
)

// leaseKey is the key of the lease that a context carries.
type leaseKey struct{}

// WithContext returns a context for work whose results the client of the lease reads as they come.
// What LeaseFor lends with it is awaited with this lease. The work must be done by the goroutine
// that uses the lease.
func (l *Lease) WithContext(ctx context.Context) context.Context {
	if l == nil {
		return ctx
	}
	return context.WithValue(ctx, leaseKey{}, l)
}

// LeaseFor is Lease for work of a context of WithContext. Until its Release, the lease is awaited
// while that of the context is: a client that stands still holds back nobody in this pool either.
func (p *Leases) LeaseFor(ctx context.Context) *Lease {
	l := p.Lease()
	if of, ok := ctx.Value(leaseKey{}).(*Lease); ok && l != nil {
		l.main = of
		of.beside = append(of.beside, l)
	}
	return l
}

// leave ends what LeaseFor began.
func (l *Lease) leave() {
	if l.main == nil {
		return
	}
	l.main.beside = slices.DeleteFunc(l.main.beside, func(o *Lease) bool { return o == l })
	l.main = nil
}
