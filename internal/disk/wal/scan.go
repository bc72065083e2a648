package wal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// scanBuffer is the size of a read: large enough that the calls do not show,
// small enough to stay in the processor's second cache level.
const scanBuffer = 256 << 10

// scanner reads the records of one file in order.
type scanner struct {
	r    io.Reader
	buf  []byte
	lo   int   // buf[lo:hi] is read and not yet returned
	hi   int   //
	left int64 // bytes of the file not yet read into buf
	lsn  LSN   // of buf[lo]
	why  string
	sums *sums
}

// newScanner reads from r, which stands at the record with LSN first, left
// bytes before the end of its file. buf is used as the buffer.
func newScanner(r io.Reader, sums *sums, first LSN, left int64, buf []byte) *scanner {
	if cap(buf) < scanBuffer {
		buf = make([]byte, scanBuffer)
	}
	return &scanner{r: r, sums: sums, buf: buf[:cap(buf)], left: left, lsn: first}
}

// fill makes n bytes available from lo on if the file has them.
func (s *scanner) fill(n int) (bool, error) {
	if s.hi-s.lo >= n {
		return true, nil
	}
	if int64(s.hi-s.lo)+s.left < int64(n) {
		return false, nil
	}
	if s.lo > 0 {
		s.hi = copy(s.buf, s.buf[s.lo:s.hi])
		s.lo = 0
	}
	if n > len(s.buf) {
		s.buf = append(s.buf[:s.hi], make([]byte, n-s.hi)...)
		s.buf = s.buf[:cap(s.buf)]
	}
	room := s.buf[s.hi:]
	if int64(len(room)) > s.left {
		room = room[:s.left]
	}
	got, err := io.ReadAtLeast(s.r, room, n-s.hi)
	s.hi += got
	s.left -= int64(got)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		// The file is shorter than it was when it was listed.
		s.left = 0
		return false, nil
	}
	return err == nil, err
}

// next returns the next whole record, which is valid until the next call. At the
// last one it returns ok = false: s.lsn is the clean end and s.why is empty if
// nothing but the end of the file, zeros or limit were met. An error is a failed
// read.
func (s *scanner) next(limit LSN) (f frame, ok bool, err error) {
	if s.why != "" || s.lsn >= limit {
		return f, false, nil
	}
	if have, err := s.fill(frameSize); !have {
		if s.hi > s.lo && !allZero(s.buf[s.lo:s.hi]) {
			s.why = fmt.Sprintf("%d bytes of a record's frame", s.hi-s.lo)
		}
		return f, false, err
	}
	word := binary.LittleEndian.Uint32(s.buf[s.lo:])
	length := word & lengthMask
	end := s.lsn + frameSize + LSN(length)
	switch {
	case word == 0 && binary.LittleEndian.Uint32(s.buf[s.lo+4:]) == 0:
		return f, false, nil
	case length == 0 || length > recordLimit:
		s.why = fmt.Sprintf("record of %d bytes: want 1 to %d", length, recordLimit)
		return f, false, nil
	case end > limit:
		s.why = fmt.Sprintf("record of %d bytes reaches beyond the file's end at LSN %d", length, limit)
		return f, false, nil
	}
	if have, err := s.fill(frameSize + int(length)); !have {
		s.why = fmt.Sprintf("record of %d bytes, of which the file has %d", length,
			int64(s.hi-s.lo)+s.left-frameSize)
		return f, false, err
	}
	f, s.why = s.sums.parseFrame(s.buf[s.lo:s.lo+frameSize+int(length)], s.lsn)
	if s.why != "" {
		return f, false, nil
	}
	s.lsn = end
	s.lo += f.size
	return f, true, nil
}

// droppedBytes reads the file to its end and returns the number of bytes from the
// clean end to the last one that is not zero.
func (s *scanner) droppedBytes() (int64, error) {
	var pos, last int64
	for {
		for i := s.hi - 1; i >= s.lo; i-- {
			if s.buf[i] != 0 {
				last = pos + int64(i-s.lo) + 1
				break
			}
		}
		pos += int64(s.hi - s.lo)
		s.lo, s.hi = 0, 0
		if s.left == 0 {
			return last, nil
		}
		if _, err := s.fill(int(min(s.left, int64(len(s.buf))))); err != nil {
			return last, err
		}
	}
}

func allZero(b []byte) bool {
	for _, c := range b {
		if c != 0 {
			return false
		}
	}
	return true
}
