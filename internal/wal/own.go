package wal

import (
	"encoding/binary"
	"hash/crc32"
)

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

// fillMark writes the mark at the begin of a buffer that is about to be written.
func (l *Log) fillMark(buf []byte, first LSN) {
	buf[frameSize] = ownMark
	binary.LittleEndian.PutUint64(buf[frameSize+1:], l.durable.Load())
	binary.LittleEndian.PutUint32(buf, markWord)
	crc := l.writeSums.record(crc32.Checksum(buf[frameSize:markSize], castagnoli), markWord, first, nil)
	binary.LittleEndian.PutUint32(buf[4:], crc)
}

// parseOwn reads numbers behind the kind of an own record.
func parseOwn(rec []byte, numbers ...*uint64) (rest []byte, ok bool) {
	rest = rec[1:]
	for _, p := range numbers {
		v, n := binary.Uvarint(rest)
		if n <= 0 {
			return nil, false
		}
		*p, rest = v, rest[n:]
	}
	return rest, true
}
