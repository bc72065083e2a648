package datadir

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/cockroachdb/errors/oserror"
	"github.com/cockroachdb/pebble/v2/vfs"

	"dalmatiner/internal/disk/origin"
	"dalmatiner/internal/host/durable"
)

const (
	versionPrefix = "dalmatiner "
	formatNumber  = 5
	idPrefix      = "directory "
)

// VersionText is what the file VERSION of a directory in the format of this program says: the
// number of the format, and the id of the directory with its checksum.
func VersionText(id origin.Directory) string {
	return fmt.Sprintf("%s%d\n%s%s %08x\n", versionPrefix, formatNumber, idPrefix, id,
		crc32.Checksum(id[:], castagnoli))
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// ReadVersion reads the file VERSION of a directory: the id that it says, ok is false where it says
// none. The error tells what to do about another format, or is that of the file system; a file that
// is missing is none.
func ReadVersion(fs vfs.FS, dir string) (text string, id origin.Directory, ok bool, err error) {
	data, err := durable.ReadFile(fs, fs.PathJoin(dir, Version))
	if err != nil && !oserror.IsNotExist(err) {
		return "", id, false, err
	}
	text = string(data)
	first, rest, _ := strings.Cut(text, "\n")
	number, found := strings.CutPrefix(strings.TrimSpace(first), versionPrefix)
	if n, bad := strconv.Atoi(number); found && bad == nil && n != formatNumber {
		return text, id, false,
			fmt.Errorf("data directory %s has format %d; this program reads format %d: use the ddb that "+
				"wrote it, or name another directory; if no other ddb ever ran here, its file VERSION is "+
				"damaged: remove it",
				dir, n, formatNumber)
	}
	word, _ := strings.CutPrefix(rest, idPrefix)
	word, _, _ = strings.Cut(word, " ")
	id, ok = origin.ParseDirectory(word)
	return text, id, ok && text == VersionText(id), nil
}

// Acquire makes the directories where there are none, takes the lock and checks the format. The
// caller closes the lock. of tells the id of the directory, by the one that VERSION says where ok
// is set. A file VERSION that does not say it is given to damaged and written anew. The error says
// what to do about a directory of another program, one in use, one without write permission, or
// one of another format. Nothing was changed in the first and the last of them.
func Acquire(fs vfs.FS, dir string, of func(said origin.Directory, ok bool) origin.Directory,
	damaged func(file string, err error)) (lock io.Closer, id origin.Directory, err error) {
	if err := refuseForeign(fs, dir); err != nil {
		return nil, id, err
	}
	for _, sub := range append(append([]string{WAL, LostFound}, SegmentDirs[:]...), FileDirs()...) {
		if err := fs.MkdirAll(fs.PathJoin(dir, sub), 0o750); err != nil {
			return nil, id, notWritable(dir, err)
		}
	}
	// The new entries must survive before anything inside them is promised.
	for _, dir := range []string{dir, fs.PathDir(dir)} {
		if err := durable.SyncDir(fs, dir); err != nil {
			return nil, id, notWritable(dir, err)
		}
	}
	path := fs.PathJoin(dir, Lock)
	lock, err = fs.Lock(path)
	if oserror.IsPermission(err) {
		return nil, id, notWritable(dir, err)
	}
	if err != nil {
		return nil, id, fmt.Errorf("data directory %s is in use by %s (or its LOCK cannot be taken): "+
			"stop that one, or name another directory: %w",
			dir, durable.HolderOf(path), err)
	}
	if id, err = checkVersion(fs, dir, of, damaged); err != nil {
		return nil, id, errors.Join(err, lock.Close())
	}
	return lock, id, nil
}

// refuseForeign refuses a directory that holds something, and nothing of ours:
// most likely it is another program's, or that of the original.
func refuseForeign(fs vfs.FS, dir string) error {
	names, err := fs.List(dir)
	if err != nil || len(names) == 0 {
		return nil // there is no directory yet, or nothing in it
	}
	if slices.Contains(names, Restore) {
		return fmt.Errorf("data directory %s holds a restore that was cut off (%s): remove the "+
			"directory and restore again", dir, Restore)
	}
	// Of a first start that was broken off there may be the lock alone.
	if IsStore(names) || slices.Contains(names, Lock) {
		return nil
	}
	return fmt.Errorf("data directory %s holds %s and nothing of a Dalmatiner store: name an empty "+
		"directory or one that does not exist yet",
		dir, names[0])
}

// notWritable says what to do where the system does not let the process write.
func notWritable(dir string, err error) error {
	if oserror.IsPermission(err) {
		err = fmt.Errorf("%w: give it to the user that runs ddb, or name another one", err)
	}
	return fmt.Errorf("data directory %s: %w", dir, err)
}

// checkVersion checks the format, and writes VERSION where it does not say what the directory is.
func checkVersion(fs vfs.FS, dir string, of func(said origin.Directory, ok bool) origin.Directory,
	damaged func(file string, err error)) (id origin.Directory, err error) {
	text, said, ok, err := ReadVersion(fs, dir)
	if err != nil {
		return id, err
	}
	if id = of(said, ok); ok && said == id {
		return id, nil
	}
	switch {
	case ok:
		damaged(Version, fmt.Errorf("it is of the data directory %s, and this one is %s", said, id))
	case text != "":
		damaged(Version, fmt.Errorf("%q is no version; taken as %d, of the data directory %s", text,
			formatNumber, id))
	}
	return id, durable.WriteFile(fs, dir, Version, []byte(VersionText(id)))
}
