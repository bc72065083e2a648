package wal

import (
	"fmt"
	"log/slog"

	"github.com/cockroachdb/errors/oserror"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// Begin notes in dir, which it makes, that there is a log of an identity, unless there is one. From
// then on IsMissing tells when it is gone. The parent of dir is for the caller to sync.
func Begin(fs vfs.FS, dir string, id [16]byte) error {
	if err := fs.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("wal: create directory %s: %w", dir, err)
	}
	missing, err := IsMissing(fs, dir)
	if err != nil || !missing {
		return err
	}
	return createLast(fs, dir, &fileState{head: header{id: id}})
}

// IsMissing reports whether dir has nothing of a log: that is damage in a directory that has begun
// one.
func IsMissing(fs vfs.FS, dir string) (bool, error) {
	if _, err := fs.Stat(fs.PathJoin(dir, lastFile)); !oserror.IsNotExist(err) {
		return false, err
	}
	files, err := listFiles(&Options{FS: fs, Dir: dir, Logger: slog.New(slog.DiscardHandler)})
	if oserror.IsNotExist(err) {
		return true, nil
	}
	return len(files) == 0, err
}
