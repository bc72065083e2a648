package pool

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// directory is what pools in a directory have in common: images/NAME and snapshots/IMAGE@NAME, and
// in the making what is not one of these yet. It is removed when the pool is opened.
type directory struct {
	dir  string
	disk string // the file of an image below its path; empty: the image is that file
}

const (
	imagesDir    = "images"
	snapshotsDir = "snapshots"
	makingDir    = "making"
)

// openDirectory makes the directories of a pool. magic is that of the file system that it needs.
func openDirectory(dir, disk string, magic int64, need string) (directory, error) {
	d := directory{dir, disk}
	var of unix.Statfs_t
	if err := unix.Statfs(dir, &of); err != nil {
		return d, fmt.Errorf("pool %s: %w", dir, err)
	}
	if of.Type != magic {
		return d, fmt.Errorf("pool %s: %s", dir, need)
	}
	for _, sub := range []string{imagesDir, snapshotsDir, makingDir} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o700); err != nil {
			return d, err
		}
	}
	return d, SyncDir(dir)
}

func (d directory) image(name string) string { return filepath.Join(d.dir, imagesDir, name) }
func (d directory) snapshot(s Snapshot) string {
	return filepath.Join(d.dir, snapshotsDir, s.String())
}

// Path is Pool.Path.
func (d directory) Path(image string) string { return filepath.Join(d.image(image), d.disk) }

// Usage is Pool.Usage.
func (d directory) Usage(_ context.Context, image string) (Usage, error) {
	if err := d.there(d.image(image), image); err != nil {
		return Usage{}, err
	}
	return usageOf(d.Path(image))
}

// SnapshotUsage is Pool.SnapshotUsage.
func (d directory) SnapshotUsage(_ context.Context, s Snapshot) (Usage, error) {
	if err := d.there(d.snapshot(s), s.Image, s.Name); err != nil {
		return Usage{}, err
	}
	return usageOf(filepath.Join(d.snapshot(s), d.disk))
}

// making returns a new directory for what is in the making.
func (d directory) making() (string, error) {
	return os.MkdirTemp(filepath.Join(d.dir, makingDir), "")
}

// Images is Pool.Images.
func (d directory) Images(context.Context) ([]string, error) {
	return entries(filepath.Join(d.dir, imagesDir))
}

// Snapshots is Pool.Snapshots.
func (d directory) Snapshots(context.Context) (list []Snapshot, err error) {
	names, err := entries(filepath.Join(d.dir, snapshotsDir))
	for _, n := range names {
		image, snapshot, ok := strings.Cut(n, "@")
		if !ok {
			return nil, fmt.Errorf("pool %s: %s/%s is no snapshot", d.dir, snapshotsDir, n)
		}
		list = append(list, Snapshot{image, snapshot})
	}
	return list, err
}

// Space is Pool.Space.
func (d directory) Space(context.Context) (Space, error) {
	var of unix.Statfs_t
	if err := unix.Statfs(d.dir, &of); err != nil {
		return Space{}, fmt.Errorf("pool %s: %w", d.dir, err)
	}
	return Space{Total: int64(of.Blocks) * of.Bsize, Free: int64(of.Bavail) * of.Bsize}, nil
}

// Settle is Pool.Settle: what waits to be written has no place yet.
func (d directory) Settle(context.Context) error {
	f, err := os.Open(d.dir)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := unix.Syncfs(int(f.Fd())); err != nil {
		return fmt.Errorf("pool %s: %w", d.dir, err)
	}
	return nil
}

// fstrimRange is the argument of FITRIM. Source: Linux, include/uapi/linux/fs.h.
type fstrimRange struct{ start, length, least uint64 }

const fstrimRequest = 0xC0185879

// Trim is Pool.Trim.
func (d directory) Trim(context.Context) (int64, error) {
	f, err := os.Open(d.dir)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	r := &fstrimRange{length: 1<<64 - 1}
	if _, _, code := unix.Syscall(unix.SYS_IOCTL, f.Fd(), fstrimRequest,
		uintptr(unsafe.Pointer(r))); code != 0 {
		return 0, fmt.Errorf("pool %s: trim: %w", d.dir, code)
	}
	return int64(r.length), nil
}

// fresh checks the names, and that nothing has the path of what is to be made.
func (d directory) fresh(path string, names ...string) error {
	if err := checkNames(names...); err != nil {
		return err
	}
	if _, err := os.Lstat(path); err == nil {
		return fmt.Errorf("%s: %w", filepath.Base(path), ErrExists)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// there checks the names, and that something has the path.
func (d directory) there(path string, names ...string) error {
	if err := checkNames(names...); err != nil {
		return err
	}
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s: %w", filepath.Base(path), ErrUnknown)
	} else if err != nil {
		return err
	}
	return nil
}

// put gives what was made its name. It does not replace anything.
func put(made, path string) error {
	err := unix.Renameat2(unix.AT_FDCWD, made, unix.AT_FDCWD, path, unix.RENAME_NOREPLACE)
	if errors.Is(err, unix.EEXIST) {
		return fmt.Errorf("%s: %w", filepath.Base(path), ErrExists)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return SyncDir(filepath.Dir(path))
}

// exchange gives what was made the name of what is there, in one step. Afterwards made is the path
// of the old one.
func exchange(made, path string) error {
	if err := unix.Renameat2(unix.AT_FDCWD, made, unix.AT_FDCWD, path,
		unix.RENAME_EXCHANGE); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return SyncDir(filepath.Dir(path))
}

func entries(dir string) (names []string, err error) {
	list, err := os.ReadDir(dir)
	for _, e := range list {
		names = append(names, e.Name())
	}
	slices.Sort(names)
	return names, err
}

// SyncDir makes the entries of a directory durable.
func SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
