// Package pagecache is for tests: a disk in memory behind a page cache as Linux has
// it. What a failed fsync was to write stays readable, counts as written from then on,
// and never is: a later fsync, of whichever process, says that all is well. Only a
// power cut shows it.
package pagecache

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"strings"
	"sync"
	"syscall"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// FS is the page cache; the embedded file system is what processes read. Changes of
// names are durable at once.
type FS struct {
	vfs.FS

	mu    sync.Mutex
	files map[string]*file
	fail  func(name string) bool
}

// file is what the disk has of one file, and what is to be written by its next fsync.
type file struct {
	disk  []byte
	dirty []span
}

type span struct {
	off  int64
	data []byte
}

// New returns an empty disk.
func New() *FS { return &FS{FS: vfs.NewMem(), files: map[string]*file{}} }

// FailSyncs sets what decides, by the name of a file, whether its fsync fails; nil ends
// all failures.
func (fs *FS) FailSyncs(fail func(name string) bool) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	fs.fail = fail
}

// PowerCut returns what is left after a power cut: of every file what the disk has.
func (fs *FS) PowerCut() (*FS, error) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	left := New()
	for name, f := range fs.files {
		if err := left.MkdirAll(left.PathDir(name), 0o755); err != nil {
			return nil, err
		}
		w, err := left.Create(name, vfs.WriteCategoryUnspecified)
		if err != nil {
			return nil, err
		}
		_, err = w.Write(bytes.Clone(f.disk))
		if err := errors.Join(err, w.Sync(), w.Close()); err != nil {
			return nil, err
		}
	}
	return left, nil
}

func (fs *FS) enter(name string, f vfs.File, err error) (vfs.File, error) {
	if err != nil {
		return nil, err
	}
	return &handle{File: f, fs: fs, name: name}, nil
}

// Create makes a file, in place of one that is there.
func (fs *FS) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := fs.FS.Create(name, c)
	if err == nil {
		fs.mu.Lock()
		defer fs.mu.Unlock()
		fs.files[name] = &file{}
	}
	return fs.enter(name, f, err)
}

// OpenReadWrite opens a file that is there.
func (fs *FS) OpenReadWrite(name string, c vfs.DiskWriteCategory,
	opts ...vfs.OpenOption) (vfs.File, error) {
	f, err := fs.FS.OpenReadWrite(name, c, opts...)
	return fs.enter(name, f, err)
}

// Rename gives a file, or a directory with what is in it, another name.
func (fs *FS) Rename(from, to string) error {
	err := fs.FS.Rename(from, to)
	if err == nil {
		fs.mu.Lock()
		defer fs.mu.Unlock()
		moved := map[string]*file{}
		for name, f := range fs.files {
			if rest, ok := strings.CutPrefix(name, from); ok && (rest == "" || rest[0] == '/') {
				moved[to+rest] = f
				delete(fs.files, name)
			}
		}
		maps.Copy(fs.files, moved)
	}
	return err
}

// RemoveAll removes a directory with what is in it.
func (fs *FS) RemoveAll(name string) error {
	err := fs.FS.RemoveAll(name)
	if err == nil {
		fs.mu.Lock()
		defer fs.mu.Unlock()
		maps.DeleteFunc(fs.files, func(n string, _ *file) bool {
			return n == name || strings.HasPrefix(n, name+"/")
		})
	}
	return err
}

// Link gives a file a second name.
func (fs *FS) Link(from, to string) error {
	err := fs.FS.Link(from, to)
	if err == nil {
		fs.mu.Lock()
		defer fs.mu.Unlock()
		if f := fs.files[from]; f != nil {
			fs.files[to] = f
		}
	}
	return err
}

// Remove removes a file.
func (fs *FS) Remove(name string) error {
	err := fs.FS.Remove(name)
	if err == nil {
		fs.mu.Lock()
		defer fs.mu.Unlock()
		delete(fs.files, name)
	}
	return err
}

// handle is a file that is open to be written.
type handle struct {
	vfs.File
	fs   *FS
	name string
	end  int64 // of what Write wrote
}

func (h *handle) note(off int64, p []byte) {
	h.fs.mu.Lock()
	defer h.fs.mu.Unlock()
	if f := h.fs.files[h.name]; f != nil {
		f.dirty = append(f.dirty, span{off, bytes.Clone(p)})
	}
}

// Write appends.
func (h *handle) Write(p []byte) (int, error) {
	h.note(h.end, p)
	n, err := h.File.Write(p)
	h.end += int64(n)
	return n, err
}

// WriteAt writes somewhere.
func (h *handle) WriteAt(p []byte, off int64) (int, error) {
	h.note(off, p)
	return h.File.WriteAt(p, off)
}

// Sync writes what is dirty, or drops it.
func (h *handle) Sync() error {
	h.fs.mu.Lock()
	defer h.fs.mu.Unlock()
	f := h.fs.files[h.name]
	if f == nil {
		return nil // removed
	}
	dirty := f.dirty
	f.dirty = nil
	if h.fs.fail != nil && h.fs.fail(h.name) {
		return fmt.Errorf("fsync %s: %w", h.name, syscall.EIO)
	}
	for _, s := range dirty {
		if past := s.off + int64(len(s.data)); past > int64(len(f.disk)) {
			f.disk = append(f.disk, make([]byte, past-int64(len(f.disk)))...)
		}
		copy(f.disk[s.off:], s.data)
	}
	return nil
}

// SyncData is Sync.
func (h *handle) SyncData() error { return h.Sync() }

// SyncTo is Sync.
func (h *handle) SyncTo(int64) (bool, error) { return true, h.Sync() }

var _ io.WriterAt = (*handle)(nil)
