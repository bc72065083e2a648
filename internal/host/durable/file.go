package durable

import (
	"errors"
	"io"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// maxSmallFile is the most that ReadFile reads.
const maxSmallFile = 1 << 20

// ReadFile returns the content of a small file: its first mebibyte.
func ReadFile(fs vfs.FS, path string) ([]byte, error) {
	f, err := fs.Open(path)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(f, maxSmallFile))
	return data, errors.Join(err, f.Close())
}

// WriteFile replaces a small file as a whole, and makes that durable: after a crash it holds
// what it held before, or data.
func WriteFile(fs vfs.FS, dir, name string, data []byte) error {
	path := fs.PathJoin(dir, name)
	temp := path + ".tmp"
	f, err := fs.Create(temp, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := fs.Rename(temp, path); err != nil {
		return err
	}
	return SyncDir(fs, dir)
}
