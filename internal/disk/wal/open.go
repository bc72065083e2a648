package wal

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"dalmatiner/internal/host/durable"
)

// Defaults and limits of the options.
const (
	defaultInterval = time.Second
	// DefaultFileSize is the default of Options.FileSize, in bytes.
	DefaultFileSize   = 64 << 20
	defaultMaxRecord  = 4 << 20
	defaultBufferSize = 4 << 20

	// Buffers is about the memory, in bytes, of the two buffers of a log with the default
	// BufferSize.
	Buffers = 2 * defaultBufferSize
)

// Options are those of a log. FS and Dir are required. The zero value of each other one
// stands for the default, which is named last beside it.
type Options struct {
	FS vfs.FS
	// of the log alone; made, and durable if its parent is
	Dir      string
	Sync     SyncMode      // when the log fsyncs by itself; Interval
	Interval time.Duration // between fsyncs in mode Interval; 1 s
	// bytes at which a file is full, header included; 64 MiB
	FileSize  int64
	MaxRecord int // most bytes of a record, at most 64 MiB; 4 MiB
	// bytes of each of the two buffers, raised to hold MaxRecord; 4 MiB
	BufferSize int
	// new records get no LSN below it: the highest one named elsewhere; none
	MinLSN LSN
	ID     [16]byte     // identity of a new log; random
	Logger *slog.Logger // one that discards
	// called once, after a failed write or fsync; it may call Close; none
	OnFailure func(error)
	Now       func() time.Time                     // clock for Stats; time.Now
	After     func(time.Duration) <-chan time.Time // timer of the writer; time.After
}

func (o *Options) setDefaults() error {
	if o.FS == nil || o.Dir == "" {
		return errors.New("wal: options without FS or Dir")
	}
	setDefault(&o.Interval, defaultInterval)
	setDefault(&o.FileSize, DefaultFileSize)
	setDefault(&o.MaxRecord, defaultMaxRecord)
	setDefault(&o.BufferSize, defaultBufferSize)
	if o.MaxRecord < 0 || o.MaxRecord > recordLimit {
		return fmt.Errorf("wal: largest record of %d bytes: the limit is %d", o.MaxRecord, recordLimit)
	}
	if o.MinLSN > maxLSN {
		return fmt.Errorf("wal: lowest LSN %d: the limit is %d", o.MinLSN, maxLSN)
	}
	o.BufferSize = max(o.BufferSize, o.MaxRecord+frameSize+headFrame+markSize)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.After == nil {
		o.After = time.After
	}
	return nil
}

func setDefault[T comparable](p *T, v T) {
	if *p == *new(T) {
		*p = v
	}
}

// Open opens the log in o.Dir, or begins one there, and starts its writer. Torn, damaged
// and missing files are no error: Replay reports them. The errors are wrong options, failed
// I/O, a format that this version does not know (ErrFormat), and a file whose name claims
// an LSN beyond the limit.
func Open(o Options) (*Log, error) {
	if err := o.setDefaults(); err != nil {
		return nil, err
	}
	if err := o.FS.MkdirAll(o.Dir, 0o755); err != nil {
		return nil, fmt.Errorf("wal: create directory %s: %w", o.Dir, err)
	}
	// The directory itself must survive a crash, with all that is in it.
	if err := durable.SyncDir(o.FS, o.FS.PathDir(o.Dir)); err != nil {
		return nil, err
	}
	l := &Log{o: o}
	l.found = foundLog{o: &l.o, last: -1}
	if err := l.found.look(); err != nil {
		return nil, err
	}
	l.out = output{o: &l.o, id: l.found.id, lastMake: l.found.lastMake}
	if err := l.findEnd(); err != nil {
		return nil, err
	}
	l.start()
	return l, nil
}

// findEnd sets the limit of every file, the clean end of the last one and the
// LSN of the next record.
func (l *Log) findEnd() error {
	end := max(l.found.seen, l.o.MinLSN)
	if end >= maxLSN {
		return fmt.Errorf("wal: %s: next LSN %d is above the limit of %d; set the file that claims it "+
			"aside",
			l.o.Dir, end, maxLSN)
	}
	l.out.clean = 1
	if l.found.last >= 0 {
		f := &l.found.files[l.found.last]
		l.out.clean, l.out.prev = f.sure, f.first
		if !f.gone {
			if err := l.settleTail(f); err != nil {
				return fmt.Errorf("wal: %s: %w", l.o.path(f.first), err)
			}
			f.sure = max(f.sure, l.out.clean) // what is bad from now on was not when it was settled
		}
		if err := durable.SyncDir(l.o.FS, l.o.Dir); err != nil {
			return err
		}
		m := l.found.reached
		if !f.gone {
			m = fileState{head: f.head, durable: l.out.clean}
			m.head.id, m.head.first = l.found.id, f.first
		}
		l.out.mendLast(&m)
	}
	l.files, l.last = l.found.files, l.found.last
	l.tail.end, l.tail.durable = end, &l.durable
	l.opened, l.settled = end, l.out.clean
	l.durable.Store(uint64(end))
	return nil
}

// settleTail finds the clean end of the last file and makes the file durable:
// after kill -9, or a failed fsync, its records may stand in the page cache only, and
// what is replayed now must not disappear in a later power failure.
func (l *Log) settleTail(f *file) error {
	w, err := l.o.FS.OpenReadWrite(l.o.path(f.first), vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	defer w.Close()
	if err := f.writeAgain(w); durable.IsFull(err) {
		// A file system that writes elsewhere what is written again.
		l.o.Logger.Warn("wal: no room to write the end of the log again", "file", l.o.path(f.first),
			"err", err)
	} else if err != nil {
		return err
	}
	if err := w.Sync(); err != nil {
		return err
	}
	sums := newSums(l.found.id)
	records := newWalk(f, &sums, w, nil, nil, func(LSN, LSN, string, []byte) {}) // Replay reports it
	for {
		if _, ok, err := records.next(); err != nil || !ok {
			// Behind it there is a place that was durable, and nothing whole.
			l.out.clean = min(max(records.s.lsn, records.sure), f.limit)
			return err
		}
	}
}

// writeAgain writes what is not known to be on disk over itself. What an earlier
// process wrote and could not fsync the kernel holds for written: the next fsync would
// leave it out and succeed.
func (f *file) writeAgain(w vfs.File) error {
	at := int64(0)
	if f.sure > f.first {
		at = headerSize + int64(f.sure-f.first)
	}
	mem := make([]byte, writePiece)
	for at < f.size {
		piece := mem[:min(int64(len(mem)), f.size-at)]
		n, err := w.ReadAt(piece, at)
		if n < len(piece) {
			return err
		}
		n, err = w.WriteAt(piece, at)
		if err == nil && n < len(piece) {
			err = io.ErrShortWrite
		}
		if err != nil {
			return err
		}
		at += int64(n)
	}
	return nil
}

// path is the name of the file for first.
func (o *Options) path(first LSN) string { return o.FS.PathJoin(o.Dir, fileName(first)) }
