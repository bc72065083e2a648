package wal

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
)

// Append adds one record, the concatenation of parts, and returns its LSN. The parts are
// copied. Records have the order of their LSNs. When Append returns, the record is in
// memory only: WaitDurable and Sync wait until it is safe.
//
// Append blocks while the buffer is full. It refuses an empty record and one of more than
// Options.MaxRecord bytes. It returns ErrClosed after Close, and the failure of a log that
// has failed.
func (l *Log) Append(parts ...[]byte) (LSN, error) {
	size, crc := 0, uint32(0)
	for _, p := range parts {
		size += len(p)
		crc = crc32.Update(crc, castagnoli, p)
	}
	if err := l.checkSize(size); err != nil {
		return 0, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.awaitBuffer(frameSize + size); err != nil {
		return 0, err
	}
	before := len(l.tail.buf)
	lsn := l.tail.appendPlain(size, crc, parts...)
	l.kickWriter(before)
	return lsn, nil
}

// AppendHeaded is Append for the record head + body. The head, of 1 to 255 bytes, is what
// the caller needs to know of the record if the rest is damaged: Report.Lost gives it. It
// has a checksum of its own, and the log repeats it some KiB later.
func (l *Log) AppendHeaded(head, body []byte) (LSN, error) {
	size := len(head) + len(body)
	if len(head) == 0 || len(head) > maxHead {
		return 0, fmt.Errorf("wal: record with a head of %d bytes: want 1 to %d", len(head), maxHead)
	}
	if err := l.checkSize(size); err != nil {
		return 0, err
	}
	headCRC := crc32.Checksum(head, castagnoli)
	crc := crc32.Update(headCRC, castagnoli, body)
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.awaitBuffer(frameSize + headFrame + size); err != nil {
		return 0, err
	}
	before := len(l.tail.buf)
	lsn := l.tail.appendHeaded(headCRC, crc, head, body)
	l.kickWriter(before)
	return lsn, nil
}

// AppendTwice is Append for a record that has to survive the loss of one block of the
// disk. The log holds it a second time, some KiB behind the first, with nothing but padding
// between the two. A replay gives one of them: the first with the LSN returned, or, where
// that is damaged, the second with a higher LSN.
func (l *Log) AppendTwice(rec []byte) (LSN, error) {
	if err := l.checkSize(len(rec)); err != nil {
		return 0, err
	}
	crc := crc32.Checksum(rec, castagnoli)
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.awaitBuffer(2*(frameSize+len(rec)) + copyDistance + twinExtra); err != nil {
		return 0, err
	}
	before := len(l.tail.buf)
	lsn := l.tail.appendTwice(rec, crc)
	l.kickWriter(before)
	return lsn, nil
}

// twinExtra is what a repetition has beside the record and the distance.
const twinExtra = 2*frameSize + 2 + binary.MaxVarintLen64

func (l *Log) checkSize(size int) error {
	if size == 0 || size > l.o.MaxRecord {
		return fmt.Errorf("wal: record of %d bytes: want 1 to %d; split it", size, l.o.MaxRecord)
	}
	return nil
}

// awaitBuffer waits until the buffer has room for n bytes. mu is held.
func (l *Log) awaitBuffer(n int) error {
	for l.err == nil && !l.closing && len(l.tail.buf) > 0 && len(l.tail.buf)+n > l.o.BufferSize {
		l.stalled++
		l.stats.Stalls++
		l.kick()
		l.room.Wait()
		l.stalled--
	}
	if l.err != nil {
		return l.err
	}
	if l.closing {
		return ErrClosed
	}
	return nil
}

// kickWriter tells the writer of the first bytes of a buffer, and when there are
// enough for a write.
func (l *Log) kickWriter(before int) {
	if before == 0 || before < writePiece && len(l.tail.buf) >= writePiece {
		l.kick()
	}
}
