// Package durable does to files what takes more than one call to outlive a crash,
// tells a full disk from other failures, and tells which process has a directory
// in use. Whatever fails may have left a part of it on the disk.
package durable

import (
	"errors"
	"fmt"
	"io"
	"syscall"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// copyBuffer is how much CopyFile reads at a time.
const copyBuffer = 1 << 20

// IsFull reports whether err says that the disk, or the share of it that a quota
// allows, has no room.
func IsFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// SyncDir makes the entries of a directory durable. It opens the directory anew,
// because a vfs.File takes one Sync at a time.
func SyncDir(fs vfs.FS, dir string) error {
	d, err := fs.OpenDir(dir)
	if err != nil {
		return fmt.Errorf("open directory %s: %w", dir, err)
	}
	if err := errors.Join(d.Sync(), d.Close()); err != nil {
		return fmt.Errorf("fsync directory %s: %w", dir, err)
	}
	return nil
}

// CopyFile copies at most limit bytes of a file, makes the content of the copy
// durable and returns its size. Its name takes a SyncDir.
func CopyFile(fs vfs.FS, from, to string, limit int64) (n int64, err error) {
	src, err := fs.Open(from, vfs.SequentialReadsOption)
	if err != nil {
		return 0, err
	}
	defer src.Close()
	dst, err := fs.Create(to, vfs.WriteCategoryUnspecified)
	if err != nil {
		return 0, err
	}
	n, err = io.CopyBuffer(dst, io.LimitReader(src, limit), make([]byte, copyBuffer))
	if err == nil {
		err = dst.Sync()
	}
	return n, errors.Join(err, dst.Close())
}
