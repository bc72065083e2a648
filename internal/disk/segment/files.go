package segment

import (
	"container/list"
	"fmt"
	"os"
	"sync"
	"sync/atomic"

	"dalmatiner/internal/disk/blockcache"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Files bounds what many Readers use together: open files, and memory for data blocks that
// were read more than once. A read opens its file if need be, and closes for it the one that
// was not read for the longest time. If all open files are being read, it waits until one is
// not. The methods may be called concurrently.
type Files struct {
	fs     vfs.FS
	limit  int
	blocks *blockcache.Cache // nil: none are kept
	number atomic.Uint32

	mu      sync.Mutex
	changed *sync.Cond // a file is not being read any more, or an opening has ended
	open    int        // files, with those that are being opened
	idle    list.List  // of *openFile: open and not being read, the last read in front
	opened  int64
}

// NewFiles returns Files that keep at most limit files open at a time, at least 1, and at
// most keep bytes of verified data blocks in memory. A keep of less than 256 KiB is none.
func NewFiles(fs vfs.FS, limit int, keep int64) *Files {
	c := &Files{fs: fs, limit: max(limit, 1), blocks: blockcache.New(keep)}
	c.changed = sync.NewCond(&c.mu)
	return c
}

// FileStats is the state of Files, and its counters since NewFiles.
type FileStats struct {
	Open, Limit int64 // files that are open, or being opened, and how many may be
	Opened      int64 // how often a file was opened

	Kept         int64 // bytes of data blocks in memory
	Hits, Misses int64 // data blocks that look-ups found in memory, and that they had to read
}

// Stats returns the state and the counters.
func (c *Files) Stats() FileStats {
	c.mu.Lock()
	st := FileStats{Open: int64(c.open), Limit: int64(c.limit), Opened: c.opened}
	c.mu.Unlock()
	if c.blocks != nil {
		st.Kept = c.CachedBytes()
		st.Hits, st.Misses = c.blocks.Counts()
	}
	return st
}

// CachedBytes returns the bytes of the data blocks in memory.
func (c *Files) CachedBytes() int64 {
	if c.blocks == nil {
		return 0
	}
	return c.blocks.HeldBytes()
}

// DropBlocks frees the data blocks in memory. Calls under way keep theirs until they return.
// Blocks that are read again are kept again.
func (c *Files) DropBlocks() {
	if c.blocks != nil {
		c.blocks.DropAll()
	}
}

// take returns the open file for one read. The caller gives it back with done.
func (c *Files) take(f *openFile) (vfs.File, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		switch {
		case f.closed:
			return nil, fmt.Errorf("read %s: %w", f.path, os.ErrClosed)
		case f.file != nil:
			if f.reads++; f.at != nil {
				c.idle.Remove(f.at)
				f.at = nil
			}
			return f.file, nil
		case f.opening:
		case c.open < c.limit:
			c.open++
			if err := c.reopen(f, nil); err != nil {
				return nil, err
			}
			continue
		case c.idle.Len() > 0:
			oldest := c.idle.Remove(c.idle.Back()).(*openFile)
			victim := oldest.file
			oldest.file, oldest.at = nil, nil
			if err := c.reopen(f, victim); err != nil {
				return nil, err
			}
			continue
		}
		c.changed.Wait()
	}
}

// reopen closes a file that makes room and opens another, without the lock: other
// files are read meanwhile. The place is taken already.
func (c *Files) reopen(f *openFile, victim vfs.File) error {
	f.opening = true
	c.mu.Unlock()
	if victim != nil {
		_ = victim.Close() // nothing was written to it
	}
	// The reader plans its own reads: read-ahead by the kernel would fetch what
	// a look-up never uses.
	file, err := c.fs.Open(f.path, vfs.RandomReadsOption)
	c.mu.Lock()
	f.opening = false
	if err == nil {
		f.file = file
		f.at = c.idle.PushFront(f)
		c.opened++
	} else {
		c.open--
	}
	c.changed.Broadcast()
	return err
}

// endRead ends a read.
func (c *Files) endRead(f *openFile) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if f.reads--; f.reads == 0 {
		f.at = c.idle.PushFront(f)
		c.changed.Broadcast()
	}
}

// close closes a file for good. No read of it is under way.
func (c *Files) close(f *openFile) error {
	c.mu.Lock()
	file := f.file
	if f.at != nil {
		c.idle.Remove(f.at)
	}
	f.file, f.at, f.closed = nil, nil, true
	c.mu.Unlock()
	if file == nil {
		return nil
	}
	err := file.Close()
	c.mu.Lock()
	c.open--
	c.changed.Broadcast()
	c.mu.Unlock()
	return err
}
