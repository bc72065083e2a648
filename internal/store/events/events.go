// Package events stores events: bodies that happened at a time, to the nanosecond, in a bucket.
//
// An event is known by its bucket, its time and its id. A second event with the same three is a
// repeat: it is dropped and counted. Equal bodies with other ids are other events, and all are
// kept. The order of events is that of (time, id).
package events

import (
	"context"
	"errors"
	"math"
	"time"

	"dalmatiner/internal/disk/eventfile"
	"dalmatiner/internal/model/account"
	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/write"
)

// MaxBody is the longest body of an event in bytes. Longer ones are refused as too_large.
const MaxBody = eventfile.MaxBody

// ID tells events of one time from each other. A sender that may send an event again gives it an
// id of its own, and the same time.
type ID = eventfile.ID

// Event is one event: its time in nanoseconds since 1970, zero where Write is to give it that of
// arrival; its id, zero where Write is to
// give it one; and its body, an Erlang external term as on the wire. The store does not look into
// the body.
type Event = eventfile.Event

// Written says what became of the events of a Write.
type Written struct {
	// Token stands for the events. They outlive a crash when write.Target's
	// WaitDurable has returned for it.
	Token write.Token
	// Counts count each event once: accepted, duplicate (a repeat, dropped), late (stored, and
	// older than the newest event of the bucket by more than its grace, unless its time is that of
	// arrival), or refused for a reason.
	// The other counts are those of points, and zero.
	Counts account.Counts
	// Refused are the events that were refused, in the order of the list.
	Refused []Refused
	Ahead   Ahead
}

// Ahead are events that said that they are of a time too far ahead. They are stored with the time
// of arrival, and the field `sent` has their own.
type Ahead struct {
	Events int
	Sent   int64 // the time of the first of them
}

// Refused is an event of a Write that was refused.
type Refused struct {
	At  int // in the list
	Why account.Reason
}

// Gap is a range of time of which not all events could be read. What was readable in it was
// given.
type Gap struct {
	Start, End int64 // in nanoseconds; End is not part of it
	Events     int64 // that are missing, as far as is known
}

// Extent is what a read of a bucket and a range of time goes through.
type Extent struct {
	Files    int64 // that have some of it
	Blocks   int64 // of these files that may have some of it
	Bytes    int64 // of these blocks, as stored
	InMemory int64 // events of the range that are in no file yet
}

// Stop is returned by the function of a Read to end it: the Read then returns no error.
//
//lint:ignore ST1012 it is no failure, and named like fs.SkipAll
var Stop = errors.New("no more events are wanted")

// ErrClosed is the error of a call after the store was closed.
var ErrClosed = errors.New("the store of events is closed")

// Store takes and gives events. Behind it stands one data directory, or something that asks the
// stores of several nodes. Its methods may be called concurrently. An error about a bucket that is
// not there wraps buckets.ErrUnknown.
type Store interface {
	// Write stores the events of one sender, in any order of time, and is done with the slice and its
	// bodies when it returns. They are readable from then on. A refused event is counted and is not an
	// error. An error means that none was stored, and that none can be. It waits while senders are
	// held back. It sets the times and the ids of events that came without, and the time and the body
	// of those that are too far ahead.
	Write(bucket string, list []Event) (Written, error)

	// Read calls fn for the events with start <= time < end in the order of (time, id), each once.
	// The event and its body are fn's during the call only. Memory is bounded, however many there
	// are; where fn writes to a client, ctx is one of memory.Lease.WithContext. Read ends with the
	// first error of fn, which it returns unless it is Stop, and when ctx is done. Gaps say, in order
	// of time, where damage took events from the answer, up to where the Read ended. Expired events
	// are not given.
	Read(ctx context.Context, bucket string, start, end int64, fn func(*Event) error) (gaps []Gap,
		err error)

	// ReadBack is Read in the other order: the newest event comes first. Gaps are in order of time,
	// too.
	ReadBack(ctx context.Context, bucket string, start, end int64, fn func(*Event) error) (gaps []Gap,
		err error)

	// Count returns how many events lie in each step of the range: in count i those with
	// start + i × step <= time < start + (i + 1) × step, of which the last one ends at end. There
	// are at most MaxSteps. Gaps are as in Read; their events are not in the counts.
	Count(ctx context.Context, bucket string, start, end, step int64) (counts []int64, gaps []Gap,
		err error)

	// Extent says what a Read of the range goes through.
	Extent(bucket string, start, end int64) (Extent, error)

	// Follow returns a live tail of a bucket: the events that are written from now on. It keeps up
	// to so many bytes of them until they are taken, at least MaxBody, at most MaxFollow.
	Follow(bucket string, bytes int) (*Follower, error)
}

// MaxSteps is how many counts one Count may ask for.
const MaxSteps = 1 << 20

// MaxFollow is how many bytes of events a Follower keeps at most.
const MaxFollow = 16 << 20

// Piece returns the length of the pieces of time of a bucket in nanoseconds: its points per file.
// Piece n holds the times from n × length on. Original clients are answered with one list for each
// piece.
func Piece(b buckets.Info) int64 {
	ms := b.Resolution * int64(time.Millisecond)
	if b.PPF > math.MaxInt64/ms {
		return math.MaxInt64
	}
	return b.PPF * ms
}
