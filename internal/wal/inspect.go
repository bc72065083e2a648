package wal

import (
	"errors"
	"os"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Inspect reads the log in dir as Replay would, and changes nothing, whether or not the log
// is open elsewhere. It calls fn for every whole record, in order; rec is valid during the
// call only. A from that is not 0 claims that all records from there on should exist.
//
// The report is that of Replay. A missing directory is an empty log. The errors are that of
// fn, wrapped, failed I/O, which includes a file that was removed meanwhile, and ErrFormat.
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
