package datadir

import (
	"slices"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Walk calls fn for every file below dir with its path relative to dir and its size in bytes, in
// order, until fn returns an error.
func Walk(fs vfs.FS, dir string, fn func(file string, size int64) error) error {
	return walk(fs, dir, "", fn)
}

func walk(fs vfs.FS, dir, sub string, fn func(file string, size int64) error) error {
	names, err := fs.List(fs.PathJoin(dir, sub))
	if err != nil {
		return err
	}
	slices.Sort(names)
	for _, name := range names {
		file := fs.PathJoin(sub, name)
		stat, err := fs.Stat(fs.PathJoin(dir, file))
		switch {
		case err != nil:
			return err
		case stat.IsDir():
			err = walk(fs, dir, file, fn)
		default:
			err = fn(file, stat.Size())
		}
		if err != nil {
			return err
		}
	}
	return nil
}
