// Package readonly is a file system that reads at a bounded rate and writes nothing, whatever the
// code above it tries.
package readonly

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/errors/oserror"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// ErrReadOnly is wrapped by the error of every change.
var ErrReadOnly = errors.New("a check changes nothing")

// FS reads files of another file system, and refuses every change. Copies share what they
// have read.
type FS struct {
	vfs.FS
	pace *pace
}

// New returns a file system that reads files of fs at rate bytes per second, 0 for as fast as
// possible, until ctx ends.
func New(ctx context.Context, fs vfs.FS, rate int64) FS {
	return FS{fs, &pace{ctx: ctx, rate: rate}}
}

// Bytes is how much was read so far.
func (f FS) Bytes() int64 { return f.pace.bytes.Load() }

// Err says why reads fail now, nil while the context goes on.
func (f FS) Err() error { return f.pace.ctx.Err() }

func (f FS) Create(name string, _ vfs.DiskWriteCategory) (vfs.File, error) {
	return nil, fmt.Errorf("create %s: %w", name, ErrReadOnly)
}

func (f FS) OpenReadWrite(name string, _ vfs.DiskWriteCategory,
	_ ...vfs.OpenOption) (vfs.File, error) {
	return nil, fmt.Errorf("open %s for writing: %w", name, ErrReadOnly)
}

func (f FS) ReuseForWrite(_, name string, _ vfs.DiskWriteCategory) (vfs.File, error) {
	return nil, fmt.Errorf("reuse %s: %w", name, ErrReadOnly)
}

func (f FS) Link(_, name string) error {
	return fmt.Errorf("link %s: %w", name, ErrReadOnly)
}

func (f FS) Rename(_, name string) error {
	return fmt.Errorf("rename to %s: %w", name, ErrReadOnly)
}

func (f FS) Remove(name string) error {
	return fmt.Errorf("remove %s: %w", name, ErrReadOnly)
}

func (f FS) RemoveAll(name string) error {
	return fmt.Errorf("remove %s: %w", name, ErrReadOnly)
}

func (f FS) MkdirAll(dir string, _ os.FileMode) error {
	return fmt.Errorf("make %s: %w", dir, ErrReadOnly)
}

// Lock takes a lock that exists. To make its file would be a change, and what
// has none is in nobody's use.
func (f FS) Lock(name string) (io.Closer, error) {
	if _, err := f.Stat(name); oserror.IsNotExist(err) {
		return noLock{}, nil
	}
	return f.FS.Lock(name)
}

type noLock struct{}

func (noLock) Close() error { return nil }

func (f FS) Open(name string, opts ...vfs.OpenOption) (vfs.File, error) {
	if err := f.pace.ctx.Err(); err != nil {
		return nil, err
	}
	of, err := f.FS.Open(name, opts...)
	if err != nil {
		return nil, err
	}
	return file{of, f.pace}, nil
}

// file counts what is read, and waits where that is too much.
type file struct {
	vfs.File
	pace *pace
}

func (f file) Read(p []byte) (int, error) {
	n, err := f.File.Read(p)
	if perr := f.pace.took(n); perr != nil {
		return 0, perr
	}
	return n, err
}

func (f file) ReadAt(p []byte, off int64) (int, error) {
	n, err := f.File.ReadAt(p, off)
	if perr := f.pace.took(n); perr != nil {
		return 0, perr
	}
	return n, err
}

// pace bounds the bytes that are read per second, and ends reads when ctx does.
type pace struct {
	ctx   context.Context
	rate  int64 // bytes per second, 0 = unbounded
	bytes atomic.Int64

	mu    sync.Mutex
	start time.Time
	due   int64 // bytes since start
}

// took notes n bytes and waits until they were due.
func (p *pace) took(n int) error {
	p.bytes.Add(int64(n))
	if p.rate <= 0 {
		return p.ctx.Err()
	}
	p.mu.Lock()
	if p.start.IsZero() {
		p.start = time.Now()
	}
	p.due += int64(n)
	wait := time.Until(
		p.start.Add(time.Duration(float64(p.due) / float64(p.rate) * float64(time.Second))))
	if wait < -time.Second {
		// Time that was spent on other things is not made up for by a burst.
		p.start, p.due = time.Now(), 0
	}
	p.mu.Unlock()
	if wait < time.Millisecond {
		return p.ctx.Err()
	}
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-p.ctx.Done():
		return p.ctx.Err()
	}
}
