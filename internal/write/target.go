// Package write is the way of points into the node: the interface that every
// protocol writes to. Behind it stands one store, or something that sends the points
// to the stores of several nodes; a protocol cannot tell.
package write

import (
	"cmp"
	"context"
	"errors"

	"dalmatiner/internal/model/account"
	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/wire"
)

// ErrDiskFull is wrapped by the error of a change for which the disk has no room.
var ErrDiskFull = errors.New("the disk is full")

// Target takes points. Its methods may be called concurrently.
type Target interface {
	// EnsureBucket returns the bucket that has a name now. Where it is missing and
	// auto-creation is on, it is created in a form, with the node's defaults for what the
	// form leaves open. The error wraps buckets.ErrUnknown, or buckets.ErrInvalid for a
	// name that cannot be, or ErrDiskFull, or a *memory.Refusal.
	EnsureBucket(name string, form buckets.Form) (buckets.Info, error)
	// Open opens a stream of points for a bucket. The error wraps buckets.ErrUnknown
	// where the bucket was deleted meanwhile.
	Open(bucket buckets.Info, how Options) (Stream, error)
	// Durable reports whether points are made durable at all: where it is false,
	// nothing can be acknowledged.
	Durable() bool
	// WaitDurable waits until everything up to the token is durable.
	WaitDurable(ctx context.Context, t Token) error
}

// Options say how a stream is used.
type Options struct {
	// Timestamps says that the points of Points carry timestamps: 16 bytes each. The
	// bucket must have timestamps.
	Timestamps bool
	// Stale takes stale markers: a word of point.Stale is one. In other streams it is
	// unset, as every word of its type.
	Stale bool
	// NeverWait refuses points where the sender would be held back: a sender that
	// cannot be slowed down would lose them without their being counted.
	NeverWait bool
	// Copies says that the points are copies: another node has counted them as what its
	// senders sent, and has judged how old and how new they may be. Here they count in the
	// ledger of copies, and any slot is taken.
	Copies bool
	// Report is told what became of the points of each commit, by cause, in the order
	// of the commits and once for each: at the earliest inside Commit, at the latest
	// before WaitDurable of the commit's token returns without an error, and from any
	// goroutine. It must not call the stream. nil asks for no reports.
	Report func(Token, account.Counts)
}

// Stream takes the points of one sender for one bucket, in the order they were sent. It
// is not for concurrent use. The slices it is given are read during the call only.
// A point that is refused is counted, and is no error: errors come from Commit, and
// mean that nothing further can be stored.
type Stream interface {
	// Point, Points, Batch and Entries take points from a stream of the wire.
	wire.Points
	// Append takes many points of any series.
	Append(points []Point)
	// Commit hands over everything that came so far. The token stands for it.
	Commit() (Token, error)
	// HasPending reports whether anything waits for Commit.
	HasPending() bool
	// Close commits what is pending and ends the stream.
	Close() error
}

// Point is one point of a series.
type Point struct {
	Key  []byte // of the metric
	Slot uint64
	Word uint64 // big-endian word of its 8 bytes, not normalised
	// in nanoseconds since 1970; 0 is the begin of the slot. Buckets without timestamps ignore it
	Time uint64
}

// Token stands for everything that a stream was given up to a commit. It means nothing
// but to the target it came from. The zero token stands for nothing.
type Token struct {
	Position uint64 // the own of the target
	Commit   uint64 // number of the commit in its stream, from 1
}

// Compare orders the tokens of a stream as their commits: it is -1, 0 or 1 where t is
// before, the same as, or behind o.
func (t Token) Compare(o Token) int {
	return cmp.Or(cmp.Compare(t.Position, o.Position), cmp.Compare(t.Commit, o.Commit))
}
