package wal

import (
	"encoding/binary"
	"hash/crc32"
	"sync/atomic"
)

// tail is the end of the log: the buffer that records are appended to until the writer
// takes it, and what is to be repeated of them. It is under the lock of the log.
type tail struct {
	buf     []byte
	first   LSN // of buf[0]
	end     LSN // of the next record
	durable *atomic.Uint64
	sums    sums
	young   *copies // of the last records
	elder   *copies // of those before them

	records, bytes int64 // appended; bytes with frames
}

// open makes the buffer, whose first record will have the LSN that end is.
func (t *tail) open(id [16]byte, size int) {
	t.buf = make([]byte, 0, size)
	t.first = t.end
	t.sums = newSums(id)
	t.young, t.elder = new(copies), new(copies)
	t.young.reset(t.end)
	t.elder.reset(t.end)
}

// take returns what is in the buffer and its LSN, and goes on with an empty buffer.
func (t *tail) take(spare []byte) (buf []byte, first LSN) {
	buf, first = t.buf, t.first
	t.buf, t.first = spare[:0], t.end
	return buf, first
}

// hasUnrepeated reports whether records wait to be repeated.
func (t *tail) hasUnrepeated() bool { return t.elder.records+t.young.records > 0 }

// appendPlain appends a record without a head, the concatenation of parts. crc is that of its
// payload, of so many bytes. As for all records, there is room.
func (t *tail) appendPlain(size int, crc uint32, parts ...[]byte) LSN {
	t.begin()
	lsn := t.end
	t.put(uint32(size), crc, nil, parts...)
	first := byte(0)
	for i := len(parts) - 1; i >= 0; i-- {
		if len(parts[i]) > 0 {
			first = parts[i][0]
		}
	}
	t.young.notePlain(frameSize+size, first)
	t.afterAppend()
	return lsn
}

// appendHeaded appends a record with a head. headCRC is that of the head, crc that of both.
func (t *tail) appendHeaded(headCRC, crc uint32, head, body []byte) LSN {
	t.begin()
	size := headFrame + len(head) + len(body)
	lsn, word := t.end, uint32(size)|headedFlag
	var prefix [headFrame]byte
	prefix[0] = byte(len(head))
	binary.LittleEndian.PutUint32(prefix[1:], t.sums.head(headCRC, word, lsn))
	t.put(word, crc, prefix[:], head, body)
	t.young.noteHeaded(frameSize+size, head)
	t.afterAppend()
	return lsn
}

// appendTwice appends a record, padding and the record again.
func (t *tail) appendTwice(rec []byte, crc uint32) LSN {
	t.begin()
	lsn := t.end
	t.put(uint32(len(rec)), crc, nil, rec)
	t.young.notePlain(frameSize+len(rec), rec[0])
	t.pad(t.end)
	t.putOwn(binary.AppendUvarint([]byte{ownTwin}, uint64(t.end-lsn)), rec)
	t.afterAppend()
	return lsn
}

// put appends a record to the buffer.
func (t *tail) put(word, crc uint32, prefix []byte, parts ...[]byte) {
	before := len(t.buf)
	t.buf = binary.LittleEndian.AppendUint32(t.buf, word)
	t.buf = binary.LittleEndian.AppendUint32(t.buf, t.sums.record(crc, word, t.end, prefix))
	t.buf = append(t.buf, prefix...)
	for _, p := range parts {
		t.buf = append(t.buf, p...)
	}
	t.grow(len(t.buf) - before)
	t.records++
}

// putOwn appends a record of the log itself.
func (t *tail) putOwn(payload ...[]byte) {
	size, crc := 0, uint32(0)
	for _, p := range payload {
		size += len(p)
		crc = crc32.Update(crc, castagnoli, p)
	}
	word := uint32(size) | ownFlag
	t.buf = binary.LittleEndian.AppendUint32(t.buf, word)
	t.buf = binary.LittleEndian.AppendUint32(t.buf, t.sums.record(crc, word, t.end, nil))
	for _, p := range payload {
		t.buf = append(t.buf, p...)
	}
	t.grow(frameSize + size)
	t.young.noteOwn(frameSize + size)
}

// grow moves the end of the log behind what was put into the buffer.
func (t *tail) grow(n int) {
	t.end += LSN(n)
	t.bytes += int64(n)
}

// begin begins an empty buffer. It is short enough to be inlined, as noted is.
func (t *tail) begin() {
	if len(t.buf) == 0 {
		t.beginBuffer()
	}
}

// beginBuffer leaves a place for the mark.
func (t *tail) beginBuffer() {
	t.buf = t.buf[:markSize]
	clear(t.buf)
	t.grow(markSize)
	t.young.noteOwn(markSize)
}

var zeros [copyDistance]byte

// pad puts so much between a position and the end of the log that what comes next
// repeats at copyDistance what lies before it.
func (t *tail) pad(past LSN) {
	if far := int(t.end - past); far < copyDistance {
		t.putOwn([]byte{ownPad}, zeros[:max(0, copyDistance-far-frameSize-1)])
	}
}

// putCopies appends what c has.
func (t *tail) putCopies(c *copies) {
	if c.records == 0 {
		return
	}
	var mem [1 + 2*binary.MaxVarintLen64]byte
	head := append(mem[:0], ownCopies)
	head = binary.AppendUvarint(head, uint64(t.end-c.base))
	head = binary.AppendUvarint(head, uint64(t.end)-t.durable.Load())
	t.putOwn(head, c.list)
}

// afterAppend is called with every record that was appended. What was noted copySpan ago,
// which is more than copyDistance, is repeated.
func (t *tail) afterAppend() {
	if t.end-t.young.base >= copySpan {
		t.repeatElder()
	}
}

func (t *tail) repeatElder() {
	t.putCopies(t.elder)
	t.elder, t.young = t.young, t.elder
	t.young.reset(t.end)
}

// repeat repeats all that was not repeated yet.
func (t *tail) repeat() {
	if !t.hasUnrepeated() {
		return
	}
	t.begin()
	t.pad(max(t.elder.last, t.young.last))
	t.putCopies(t.elder)
	t.putCopies(t.young)
	t.elder.reset(t.end)
	t.young.reset(t.end)
}
