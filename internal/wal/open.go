package wal

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"dalmatiner/internal/durable"
)

// Defaults and limits of the options.
const (
	defaultInterval   = time.Second
	DefaultFileSize   = 64 << 20
	defaultMaxRecord  = 4 << 20
	defaultBufferSize = 4 << 20

	// Buffers is what the two buffers of a log of default size take, in bytes.
	Buffers = 2 * defaultBufferSize
)

// Options of a log. FS and Dir are required; the zero value of the others is
// the default named beside them.
type Options struct {
	FS         vfs.FS
	Dir        string                               // created; its parent is durable. Holds nothing else
	Sync       SyncMode                             // Interval
	Interval   time.Duration                        // between fsyncs in mode Interval; 1 s
	FileSize   int64                                // a file is full at this size, headers included; 64 MiB
	MaxRecord  int                                  // bytes of a record Append takes, at most 64 MiB; 4 MiB
	BufferSize int                                  // bytes of each of the two buffers, at least MaxRecord; 4 MiB
	MinLSN     LSN                                  // new records get no LSN below it: the highest one named elsewhere
	ID         [16]byte                             // of a new log; random
	Logger     *slog.Logger                         // discards
	OnFailure  func(error)                          // called once, after a failed write or fsync; may call Close
	Now        func() time.Time                     // time.Now
	After      func(time.Duration) <-chan time.Time // time.After
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

// file is one file of the log.
type file struct {
	first LSN
	size  int64 // when the log was opened
	head  header
	fault string // why its header cannot be read; empty = readable
	void  bool   // a fault, and nothing was ever appended
	gone  bool   // it was the newest one, and is missing
	limit LSN    // no record of this file begins at or above it
	sure  LSN    // all below was durable, as far as is known without reading the file
}

// end is the first LSN that the file's bytes cannot hold.
func (f *file) end() LSN { return f.first + LSN(max(0, f.size-headerSize)) }

// Open opens the log in o.Dir and starts its writer. Torn, damaged and missing
// files are no error; Replay reports them. The errors are failed I/O and
// another format (ErrFormat).
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
	l := &Log{o: o, last: -1}
	if err := l.look(); err != nil {
		return nil, err
	}
	if err := l.findEnd(); err != nil {
		return nil, err
	}
	l.start()
	return l, nil
}

// look finds out what there is of the log.
func (l *Log) look() error {
	// First: a running log may begin files meanwhile.
	reached, found, bad, err := readLast(&l.o)
	if err != nil {
		return fmt.Errorf("wal: %w", err)
	}
	files, err := listFiles(&l.o)
	if err != nil {
		return err
	}
	l.lastMake = !found
	if err := l.adopt(files, reached, found); err != nil {
		return err
	}
	if len(l.files) > 0 { // nothing is missed beside the first file
		l.lastBad = append(bad, l.lastBad...)
	}
	l.setLimits()
	return nil
}

// listFiles returns the files of the directory in LSN order, headers read.
func listFiles(o *Options) ([]file, error) {
	names, err := o.FS.List(o.Dir)
	if err != nil {
		return nil, fmt.Errorf("wal: list %s: %w", o.Dir, err)
	}
	var files []file
	for _, name := range names {
		first, ok := parseFileName(name)
		if name == lastFile || name == lastTemp {
			continue
		}
		if !ok {
			o.Logger.Warn("wal: file is not part of the log", "dir", o.Dir, "file", name)
			continue
		}
		f := file{first: first}
		if err := f.inspect(o); err != nil {
			return nil, fmt.Errorf("wal: %s: %w", o.FS.PathJoin(o.Dir, name), err)
		}
		files = append(files, f)
	}
	slices.SortFunc(files, func(a, b file) int { return cmp.Compare(a.first, b.first) })
	return files, nil
}

// inspect reads the size and the header. It returns failed I/O only and
// ErrFormat.
func (f *file) inspect(o *Options) error {
	r, err := o.FS.Open(o.FS.PathJoin(o.Dir, fileName(f.first)))
	if err != nil {
		return err
	}
	defer r.Close()
	info, err := r.Stat()
	if err != nil {
		return err
	}
	f.size = min(info.Size(), int64(maxLSN))
	var block [headerSize]byte
	n, err := io.ReadFull(r, block[:min(f.size, headerSize)])
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return err
	}
	f.head, _, err = parseHeader(block[:n])
	if err == nil || errors.Is(err, ErrFormat) {
		return err
	}
	f.fault = err.Error()
	rest, err := newScanner(r, nil, f.first, max(0, f.size-headerSize), nil).dropped()
	f.void = rest == 0
	return err
}

