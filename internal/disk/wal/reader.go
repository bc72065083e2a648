package wal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// ErrNoRecord is wrapped by the error of Reader.Record where there is no whole record.
var ErrNoRecord = errors.New("wal: no whole record")

// usualRecord is what is read at once of a record whose length is not known yet.
const usualRecord = 1 << 10

// Reader reads single records by their LSN. It may read while records are appended. It is
// not for concurrent use.
type Reader struct {
	l     *Log
	file  vfs.File // open, or nil
	first LSN      // of its records
	past  LSN      // where the next file begins
	buf   []byte
	sums  sums
}

// NewReader returns a reader of the records that were in the log when it was opened. The
// caller closes it.
func (l *Log) NewReader() *Reader {
	return &Reader{l: l, sums: newSums(l.found.id), buf: make([]byte, usualRecord)}
}

// Record returns the record at lsn, with its head. The slice is valid until the next call.
// The error wraps ErrNoRecord if damage, or no record, is at lsn. Any other error is a
// failed read.
func (r *Reader) Record(lsn LSN) ([]byte, error) {
	if r.file == nil || lsn < r.first || lsn >= r.past {
		if err := r.seek(lsn); err != nil {
			return nil, err
		}
	}
	at := headerSize + int64(lsn-r.first)
	n, err := r.file.ReadAt(r.buf[:usualRecord], at)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, r.readFailure(err)
	}
	if n < frameSize {
		return nil, r.notFound(lsn, "the file ends")
	}
	length := binary.LittleEndian.Uint32(r.buf) & lengthMask
	if length == 0 || length > recordLimit {
		return nil, r.notFound(lsn, fmt.Sprintf("%d bytes", length))
	}
	size := frameSize + int(length)
	if size > n {
		if err := r.rest(n, size, at); err != nil {
			if errors.Is(err, io.EOF) {
				return nil, r.notFound(lsn, "the file ends")
			}
			return nil, r.readFailure(err)
		}
	}
	f, why := r.sums.parseFrame(r.buf[:size], lsn)
	if why == "" && f.own {
		var back uint64
		var ok bool
		if f.rec, ok = parseOwn(f.rec, &back); !ok || r.buf[frameSize] != ownTwin {
			why = "a record of the log's own"
		}
	}
	if why != "" {
		return nil, r.notFound(lsn, why)
	}
	return f.rec, nil
}

// rest reads what is missing of a record of which n bytes of size are read. The
// memory grows as far as the file gives bytes: its length is not checked yet.
func (r *Reader) rest(n, size int, at int64) error {
	for n < size {
		step := min(size-n, scanBuffer)
		if len(r.buf) < n+step {
			r.buf = append(r.buf[:n], make([]byte, step)...)
		}
		got, err := r.file.ReadAt(r.buf[n:n+step], at+int64(n))
		n += got
		if got < step {
			return err
		}
	}
	return nil
}

// seek opens the file that holds a position.
func (r *Reader) seek(lsn LSN) error {
	r.Close()
	l := r.l
	l.mu.Lock()
	r.first, r.past = 0, l.opened
	for _, f := range l.oldFiles() {
		if f.first > lsn {
			r.past = f.first
			break
		}
		if r.first = f.first; f.gone {
			r.first = 0
		}
	}
	l.mu.Unlock()
	if r.first == 0 || lsn >= r.past {
		return r.notFound(lsn, "it is in no file")
	}
	file, err := l.o.FS.Open(l.o.path(r.first))
	if err != nil {
		return r.readFailure(err)
	}
	r.file = file
	return nil
}

// Close closes the file that the reader has open. A later Record opens one again.
func (r *Reader) Close() {
	if r.file != nil {
		_ = r.file.Close() // it was only read
		r.file = nil
	}
}

func (r *Reader) notFound(lsn LSN, why string) error {
	return fmt.Errorf("%w at LSN %d of %s: %s", ErrNoRecord, lsn, r.l.o.path(r.first), why)
}

func (r *Reader) readFailure(err error) error {
	return fmt.Errorf("wal: read %s: %w", r.l.o.path(r.first), err)
}
