package catalogue

import (
	"strings"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// void is the file system of pebble. What pebble cannot write to its MANIFEST ends
// the process, or is tried again without end while its Open does not return. So it
// is not told: the failure is noted, from then on all changes go nowhere, and the
// catalogue is closed or not used any more (Failed).
type void struct {
	vfs.FS
	on   *atomic.Bool // nothing is changed any more
	fail func(error)  // sets on
}

// vital reports whether pebble would not go on without a file.
func (v void) vital(name string) bool {
	base := v.PathBase(name)
	return strings.HasPrefix(base, "MANIFEST-") || strings.HasPrefix(base, "marker.")
}

// swallow notes a failed change of a vital file.
func (v void) swallow(err error, vital bool) error {
	if err != nil && vital {
		v.fail(err)
		return nil
	}
	return err
}

func (v void) change(vital bool, change func() error) error {
	if v.on.Load() {
		return nil
	}
	return v.swallow(change(), vital)
}

// file opens a file to write to, or one in memory.
func (v void) file(name string, category vfs.DiskWriteCategory, open func() (vfs.File, error)) (vfs.File, error) {
	if !v.on.Load() {
		f, err := open()
		if err == nil {
			return voidFile{f, v, v.vital(name)}, nil
		}
		if err := v.swallow(err, v.vital(name)); err != nil {
			return nil, err
		}
	}
	return vfs.NewMem().Create(v.PathBase(name), category)
}

func (v void) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	return v.file(name, category, func() (vfs.File, error) { return v.FS.Create(name, category) })
}

func (v void) ReuseForWrite(from, to string, category vfs.DiskWriteCategory) (vfs.File, error) {
	return v.file(to, category, func() (vfs.File, error) { return v.FS.ReuseForWrite(from, to, category) })
}

// OpenDir opens a directory. pebble panics when one cannot be synced.
func (v void) OpenDir(name string) (vfs.File, error) {
	f, err := v.FS.OpenDir(name)
	if err != nil {
		return nil, err
	}
	return voidFile{f, v, true}, nil
}

func (v void) Rename(from, to string) error {
	return v.change(v.vital(to), func() error { return v.FS.Rename(from, to) })
}

func (v void) Link(from, to string) error {
	return v.change(false, func() error { return v.FS.Link(from, to) })
}

// Remove removes a file. Of an old MANIFEST that stays pebble only makes a note.
func (v void) Remove(name string) error {
	marker := strings.HasPrefix(v.PathBase(name), "marker.")
	return v.change(marker, func() error { return v.FS.Remove(name) })
}

func (v void) RemoveAll(name string) error {
	return v.change(false, func() error { return v.FS.RemoveAll(name) })
}

// Unwrap returns the file system below.
func (v void) Unwrap() vfs.FS { return v.FS }

type voidFile struct {
	vfs.File
	v     void
	vital bool
}

func (f voidFile) Write(p []byte) (n int, err error) {
	n = len(p)
	err = f.v.change(f.vital, func() (err error) {
		if n, err = f.File.Write(p); err != nil && f.vital {
			n = len(p)
		}
		return err
	})
	return n, err
}

func (f voidFile) Sync() error     { return f.v.change(f.vital, f.File.Sync) }
func (f voidFile) SyncData() error { return f.v.change(f.vital, f.File.SyncData) }
func (f voidFile) Close() error    { return f.v.swallow(f.File.Close(), f.vital) }

func (f voidFile) SyncTo(n int64) (full bool, err error) {
	full = true
	err = f.v.change(f.vital, func() (err error) {
		full, err = f.File.SyncTo(n)
		return err
	})
	return full, err
}

func (f voidFile) Preallocate(at, n int64) error {
	return f.v.change(f.vital, func() error { return f.File.Preallocate(at, n) })
}
