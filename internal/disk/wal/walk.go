package wal

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Bounds of the search for a whole record behind a bad one: it is done window by
// window, and checksums of what only looks like a record must not cost more than a
// moment in each.
const (
	searchWindow = 8 << 20
	searchRecord = 1 << 20
	searchWork   = 256 << 20
)

// walk reads the records of one file in order, also those behind damage.
type walk struct {
	f     *file
	file  vfs.File
	ahead *readAhead // reads it, or nil
	sums  *sums
	s     *scanner
	sure  LSN // all below was durable: what is bad there is damage
	asked bool

	// skipped is told of damage with something whole behind it, and of the head of
	// the record that is damaged, where that is known.
	skipped func(from, to LSN, why string, head []byte)
}

// newWalk begins at the first record. buf is used as the buffer. Where the file is
// read ahead, the caller stops that before it closes the file.
func newWalk(f *file, sums *sums, r vfs.File, ahead *readAhead, buf []byte,
	skipped func(from, to LSN, why string, head []byte)) *walk {
	w := &walk{f: f, file: r, ahead: ahead, sums: sums, sure: f.sure, skipped: skipped}
	w.startAt(f.first, buf)
	return w
}

func (w *walk) startAt(lsn LSN, buf []byte) {
	at := headerSize + int64(lsn-w.f.first)
	left := max(0, w.f.size-at)
	src := io.Reader(io.NewSectionReader(w.file, at, left))
	if w.ahead != nil && left > aheadBlock {
		src = w.ahead.start(src)
	}
	w.s = newScanner(src, w.sums, lsn, left, buf)
}

// next returns the next record that is whole. Where there is none, the scanner says
// where and why the records end: that is damage below sure, and else a tear.
func (w *walk) next() (f frame, ok bool, err error) {
	for {
		f, ok, err = w.s.next(w.f.limit)
		if ok || err != nil || w.s.lsn >= w.f.limit {
			return f, ok, err
		}
		if err := w.ask(); err != nil || w.s.lsn >= w.sure {
			return f, false, err
		}
		lsn, why := w.s.lsn, w.s.why
		to, head, err := w.resumeAfter()
		if err != nil || to == 0 {
			return f, false, err
		}
		w.skipped(lsn, to, why, head)
		w.startAt(to, w.s.buf)
	}
}

// ask looks for marks behind a bad place of the newest file: the first one that is not
// known to have been durable. A write that lies behind says that it was.
func (w *walk) ask() error {
	if w.asked || w.s.lsn < w.sure || w.sure >= w.f.limit {
		return nil
	}
	w.asked = true
	pattern := binary.LittleEndian.AppendUint32(nil, markWord)
	return w.windows(markSize, func(src []byte, first LSN) bool {
		for at := 0; ; at++ {
			n := bytes.Index(src[at:], pattern)
			if n < 0 {
				return false
			}
			if at += n; len(src)-at < markSize {
				return false
			}
			mark, why := w.sums.parseFrame(src[at:at+markSize], first+LSN(at))
			if why == "" && mark.rec[0] == ownMark {
				w.sure = max(w.sure, min(LSN(binary.LittleEndian.Uint64(mark.rec[1:])), w.f.limit))
			}
		}
	})
}

// windows gives fn what the file has from the bad place on, piece by piece, until fn
// is done. Pieces overlap by overlap bytes.
func (w *walk) windows(overlap int64, fn func(src []byte, first LSN) (done bool)) error {
	at := headerSize + int64(w.s.lsn-w.f.first)
	end := w.f.size
	if room := int64(min(w.f.limit-w.f.first, maxLSN)); room < end-headerSize {
		end = headerSize + room
	}
	var src []byte
	for at < end {
		size := min(end-at, searchWindow)
		if int64(cap(src)) < size {
			src = make([]byte, size)
		}
		n, err := w.file.ReadAt(src[:size], at)
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if fn(src[:n], w.f.first+LSN(at-headerSize)) || int64(n) < size || at+size == end {
			return nil
		}
		at += size - overlap
	}
	return nil
}

// resumeAfter returns where the records go on behind the bad place at which the scanner
// stands, or 0, and the head of the record at that place, where it is whole. The
// checksums of records and heads cover the position, so that no chance makes one.
func (w *walk) resumeAfter() (to LSN, head []byte, err error) {
	at := headerSize + int64(w.s.lsn-w.f.first)
	var mem [frameSize + headFrame + maxHead]byte
	n, err := w.file.ReadAt(mem[:], at)
	if err != nil && !errors.Is(err, io.EOF) {
		return 0, nil, err
	}
	if head, size := w.sums.parseHead(mem[:n], w.s.lsn); size > 0 && w.s.lsn+LSN(size) <= w.f.limit {
		return w.s.lsn + LSN(size), head, nil
	}
	start := w.s.lsn
	err = w.windows(searchRecord+frameSize, func(src []byte, first LSN) bool {
		skip := 0
		if first == start {
			skip = 1
		}
		if n := w.wholeRecord(src, skip, first); n >= 0 {
			to = first + LSN(n)
			return true
		}
		return false
	})
	return to, nil, err
}

// wholeRecord returns where, from a place on, src holds a whole record or the whole
// head of one, or -1. Its first byte lies at an LSN.
func (w *walk) wholeRecord(src []byte, from int, first LSN) int {
	for at, work := from, 0; at+frameSize < len(src) && work < searchWork; at++ {
		word := binary.LittleEndian.Uint32(src[at:])
		length := int(word & lengthMask)
		if word&headedFlag != 0 {
			if _, size := w.sums.parseHead(src[at:], first+LSN(at)); size > 0 {
				return at
			}
			continue
		}
		rest := src[at+frameSize:]
		if length == 0 || length > searchRecord || length > len(rest) {
			continue
		}
		work += length
		crc := w.sums.record(crc32.Checksum(rest[:length], castagnoli), word, first+LSN(at), nil)
		if crc == binary.LittleEndian.Uint32(src[at+4:]) {
			return at
		}
	}
	return -1
}