// adopt takes the identity of the oldest readable file, or of lastFile where there is
// none, and sets the files of other logs and renamed ones aside: they are reported,
// and neither replayed nor removed.
func (l *Log) adopt(files []file, reached last, found bool) error {
	known := false
	for _, f := range files {
		if f.fault == "" && !known && f.head.first == f.first {
			l.id, known = f.head.id, true
		}
	}
	if found && !known {
		l.id, known = reached.head.id, true
	}
	for _, f := range files {
		switch {
		case f.fault == "" && f.head.first != f.first:
			f.fault = fmt.Sprintf("is the file for LSN %d under another name", f.head.first)
			l.strangers = append(l.strangers, f)
		case f.fault == "" && f.head.id != l.id:
			f.fault = fmt.Sprintf("belongs to log %x, not to %x", f.head.id, l.id)
			l.strangers = append(l.strangers, f)
		default:
			l.files = append(l.files, f)
		}
	}
	if found {
		l.adoptLast(reached)
	}
	if !known {
		l.id = l.o.ID
	}
	if l.id != [16]byte{} {
		return nil
	}
	_, err := rand.Read(l.id[:])
	return err
}

// adoptLast takes what lastFile says of the newest file.
func (l *Log) adoptLast(m last) {
	if m.head.id != l.id {
		l.lastMake = true
		l.lastBad = append(l.lastBad, Place{File: l.o.FS.PathJoin(l.o.Dir, lastFile), Bytes: lastSize,
			Reason: fmt.Sprintf("belongs to log %x, not to %x", m.head.id, l.id)})
		return
	}
	if m.durable == 0 {
		return
	}
	l.reached = m
	i, there := slices.BinarySearchFunc(l.files, m.head.first, func(f file, first LSN) int { return cmp.Compare(f.first, first) })
	switch {
	case there && l.files[i].fault != "":
		l.files[i].void, l.files[i].head = false, m.head
	case !there && i == len(l.files):
		l.files = append(l.files, file{first: m.head.first, head: m.head, gone: true, fault: "missing"})
	}
}

// setLimits sets the limit of every file, the newest file that is not void and
// the first LSN beyond all that the files could hold.
func (l *Log) setLimits() {
	limit := maxLSN
	for i := len(l.files) - 1; i >= 0; i-- {
		f := &l.files[i]
		f.limit = limit
		limit = min(limit, f.first)
		if f.head.first != 0 { // it is known
			limit = min(limit, f.head.clean)
		}
		f.sure = f.limit // a file begins when all before it is durable
		if !f.void && l.last < 0 {
			l.last = i
			f.sure = 0
			if f.first <= l.reached.head.first {
				f.sure = l.reached.durable
			}
		}
	}
	l.seen = max(1, l.reached.durable)
	for _, f := range slices.Concat(l.files, l.strangers) {
		// Strictly above every name, so that no file is ever replaced.
		l.seen = max(l.seen, f.end(), f.first+1)
		if f.gone {
			l.seen = max(l.seen, l.reached.durable, f.first+LSN(l.o.FileSize)+recordLimit)
		}
	}
}

// findEnd sets the limit of every file, the clean end of the last one and the
// LSN of the next record.
func (l *Log) findEnd() error {
	end := max(l.seen, l.o.MinLSN)
	if end >= maxLSN {
		return fmt.Errorf("wal: %s: next LSN %d is above the limit of %d; set the file that claims it aside",
			l.o.Dir, end, maxLSN)
	}
	l.clean = 1
	if l.last >= 0 {
		f := &l.files[l.last]
		l.clean, l.prev = f.sure, f.first
		if !f.gone {
			if err := l.settleTail(f); err != nil {
				return fmt.Errorf("wal: %s: %w", l.path(f.first), err)
			}
			f.sure = max(f.sure, l.clean) // what is bad from now on was not when it was settled
		}
		if err := durable.SyncDir(l.o.FS, l.o.Dir); err != nil {
			return err
		}
		l.mendLast()
	}
	l.tail.end, l.tail.durable = end, &l.durable
	l.opened, l.settled = end, l.clean
	l.durable.Store(uint64(end))
	return nil
}

// settleTail finds the clean end of the last file and makes the file durable:
// after kill -9, or a failed fsync, its records may stand in the page cache only, and
// what is replayed now must not disappear in a later power failure.
func (l *Log) settleTail(f *file) error {
	w, err := l.o.FS.OpenReadWrite(l.path(f.first), vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	defer w.Close()
	if err := f.writeAgain(w); durable.IsFull(err) {
		// A file system that writes elsewhere what is written again.
		l.o.Logger.Warn("wal: no room to write the end of the log again", "file", l.path(f.first), "err", err)
	} else if err != nil {
		return err
	}
	if err := w.Sync(); err != nil {
		return err
	}
	sums := newSums(l.id)
	records := newWalk(f, &sums, w, nil, nil, func(LSN, LSN, string, []byte) {}) // Replay reports it
	for {
		if _, ok, err := records.next(); err != nil || !ok {
			// Behind it there is a place that was durable, and nothing whole.
			l.clean = min(max(records.s.lsn, records.sure), f.limit)
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

func (l *Log) path(first LSN) string {
	return l.o.FS.PathJoin(l.o.Dir, fileName(first))
}
