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

// putOwn appends a record of the log itself. mu is held, and there is room.
func (l *Log) putOwn(payload ...[]byte) {
	size, crc := 0, uint32(0)
	for _, p := range payload {
		size += len(p)
		crc = crc32.Update(crc, castagnoli, p)
	}
	word := uint32(size) | ownFlag
	l.cur = binary.LittleEndian.AppendUint32(l.cur, word)
	l.cur = binary.LittleEndian.AppendUint32(l.cur, l.sums.record(crc, word, l.end, nil))
	for _, p := range payload {
		l.cur = append(l.cur, p...)
	}
	l.grow(frameSize + size)
	l.young.own(frameSize + size)
}

// grow moves the end of the log behind what was put into the buffer.
func (l *Log) grow(n int) {
	l.end += LSN(n)
	l.stats.Bytes += int64(n)
}

// begin begins an empty buffer with a place for its mark.
func (l *Log) begin() {
	if len(l.cur) == 0 {
		l.cur = l.cur[:markSize]
		clear(l.cur)
		l.grow(markSize)
		l.young.own(markSize)
	}
}

// fillMark writes the mark at the begin of a buffer that is about to be written.
func (l *Log) fillMark(buf []byte, first LSN) {
	buf[frameSize] = ownMark
	binary.LittleEndian.PutUint64(buf[frameSize+1:], l.durable.Load())
	binary.LittleEndian.PutUint32(buf, markWord)
	crc := l.writeSums.record(crc32.Checksum(buf[frameSize:markSize], castagnoli), markWord, first, nil)
	binary.LittleEndian.PutUint32(buf[4:], crc)
}

var zeros [copyDistance]byte

// pad puts so much between a position and the end of the log that what comes next
// repeats at copyDistance what lies before it.
func (l *Log) pad(past LSN) {
	if far := int(l.end - past); far < copyDistance {
		l.putOwn([]byte{ownPad}, zeros[:max(0, copyDistance-far-frameSize-1)])
	}
}

// putCopies appends what c has.
func (l *Log) putCopies(c *copies) {
	if c.records == 0 {
		return
	}
	var mem [1 + 2*binary.MaxVarintLen64]byte
	head := append(mem[:0], ownCopies)
	head = binary.AppendUvarint(head, uint64(l.end-c.base))
	head = binary.AppendUvarint(head, uint64(l.end)-l.durable.Load())
	l.putOwn(head, c.list)
}

// noted is called with every record that was appended. What was noted copySpan ago,
// which is more than copyDistance, is repeated.
func (l *Log) noted() {
	if l.end-l.young.base < copySpan {
		return
	}
	l.putCopies(l.elder)
	l.elder, l.young = l.young, l.elder
	l.young.reset(l.end)
}

// repeat repeats all that was not repeated yet.
func (l *Log) repeat() {
	if l.elder.records+l.young.records == 0 {
		return
	}
	l.begin()
	l.pad(max(l.elder.last, l.young.last))
	l.putCopies(l.elder)
	l.putCopies(l.young)
	l.elder.reset(l.end)
	l.young.reset(l.end)
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
