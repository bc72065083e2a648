package wal

import (
	"errors"
	"os"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Inspect reads all records in dir in order and changes nothing, whether or not
// the log is open elsewhere. from claims, where it is not 0, that the records
// from there on should exist. What would be replayed is given to fn.
//
// It says of every file what Replay says. A missing directory is an empty log.
// The errors are that of fn, failed I/O, a file that was removed meanwhile among
// it, and ErrFormat.
func Inspect(fs vfs.FS, dir string, from LSN, fn func(lsn LSN, rec []byte) error) (Report, error) {
	o := Options{FS: fs, Dir: dir}
	if err := o.setDefaults(); err != nil {
		return Report{}, err
	}
	in := found{o: &o, last: -1}
	if err := in.look(); err != nil && !errors.Is(err, os.ErrNotExist) {
		return Report{}, err
	}
	p := replay{in: &in, claim: from, fn: fn, files: in.files, last: in.last}
	err := p.run()
	return p.report, err
}
