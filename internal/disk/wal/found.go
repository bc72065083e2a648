package wal

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"slices"
)

// foundLog is what there is of a log in its directory when somebody looks.
type foundLog struct {
	o         *Options
	id        [16]byte
	files     []file // in LSN order
	last      int    // index in files of the newest that is not void; -1 = none
	strangers []file // files in the directory that are not of this log
	seen      LSN    // beyond all that the files could hold

	reached  fileState // what lastFile says
	lastBad  []Place   // what of it is damaged
	lastMake bool      // it is to be made anew
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

// look finds out what there is of the log.
func (d *foundLog) look() error {
	// First: a running log may begin files meanwhile.
	reached, found, bad, err := readLast(d.o)
	if err != nil {
		return fmt.Errorf("wal: %w", err)
	}
	files, err := listFiles(d.o)
	if err != nil {
		return err
	}
	d.lastMake = !found
	if err := d.adopt(files, reached, found); err != nil {
		return err
	}
	if len(d.files) > 0 { // nothing is missed beside the first file
		d.lastBad = append(bad, d.lastBad...)
	}
	d.setLimits()
	return nil
}

// adopt takes the identity that the owner says, of the oldest readable file, or of lastFile where
// there is none, and sets the files of other logs and renamed ones aside: they are reported,
// and neither replayed nor removed.
func (d *foundLog) adopt(files []file, reached fileState, found bool) error {
	d.id = d.o.ID
	known := d.id != [16]byte{}
	for _, f := range files {
		if f.fault == "" && !known && f.head.first == f.first {
			d.id, known = f.head.id, true
		}
	}
	if found && !known {
		d.id, known = reached.head.id, true
	}
	for _, f := range files {
		switch {
		case f.fault == "" && f.head.first != f.first:
			f.fault = fmt.Sprintf("is the file for LSN %d under another name", f.head.first)
			d.strangers = append(d.strangers, f)
		case f.fault == "" && f.head.id != d.id:
			f.fault = fmt.Sprintf("belongs to log %x, not to %x", f.head.id, d.id)
			d.strangers = append(d.strangers, f)
		default:
			d.files = append(d.files, f)
		}
	}
	if found {
		d.adoptLast(reached)
	}
	if d.id != [16]byte{} {
		return nil
	}
	_, err := rand.Read(d.id[:])
	return err
}

// adoptLast takes what lastFile says of the newest file.
func (d *foundLog) adoptLast(m fileState) {
	if m.head.id != d.id {
		d.lastMake = true
		d.lastBad = append(d.lastBad, Place{File: d.o.FS.PathJoin(d.o.Dir, lastFile), Bytes: lastSize,
			Reason: fmt.Sprintf("belongs to log %x, not to %x", m.head.id, d.id)})
		return
	}
	if m.durable == 0 {
		return
	}
	d.reached = m
	i, there := slices.BinarySearchFunc(d.files, m.head.first, func(f file, first LSN) int {
		return cmp.Compare(f.first, first)
	})
	switch {
	case there && d.files[i].fault != "":
		d.files[i].void, d.files[i].head = false, m.head
	case !there && i == len(d.files):
		d.files = append(d.files, file{first: m.head.first, head: m.head, gone: true, fault: "missing"})
	}
}

// setLimits sets the limit of every file, the newest file that is not void and
// the first LSN beyond all that the files could hold.
func (d *foundLog) setLimits() {
	limit := maxLSN
	for i := len(d.files) - 1; i >= 0; i-- {
		f := &d.files[i]
		f.limit = limit
		limit = min(limit, f.first)
		if f.head.first != 0 { // it is known
			limit = min(limit, f.head.clean)
		}
		f.sure = f.limit // a file begins when all before it is durable
		if !f.void && d.last < 0 {
			d.last = i
			f.sure = 0
			if f.first <= d.reached.head.first {
				f.sure = d.reached.durable
			}
		}
	}
	d.seen = max(1, d.reached.durable)
	for _, f := range slices.Concat(d.files, d.strangers) {
		// Strictly above every name, so that no file is ever replaced.
		d.seen = max(d.seen, f.end(), f.first+1)
		if f.gone {
			d.seen = max(d.seen, d.reached.durable, f.first+LSN(d.o.FileSize)+recordLimit)
		}
	}
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
	rest, err := newScanner(r, nil, f.first, max(0, f.size-headerSize), nil).droppedBytes()
	f.void = rest == 0
	return err
}
