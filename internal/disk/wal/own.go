package wal

import "dalmatiner/internal/codec/fields"

// The kinds of the log's own records, their first byte.
const (
	ownMark   = 1 // begins a write: the LSN that was durable before it
	ownCopies = 2 // what records of some KiB before it were
	ownPad    = 3 // distance
	ownTwin   = 4 // a record again
)

// markSize is what a mark takes. Its frame begins with markWord, whatever it says,
// so that a file is searched for marks faster than it is read.
const (
	markSize = frameSize + 1 + 8
	markWord = ownFlag | (markSize - frameSize)
)

// copyDistance lies between a record and what repeats it: damage of one block of a
// disk, wherever it begins, takes one of the two.
const copyDistance = 4 << 10

// copySpan is how much of the log is repeated at once: the more, the smaller is what
// each record costs, and the more of the end is not repeated yet after kill -9.
const copySpan = 8 << 10

// ownRoom is the room for own records that a buffer has beside Options.BufferSize.
const ownRoom = 32 << 10

// parseOwn reads numbers behind the kind of an own record.
func parseOwn(rec []byte, numbers ...*uint64) (rest []byte, ok bool) {
	r := fields.Reader{Src: rec[1:]}
	for _, p := range numbers {
		*p = r.Uvarint()
	}
	return r.Src, !r.Bad
}
