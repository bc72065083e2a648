package datadir

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/cockroachdb/errors/oserror"
	"github.com/cockroachdb/pebble/v2/vfs"

	"dalmatiner/internal/durable"
)

const (
	versionPrefix = "dalmatiner "
	formatNumber  = 4
)

// VersionText is what the file VERSION of a directory in the format of this program says.
func VersionText() string { return versionPrefix + strconv.Itoa(formatNumber) + "\n" }

// Acquire makes the directories where there are none, takes the lock and checks the format.
// The caller closes the lock. A file VERSION that is damaged is given to damaged and written
// anew. The error tells what to do about a directory that is another program's, that is in
// use, that may not be written to, or that has another format; nothing was changed in the
// first and the last of them.
func Acquire(fs vfs.FS, dir string, damaged func(file string, err error)) (lock io.Closer, err error) {
	if err := refuseForeign(fs, dir); err != nil {
		return nil, err
	}
	for _, sub := range append(append([]string{WAL, LostFound}, SegmentDirs[:]...), FileDirs()...) {
		if err := fs.MkdirAll(fs.PathJoin(dir, sub), 0o750); err != nil {
			return nil, notWritable(dir, err)
		}
	}
	// The new entries must survive before anything inside them is promised.
	for _, dir := range []string{dir, fs.PathDir(dir)} {
		if err := durable.SyncDir(fs, dir); err != nil {
			return nil, notWritable(dir, err)
		}
	}
	path := fs.PathJoin(dir, Lock)
	lock, err = fs.Lock(path)
	if oserror.IsPermission(err) {
		return nil, notWritable(dir, err)
	}
	if err != nil {
		return nil, fmt.Errorf("data directory %s is in use by %s (or its LOCK cannot be taken): stop that one, or name another directory: %w",
			dir, durable.HolderOf(path), err)
	}
	if err := checkVersion(fs, dir, damaged); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return lock, nil
}

// refuseForeign refuses a directory that holds something, and nothing of ours:
// most likely it is another program's, or that of the original.
func refuseForeign(fs vfs.FS, dir string) error {
	names, err := fs.List(dir)
	if err != nil || len(names) == 0 {
		return nil // there is no directory yet, or nothing in it
	}
	if slices.Contains(names, Restore) {
		return fmt.Errorf("data directory %s holds a restore that was cut off (%s): remove the directory and restore again", dir, Restore)
	}
	// Of a first start that was broken off there may be the lock alone.
	if IsStore(names) || slices.Contains(names, Lock) {
		return nil
	}
	return fmt.Errorf("data directory %s holds %s and nothing of a Dalmatiner store: name an empty directory or one that does not exist yet",
		dir, names[0])
}

// notWritable says what to do where the system does not let the process write.
func notWritable(dir string, err error) error {
	if oserror.IsPermission(err) {
		err = fmt.Errorf("%w: give it to the user that runs ddb, or name another one", err)
	}
	return fmt.Errorf("data directory %s: %w", dir, err)
}

func checkVersion(fs vfs.FS, dir string, damaged func(file string, err error)) error {
	text, err := durable.ReadFile(fs, fs.PathJoin(dir, Version))
	if err != nil && !oserror.IsNotExist(err) {
		return err
	}
	fields, found := strings.CutPrefix(strings.TrimSpace(string(text)), versionPrefix)
	if found {
		n, err := strconv.Atoi(fields)
		if err == nil && n != formatNumber {
			return fmt.Errorf("data directory %s has format %d; this program reads format %d: use the ddb that wrote it, or name another directory; if no other ddb ever ran here, its file VERSION is damaged: write %q into it",
				dir, n, formatNumber, strings.TrimSpace(VersionText()))
		}
		if err == nil {
			return nil
		}
	}
	if len(text) > 0 {
		damaged(Version, fmt.Errorf("%q is no version; taken as %d", text, formatNumber))
	}
	return durable.WriteFile(fs, dir, Version, []byte(VersionText()))
}
