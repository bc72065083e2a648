package wal

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Bounds of the search for a whole record behind a bad one: it should lie
// within the largest record that is written, and checksums of what only looks
// like one must not cost more than a moment.
const (
	searchWindow = 2 * DefaultMaxRecord
	searchRecord = 1 << 20
	searchWork   = 256 << 20
)

// sector is the least that a disk writes or does not write.
const sector = 512

// walk reads the records of one file in order, also those behind damage.
type walk struct {
	f       *file
	newest  bool // its end may never have been durable
	file    vfs.File
	ahead   *ahead // reads it, or nil
	s       *scanner
	skipped func(from, to LSN, why string) // told of damage with whole records behind it
}

// newWalk begins at the first record. buf is used as the buffer. Where the file is
// read ahead, the caller stops that before it closes the file.
func newWalk(f *file, newest bool, r vfs.File, ahead *ahead, buf []byte, skipped func(from, to LSN, why string)) *walk {
	w := &walk{f: f, newest: newest, file: r, ahead: ahead, skipped: skipped}
	w.from(f.first, buf)
	return w
}

func (w *walk) from(lsn LSN, buf []byte) {
	at := headerSize + int64(lsn-w.f.first)
	left := max(0, w.f.size-at)
	src := io.Reader(io.NewSectionReader(w.file, at, left))
	if w.ahead != nil && left > aheadBlock {
		src = w.ahead.start(src)
	}
	w.s = newScanner(src, lsn, left, buf)
}

// next is as that of the scanner, which says where and why the records end.
func (w *walk) next() (rec []byte, lsn LSN, ok bool, err error) {
	for {
		rec, lsn, ok, err = w.s.next(w.f.limit)
		if ok || err != nil || lsn >= w.f.limit {
			return rec, lsn, ok, err
		}
		to, err := w.behind()
		if err != nil || to == 0 {
			return nil, lsn, false, err
		}
		w.skipped(lsn, to, w.s.why)
		w.from(to, w.s.buf)
	}
}

// behind returns the first whole record behind the bad place at which the
// scanner stands, if that place is damage, or 0. The checksum of a record
// covers its position, so that no chance makes one.
//
// In the newest file a power failure may have kept what was written later and
// not what was written before. What it did not keep of a new file reads as
// zeros, from one end of a sector, or of what an earlier write had put there,
// to the other: a place without such zeros was written, and is damaged.
func (w *walk) behind() (LSN, error) {
	at := headerSize + int64(w.s.lsn-w.f.first)
	size := min(w.f.size-at, searchWindow, int64(w.f.limit-w.s.lsn))
	if size <= frameSize || w.newest && w.s.why == "" {
		return 0, nil
	}
	src := make([]byte, size)
	n, err := w.file.ReadAt(src, at)
	if err != nil && !errors.Is(err, io.EOF) {
		return 0, err
	}
	n = wholeRecord(src[:n], w.s.lsn)
	if n == 0 || w.newest && holed(src[:n], at) {
		return 0, nil
	}
	return w.s.lsn + LSN(n), nil
}

// wholeRecord returns where behind its first byte src, which begins at an LSN,
// holds a whole record, or 0.
func wholeRecord(src []byte, first LSN) int {
	var tail trailer
	for at, work := 1, 0; at+frameSize < len(src) && work < searchWork; at++ {
		length := binary.LittleEndian.Uint32(src[at:])
		rest := src[at+frameSize:]
		if length == 0 || length > searchRecord || int(length) > len(rest) {
			continue
		}
		work += int(length)
		crc := tail.checksum(crc32.Checksum(rest[:length], castagnoli), length, first+LSN(at))
		if crc == binary.LittleEndian.Uint32(src[at+4:]) {
			return at
		}
	}
	return 0
}

// holed reports whether src, which stands at an offset of the file, may have
// lost a sector that ends in it.
func holed(src []byte, offset int64) bool {
	for len(src) > 0 {
		n := int(sector - offset%sector)
		if n > len(src) {
			return false
		}
		if allZero(src[:n]) {
			return true
		}
		src, offset = src[n:], offset+int64(n)
	}
	return false
}
