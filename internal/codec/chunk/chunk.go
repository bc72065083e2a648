// Package chunk encodes 720 slots of one series, or a piece of them, into bytes that need
// nothing else to be read. It decodes the points, or only their aggregates.
//
// A chunk begins at a multiple of 720 slots, and any subset of its slots is set. Points
// are words (package point). Integers and floats survive bit for bit, with -0, the
// infinities and every NaN payload.
//
// Readers of encoded bytes are safe on damaged input: they return an error that wraps
// ErrCorrupt, or wrong values, and never panic. Only the checksum of the file around the
// chunk tells wrong values from right ones. Nothing keeps a slice that it was given.
//
// Functions may be called concurrently. A value of Encoder, Adder or Digester serves one
// goroutine at a time.
//
// DESIGN.md describes the bytes. digest.go names the paper of the digest.
package chunk

import "dalmatiner/internal/codec/intlist"

const (
	// Slots is the number of slots of a chunk: 12 minutes of seconds.
	Slots = intlist.MaxLen
	// Lane is the number of slots, and of values of a list, that are decoded without the
	// rest of the chunk. Float sums are taken lane by lane as well, see Sum.
	Lane = intlist.Lane
	// intlist.MaxLanes is the number of lanes of a full chunk.
)

// ErrCorrupt is wrapped by every error about bytes that this package did not write.
var ErrCorrupt = intlist.ErrCorrupt

// Header holds the aggregates of a chunk, of a part of one, or of a rollup of several. Only slots
// with values count, which stale markers are not. Offsets are in slots, from the first slot of what
// the Header stands for.
type Header struct {
	// Count is the number of slots with a value. It is 0 where none has one, and no other
	// field has a meaning then.
	Count int
	// FirstOff and LastOff are the first and the last of these slots.
	FirstOff, LastOff int
	// First and Last are the words of those slots.
	First, Last uint64
	// Min and Max are the words of the smallest and the largest value,
	// compared as Less does: NaN is skipped and the first of equal values is
	// kept. Both are point.Unset when every value is NaN.
	Min, Max uint64
	// Sum is the sum of the values.
	Sum Sum
	// Rises tells that every value is finite and none is below the one before it, compared
	// as Less does. So a counter grew by the last value less the first.
	Rises bool
}
