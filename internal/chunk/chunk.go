// Package chunk encodes 720 slots of one series, or a piece of them, into bytes that need
// nothing else to be read. It decodes the points, or only their aggregates.
//
// A chunk begins at a multiple of 720 slots, and any subset of its slots is set. Points
// are words (package point). Integers and floats survive bit for bit, with -0, the
// infinities and every NaN payload.
//
// All functions are safe on damaged input: they return an error that wraps ErrCorrupt, or
// wrong values, but never panic. The checksum of the file around the chunk is what tells
// wrong values from right ones. DESIGN.md describes the bytes.
package chunk

import "errors"

const (
	// Slots is the number of slots of a chunk.
	Slots = 720
	// Lane is the number of slots that can be decoded without decoding the
	// rest of the chunk. Float sums are also taken lane by lane, see Sum.
	Lane = 60
	// maxLanes is the number of lanes of a full chunk.
	maxLanes = Slots / Lane
)

// ErrCorrupt is wrapped by every error about bytes that no Encoder wrote.
var ErrCorrupt = errors.New("damaged chunk")

// Header holds the aggregates of a chunk. Only set slots count, except in
// Filled. Offsets are slots within the chunk.
type Header struct {
	// Count is the number of set slots, at least 1.
	Count int
	// FirstOff and LastOff are the first and the last set slot.
	FirstOff, LastOff int
	// First and Last are the words of those slots.
	First, Last uint64
	// Min and Max are the words of the smallest and the largest value,
	// compared as Less does: NaN is skipped and the first of equal values is
	// kept. Both are point.Unset when every value is NaN.
	Min, Max uint64
	// Sum is the sum of the set values.
	Sum Sum
	// Filled is the sum over every slot of [FirstOff, LastOff], where a slot
	// that is not set counts as the last set one before it. FilledTo extends
	// it to a later slot.
	Filled Sum
}

// FilledTo returns the sum over the slots [FirstOff, end), where a slot that is
// not set counts as the last set one before it. end is above LastOff.
func (h *Header) FilledTo(end int) Sum {
	return h.Filled.Plus(Repeat(h.Last, end-h.LastOff-1))
}
