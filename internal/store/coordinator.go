package store

import (
	"context"

	"dalmatiner/internal/buckets"
	"dalmatiner/internal/coordinator"
	"dalmatiner/internal/wal"
)

// Coordinator is a store as protocols see it: all points go to this node.
type Coordinator struct{ s *Store }

// NewCoordinator returns the way of points into a store.
func NewCoordinator(s *Store) *Coordinator { return &Coordinator{s} }

// EnsureBucket is Store.EnsureBucket.
func (c *Coordinator) EnsureBucket(name string) (buckets.Info, error) { return c.s.EnsureBucket(name) }

// Open starts a session.
func (c *Coordinator) Open(info buckets.Info, how coordinator.Options) (coordinator.Stream, error) {
	x, err := c.s.NewSession(info)
	if err != nil {
		return nil, err
	}
	x.use(how)
	return x, nil
}

// Durable reports whether the log is ever synced.
func (c *Coordinator) Durable() bool { return c.s.SyncMode() != wal.Off }

// WaitDurable waits until the log is durable up to the token, as Store.WaitDurable.
func (c *Coordinator) WaitDurable(ctx context.Context, t coordinator.Token) error {
	return c.s.WaitDurable(ctx, t)
}
