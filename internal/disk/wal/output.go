package wal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/vfs"

	"dalmatiner/internal/host/durable"
)

// output is the newest file of the log and lastFile: what is written. It belongs to the
// writer, and before that to Open.
type output struct {
	o    *Options
	id   [16]byte
	sums sums

	active vfs.File // nil = the next write creates a file
	size   int64    // of active
	clean  LSN      // no records between it and the next file's first LSN
	prev   LSN      // first LSN of the newest file, 0 = none

	// LSN up to which the disk has given the newest file its room; 0 = not known. Anybody may read it
	granted atomic.Uint64

	lastMake bool     // lastFile is to be made anew
	lastOpen vfs.File // lastFile, or nil
	lastMem  []byte
	newest   header // as lastFile has it
}

// name is that of the newest file.
func (w *output) name() string { return w.o.path(w.prev) }

// create begins the file for first, and returns what is known of it. Header and
// directory entry are durable before the first record is written, so that an unreadable
// header in front of records is damage and never a torn creation.
func (w *output) create(first LSN) (file, error) {
	name := w.o.path(first)
	if err := w.beginLast(first); err != nil {
		return file{}, err
	}
	f, err := w.o.FS.Create(name, vfs.WriteCategoryUnspecified)
	if err != nil {
		return file{}, fmt.Errorf("create %s: %w", name, err)
	}
	w.active, w.size = f, headerSize
	if err := f.Preallocate(0, w.o.FileSize); err != nil {
		// Not every file system can; a full disk shows in the writes.
		w.o.Logger.Debug("wal: preallocate", "file", name, "bytes", w.o.FileSize, "err", err)
	} else {
		w.granted.Store(uint64(first) + uint64(w.o.FileSize-headerSize))
	}
	h := header{id: w.id, first: first, clean: min(w.clean, first), prev: w.prev}
	n, err := f.Write(appendHeader(make([]byte, 0, headerSize), h))
	if err == nil && n < headerSize {
		err = io.ErrShortWrite
	}
	if err != nil {
		return file{}, fmt.Errorf("write header of %s: %w", name, err)
	}
	if err := f.Sync(); err != nil {
		return file{}, fmt.Errorf("fsync %s: %w", name, err)
	}
	if err := durable.SyncDir(w.o.FS, w.o.Dir); err != nil {
		return file{}, err
	}
	// From now on it is missing where it is not there.
	if err := w.writeLast(&fileState{head: h, durable: first}, true); err != nil {
		return file{}, err
	}
	w.prev = first
	return file{first: first, head: h}, nil
}

// fit returns the size of the whole records at the head of buf that go into the active
// file, 0 where it is full.
func (w *output) fit(buf []byte) int {
	n := fit(buf, w.o.FileSize-w.size)
	if n == 0 && w.size == headerSize {
		// A record larger than a file gets a file of its own.
		n = frameSize + int(binary.LittleEndian.Uint32(buf)&lengthMask)
	}
	return n
}

// mark writes the mark at the begin of a buffer that is about to be written.
func (w *output) mark(buf []byte, first, durable LSN) {
	buf[frameSize] = ownMark
	binary.LittleEndian.PutUint64(buf[frameSize+1:], uint64(durable))
	binary.LittleEndian.PutUint32(buf, markWord)
	crc := w.sums.record(crc32.Checksum(buf[frameSize:markSize], castagnoli), markWord, first, nil)
	binary.LittleEndian.PutUint32(buf[4:], crc)
}

// write appends to the active file. It destroys buf, because vfs.File.Write may.
func (w *output) write(buf []byte) error {
	got, err := w.active.Write(buf)
	if err == nil && got < len(buf) {
		err = io.ErrShortWrite
	}
	if err != nil {
		return fmt.Errorf("write of %d bytes to %s: %w", len(buf), w.name(), err)
	}
	w.size += int64(len(buf))
	return nil
}

// end closes the active file, which is fsynced and ends at end.
func (w *output) end(end LSN) error {
	f := w.active
	w.active, w.clean = nil, end
	w.granted.Store(0)
	if err := f.Close(); err != nil {
		return fmt.Errorf("close %s: %w", w.name(), err)
	}
	return nil
}

// close closes what is open. cause is why the log failed, or nil; the first error is
// returned.
func (w *output) close(cause error) error {
	if w.lastOpen != nil {
		var err error
		if cause == nil {
			err = w.lastOpen.SyncData()
		}
		if err = errors.Join(err, w.lastOpen.Close()); cause == nil && err != nil {
			cause = fmt.Errorf("close %s: %w", w.o.FS.PathJoin(w.o.Dir, lastFile), err)
		}
	}
	if w.active != nil {
		err := w.active.Close()
		if cause == nil && err != nil {
			cause = fmt.Errorf("close %s: %w", w.name(), err)
		}
	}
	return cause
}

// openLast opens lastFile, and makes it where there is no whole one.
func (w *output) openLast(m *fileState) error {
	if w.lastMake {
		if err := createLast(w.o.FS, w.o.Dir, m); err != nil {
			return err
		}
		w.lastMake = false
	}
	name := w.o.FS.PathJoin(w.o.Dir, lastFile)
	f, err := w.o.FS.OpenReadWrite(name, vfs.WriteCategoryUnspecified)
	if err != nil {
		return fmt.Errorf("open %s: %w", name, err)
	}
	w.lastOpen = f
	return nil
}

// beginLast makes sure that lastFile is there before the file for first is.
func (w *output) beginLast(first LSN) error {
	if w.lastOpen != nil {
		return nil
	}
	return w.openLast(&fileState{head: header{id: w.id, first: first}})
}

// mendLast makes lastFile say m when the log is opened. What fails there is tried again
// with the first file.
func (w *output) mendLast(m *fileState) {
	err := w.openLast(m)
	if err == nil {
		err = w.writeLast(m, true)
	}
	if err != nil {
		w.o.Logger.Warn("wal: how far the log reaches could not be noted", "err", err)
	}
}

// writeLast notes how far the log reaches. Without sync a power failure may take
// the note, but not what it was before.
func (w *output) writeLast(m *fileState, sync bool) error {
	w.newest = m.head
	for at := int64(0); at <= copyDistance; at += copyDistance {
		w.lastMem = m.append(w.lastMem[:0])
		if _, err := w.lastOpen.WriteAt(w.lastMem, at); err != nil {
			return fmt.Errorf("write %s: %w", w.o.FS.PathJoin(w.o.Dir, lastFile), err)
		}
	}
	if !sync {
		return nil
	}
	if err := w.lastOpen.SyncData(); err != nil {
		return fmt.Errorf("fsync %s: %w", w.o.FS.PathJoin(w.o.Dir, lastFile), err)
	}
	return nil
}
