package wal

import (
	"errors"
	"fmt"
	"log/slog"
	"os"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Inspect reads the log in dir, which has an identity unless that is zero, as Replay would, and
// changes nothing, whether or not the log is open elsewhere. It calls fn for every whole record, in
// order; rec is valid during the call only. A from that is not 0 claims that all records from there
// on should exist.
//
// The report is that of Replay. A missing directory is an empty log. The errors are ErrFormat,
// that of fn, wrapped, and failed I/O, which includes a file removed meanwhile.
func Inspect(fs vfs.FS, dir string, id [16]byte, from LSN, fn func(lsn LSN, rec []byte) error) (
	Report, error) {
	o := Options{FS: fs, Dir: dir, ID: id}
	if err := o.setDefaults(); err != nil {
		return Report{}, err
	}
	in := foundLog{o: &o, last: -1}
	if err := in.look(); err != nil && !errors.Is(err, os.ErrNotExist) {
		return Report{}, err
	}
	p := replay{in: &in, claim: from, fn: fn, files: in.files, last: in.last}
	err := p.run()
	return p.report, err
}

// ID returns the identity of the log in dir; ok is false where nothing tells it.
func ID(fs vfs.FS, dir string) (id [16]byte, ok bool) {
	o := Options{FS: fs, Dir: dir, Logger: slog.New(slog.DiscardHandler)}
	if m, found, _, err := readLast(&o); err == nil && found {
		return m.head.id, true
	}
	files, err := listFiles(&o)
	if err != nil {
		return id, false
	}
	for i := len(files) - 1; i >= 0; i-- {
		if f := &files[i]; f.fault == "" {
			return f.head.id, true
		}
	}
	return id, false
}

// ForeignFiles returns the names of files in dir that belong to other logs than the one of an
// identity, and why each does.
func ForeignFiles(fs vfs.FS, dir string, id [16]byte) (why map[string]error, err error) {
	o := Options{FS: fs, Dir: dir, Logger: slog.New(slog.DiscardHandler)}
	files, err := listFiles(&o)
	if err != nil {
		return nil, err
	}
	why = make(map[string]error)
	for _, f := range files {
		if f.fault == "" && f.head.id != id {
			why[fileName(f.first)] = fmt.Errorf("it belongs to log %x, not to %x", f.head.id, id)
		}
	}
	return why, nil
}
