package catalogue

import (
	"strings"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/vfs"

	"dalmatiner/internal/host/durable"
)

// void is the file system of pebble. What pebble cannot write to its MANIFEST ends
// the process, or is tried again without end while its Open does not return. So it
// is not told: the failure is noted, from then on all changes go nowhere, and the
// catalogue is closed or not used any more (Failure).
//
// Its OPTIONS, which pebble writes at every open and does not need, are no files at all: they
// would be more than the names of 300 series.
//
// Of files in other directories, those of a checkpoint, pebble is told. Only for their
// directory, whose failed sync ends the process as well, the failure is noted.
type void struct {
	vfs.FS
	dir      string       // of the catalogue
	on       *atomic.Bool // nothing is changed any more
	fail     func(error)  // sets on
	unsynced func(error)  // notes that a directory elsewhere is not on disk
}

// failureHandler returns what notes a failure to write a file without which pebble would not
// go on, and nil for others.
func (v void) failureHandler(name string) func(error) {
	base := v.PathBase(name)
	if v.isCatalogueDir(v.PathDir(name)) &&
		(strings.HasPrefix(base, "MANIFEST-") || strings.HasPrefix(base, "marker.")) {
		return v.fail
	}
	return nil
}

// isCatalogueDir reports whether a directory is that of the catalogue.
func (v void) isCatalogueDir(dir string) bool { return v.PathJoin(dir) == v.PathJoin(v.dir) }

// swallow hands a failure to note, unless that is nil: then pebble is told.
func swallow(err error, note func(error)) error {
	if err != nil && note != nil {
		note(err)
		return nil
	}
	return err
}

func (v void) change(note func(error), change func() error) error {
	if v.on.Load() {
		return nil
	}
	return swallow(change(), note)
}

// file opens a file to write to, or one in memory.
func (v void) file(name string, category vfs.DiskWriteCategory, open func() (vfs.File, error)) (
	vfs.File, error) {
	if !v.on.Load() {
		f, err := open()
		if err == nil {
			return voidFile{f, v, v.failureHandler(name)}, nil
		}
		if err := swallow(err, v.failureHandler(name)); err != nil {
			return nil, err
		}
	}
	return vfs.NewMem().Create(v.PathBase(name), category)
}

// options reports whether a file is pebble's OPTIONS, or what becomes it.
func (v void) options(name string) bool {
	base := v.PathBase(name)
	return strings.HasPrefix(base, "OPTIONS-") || strings.HasSuffix(base, ".dbtmp")
}

// Open opens a file to read. A checkpoint copies OPTIONS.
func (v void) Open(name string, opts ...vfs.OpenOption) (vfs.File, error) {
	if v.options(name) {
		return vfs.NewMem().Create(v.PathBase(name), vfs.WriteCategoryUnspecified)
	}
	return v.FS.Open(name, opts...)
}

// Create creates a file. A marker names a MANIFEST, whose own name pebble has not synced
// yet: a crash must not keep the marker without it.
func (v void) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	if v.options(name) {
		return vfs.NewMem().Create(v.PathBase(name), category)
	}
	return v.file(name, category, func() (vfs.File, error) {
		if dir := v.PathDir(name); v.isCatalogueDir(dir) &&
			strings.HasPrefix(v.PathBase(name), "marker.") {
			if err := durable.SyncDir(v.FS, dir); err != nil {
				return nil, err
			}
		}
		return v.FS.Create(name, category)
	})
}

func (v void) ReuseForWrite(from, to string, category vfs.DiskWriteCategory) (vfs.File, error) {
	return v.file(to, category, func() (vfs.File, error) {
		return v.FS.ReuseForWrite(from, to, category)
	})
}

// OpenDir opens a directory. pebble panics when one cannot be synced.
func (v void) OpenDir(name string) (vfs.File, error) {
	f, err := v.FS.OpenDir(name)
	if err != nil {
		return nil, err
	}
	if v.isCatalogueDir(name) {
		return voidFile{f, v, v.fail}, nil
	}
	return voidFile{f, v, v.unsynced}, nil
}

func (v void) Rename(from, to string) error {
	if v.options(from) {
		return nil
	}
	return v.change(v.failureHandler(to), func() error { return v.FS.Rename(from, to) })
}

func (v void) Link(from, to string) error {
	return v.change(nil, func() error { return v.FS.Link(from, to) })
}

// Remove removes a file. Of an old MANIFEST that stays pebble only makes a note.
func (v void) Remove(name string) error {
	if !strings.HasPrefix(v.PathBase(name), "marker.") {
		return v.change(nil, func() error { return v.FS.Remove(name) })
	}
	return v.change(v.failureHandler(name), func() error { return v.FS.Remove(name) })
}

func (v void) RemoveAll(name string) error {
	return v.change(nil, func() error { return v.FS.RemoveAll(name) })
}

// Unwrap returns the file system below.
func (v void) Unwrap() vfs.FS { return v.FS }

type voidFile struct {
	vfs.File
	v    void
	note func(error) // takes failures of which pebble is not told; nil = it is told
}

func (f voidFile) Write(p []byte) (n int, err error) {
	n = len(p)
	err = f.v.change(f.note, func() (err error) {
		if n, err = f.File.Write(p); err != nil && f.note != nil {
			n = len(p)
		}
		return err
	})
	return n, err
}

func (f voidFile) Sync() error     { return f.v.change(f.note, f.File.Sync) }
func (f voidFile) SyncData() error { return f.v.change(f.note, f.File.SyncData) }
func (f voidFile) Close() error    { return swallow(f.File.Close(), f.note) }

func (f voidFile) SyncTo(n int64) (full bool, err error) {
	full = true
	err = f.v.change(f.note, func() (err error) {
		full, err = f.File.SyncTo(n)
		return err
	})
	return full, err
}

func (f voidFile) Preallocate(at, n int64) error {
	return f.v.change(f.note, func() error { return f.File.Preallocate(at, n) })
}
