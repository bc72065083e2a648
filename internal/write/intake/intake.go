// Package intake is the way of points into the store: a session takes those of one sender,
// finds the columns of their series, and writes them to the column groups, many at a time.
// DESIGN.md says how it keeps their order, and what it predicts.
package intake

import (
	"context"

	"dalmatiner/internal/disk/wal"
	"dalmatiner/internal/model/account"
	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/write"
	"dalmatiner/internal/write/backpressure"
	"dalmatiner/internal/write/columns"
	"dalmatiner/internal/write/head"
	"dalmatiner/internal/write/ledger"
	"dalmatiner/internal/write/series"
)

// Replay puts what the log has of earlier points into memory, after a start.
type Replay interface {
	// HasPending reports whether there is anything left to replay.
	HasPending() bool
	// Group returns when all points of a group are in memory.
	Group(ctx context.Context, group uint32) error
	// All returns when all points are.
	All(ctx context.Context) error
}

// Options are what an intake works with.
type Options struct {
	Buckets  *buckets.Registry[*columns.Bucket]
	Columns  *columns.Table
	Ledger   *ledger.Ledger
	Pressure *backpressure.Control
	Sealers  *backpressure.Sealers
	Replay   Replay
	Durable  bool // the log is ever synced

	// EnsureBucket returns a bucket, and creates one that is missing where the node
	// does so.
	EnsureBucket func(name string, form buckets.Form) (buckets.Info, error)

	// NoteLate makes permanent that a record of a bucket has a slot that its Reach does not have.
	NoteLate func(b *columns.Bucket, slot int64) error
}

// Intake opens sessions. It is the write.Target of a single node. Its methods
// may be called concurrently.
type Intake struct {
	o    Options
	sets sets
}

// New returns the intake of a store.
func New(o Options) *Intake { return &Intake{o: o} }

// EnsureBucket returns a bucket by its name: see write.Target.
func (in *Intake) EnsureBucket(name string, form buckets.Form) (buckets.Info, error) {
	return in.o.EnsureBucket(name, form)
}

// RecentSeries returns the series that senders brought in the present hour of the clock and in the
// one before, since the store was opened.
func (in *Intake) RecentSeries() series.RecentSeries { return in.o.Columns.RecentSeries() }

// Open starts a session.
func (in *Intake) Open(info buckets.Info, how write.Options) (write.Stream, error) {
	x, err := in.NewSession(info, how)
	if err != nil {
		return nil, err
	}
	return x, nil
}

// NewSession starts a session for the bucket. Close must be called. The error wraps
// buckets.ErrUnknown where the bucket was deleted.
func (in *Intake) NewSession(info buckets.Info, how write.Options) (*Session, error) {
	b, err := in.o.Buckets.ByIdentity(info)
	if err != nil {
		return nil, err
	}
	x := &Session{
		sets:       &in.sets,
		position:   columns.Position{Columns: &noColumns},
		timestamps: how.Timestamps,
		report:     how.Report,
	}
	var into *account.Counts
	if how.Report != nil {
		into = &x.counts
	}
	x.storer = storer{
		o: &in.o, b: b, width: b.Width(), neverWait: how.NeverWait, copies: how.Copies, stale: how.Stale,
		filler: in.o.Columns.NewFiller(b), writer: in.o.Ledger.NewWriter(how.Copies, into),
	}
	return x, nil
}

var noColumns head.Columns

// Durable reports whether the log is ever synced.
func (in *Intake) Durable() bool { return in.o.Durable }

// WaitDurable waits until what a commit stands for is on disk as the sync mode has
// it: at once with always, at the next tick with interval. With off it is an
// error.
func (in *Intake) WaitDurable(ctx context.Context, t write.Token) error {
	if t.Position == 0 {
		return nil
	}
	return in.o.Ledger.WaitDurable(ctx, wal.LSN(t.Position))
}

// Bytes returns the memory of points that wait to be looked up together, at most MaxBytes.
func (in *Intake) Bytes() int64 { return in.sets.bytes() }
