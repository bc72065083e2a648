package store

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

var errReadOnly = errors.New("a check changes nothing")

// inspectFS is a file system as a check sees it: it reads at a bounded rate and
// writes nothing, whatever the code above it tries.
type inspectFS struct {
	vfs.FS
	pace *pace
}

func (f inspectFS) Create(name string, _ vfs.DiskWriteCategory) (vfs.File, error) {
	return nil, fmt.Errorf("create %s: %w", name, errReadOnly)
}

func (f inspectFS) OpenReadWrite(name string, _ vfs.DiskWriteCategory, _ ...vfs.OpenOption) (vfs.File, error) {
	return nil, fmt.Errorf("open %s for writing: %w", name, errReadOnly)
}

func (f inspectFS) ReuseForWrite(_, name string, _ vfs.DiskWriteCategory) (vfs.File, error) {
	return nil, fmt.Errorf("reuse %s: %w", name, errReadOnly)
}

func (f inspectFS) Link(_, name string) error {
	return fmt.Errorf("link %s: %w", name, errReadOnly)
}

func (f inspectFS) Rename(_, name string) error {
	return fmt.Errorf("rename to %s: %w", name, errReadOnly)
}

func (f inspectFS) Remove(name string) error {
	return fmt.Errorf("remove %s: %w", name, errReadOnly)
}

func (f inspectFS) RemoveAll(name string) error {
	return fmt.Errorf("remove %s: %w", name, errReadOnly)
}

func (f inspectFS) MkdirAll(dir string, _ os.FileMode) error {
	return fmt.Errorf("make %s: %w", dir, errReadOnly)
}

// Lock takes a lock that exists. To make its file would be a change, and what
// has none is in nobody's use.
func (f inspectFS) Lock(name string) (io.Closer, error) {
	if _, err := f.Stat(name); oserror.IsNotExist(err) {
		return noLock{}, nil
	}
	return f.FS.Lock(name)
}

type noLock struct{}

func (noLock) Close() error { return nil }

func (f inspectFS) Open(name string, opts ...vfs.OpenOption) (vfs.File, error) {
	if err := f.pace.ctx.Err(); err != nil {
		return nil, err
	}
	file, err := f.FS.Open(name, opts...)
	if err != nil {
		return nil, err
	}
	return inspectFile{file, f.pace}, nil
}

// inspectFile counts what is read, and waits where that is too much.
type inspectFile struct {
	vfs.File
	pace *pace
}

func (f inspectFile) Read(p []byte) (int, error) {
	n, err := f.File.Read(p)
	if perr := f.pace.took(n); perr != nil {
		return 0, perr
	}
	return n, err
}

func (f inspectFile) ReadAt(p []byte, off int64) (int, error) {
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
	wait := time.Until(p.start.Add(time.Duration(float64(p.due) / float64(p.rate) * float64(time.Second))))
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
