package wal

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"os"

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

// Inspect reads all records in dir in order and changes nothing, whether or not
// the log is open elsewhere. from claims, where it is not 0, that the records
// from there on should exist. What would be replayed is given to fn.
//
// Unlike Replay, which cannot know whether the end of the newest file was ever
// durable, it calls a bad place damaged when a whole record lies behind it. A
// missing directory is an empty log. The errors are that of fn, failed I/O, a
// file that was removed meanwhile among it, and ErrFormat.
func Inspect(fs vfs.FS, dir string, from LSN, fn func(lsn LSN, rec []byte) error) (Report, error) {
	l := &Log{o: Options{FS: fs, Dir: dir}, last: -1}
	if err := l.o.setDefaults(); err != nil {
		return Report{}, err
	}
	files, err := listFiles(&l.o)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return Report{}, err
	}
	if err := l.adopt(files); err != nil {
		return Report{}, err
	}
	l.setLimits()
	p := replay{l: l, fn: fn, files: l.files, last: l.last}
	if err := p.run(); err != nil {
		return p.report, err
	}
	p.checkStart(from)
	return p.report, p.judgeTorn()
}

// checkStart reports what is missing between from and the first file, and
// behind the last one.
func (p *replay) checkStart(from LSN) {
	if from == 0 {
		return
	}
	p.from = from
	if len(p.files) > 0 {
		p.reach = 0
		p.checkGap(0)
	}
	if from > p.l.seen {
		p.report.Missing = append(p.report.Missing, Gap{From: p.l.seen, To: from})
	}
}

// judgeTorn moves the places with a whole record behind them to the damaged
// ones.
func (p *replay) judgeTorn() error {
	var torn []Place
	for _, place := range p.report.Torn {
		whole, err := p.recordBehind(place)
		if err != nil {
			return err
		}
		if whole {
			place.Reason += "; whole records lie behind it"
			p.report.Damaged = append(p.report.Damaged, place)
		} else {
			torn = append(torn, place)
		}
	}
	p.report.Torn = torn
	return nil
}

// recordBehind looks for a record that is whole. Its checksum covers its
// position, so that no chance makes one.
func (p *replay) recordBehind(place Place) (bool, error) {
	if place.Offset < headerSize || place.Bytes <= frameSize {
		return false, nil
	}
	f, err := p.l.o.FS.Open(place.File)
	if err != nil {
		return false, err
	}
	defer f.Close()
	src := make([]byte, min(place.Bytes, searchWindow))
	n, err := f.ReadAt(src, place.Offset)
	if err != nil && !errors.Is(err, io.EOF) {
		return false, err
	}
	src = src[:n]
	var tail [12]byte
	for at, work := 1, 0; at+frameSize < len(src) && work < searchWork; at++ {
		length := binary.LittleEndian.Uint32(src[at:])
		rest := src[at+frameSize:]
		if length == 0 || length > searchRecord || int(length) > len(rest) {
			continue
		}
		work += int(length)
		putTrailer(&tail, length, place.LSN+LSN(at))
		crc := crc32.Update(crc32.Checksum(rest[:length], castagnoli), castagnoli, tail[:])
		if crc == binary.LittleEndian.Uint32(src[at+4:]) {
			return true, nil
		}
	}
	return false, nil
}
