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
	l := &Log{o: Options{FS: fs, Dir: dir}, last: -1}
	if err := l.o.setDefaults(); err != nil {
		return Report{}, err
	}
	if err := l.look(); err != nil && !errors.Is(err, os.ErrNotExist) {
		return Report{}, err
	}
	p := replay{l: l, claim: from, fn: fn, files: l.files, last: l.last}
	err := p.run()
	return p.report, err
}
