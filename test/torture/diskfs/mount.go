package diskfs

import (
	"fmt"
	"sort"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fuse"
)

// Mount is a disk at a directory.
type Mount struct {
	server *fuse.Server
}

// Available says whether this machine lets a program mount with FUSE.
func Available() error {
	fd, err := syscall.Open("/dev/fuse", syscall.O_RDWR, 0)
	if err != nil {
		return fmt.Errorf("/dev/fuse: %w", err)
	}
	return syscall.Close(fd)
}

// Mount mounts the disk.
func (d *Disk) Mount(dir string) (*Mount, error) {
	server, err := fuse.NewServer(&calls{RawFileSystem: fuse.NewDefaultRawFileSystem(), d: d}, dir,
		&fuse.MountOptions{
			DirectMount: true, FsName: "torture", Name: "torture", MaxWrite: 1 << 20,
			DisableReadDirPlus: true,
		})
	if err != nil {
		return nil, err
	}
	go server.Serve()
	if err := server.WaitMount(); err != nil {
		return nil, err
	}
	return &Mount{server}, nil
}

// Unmount ends the mount; no program may have files open in it.
func (m *Mount) Unmount() error { return m.server.Unmount() }

// calls are the requests of the kernel.
type calls struct {
	fuse.RawFileSystem
	d *Disk
}

const valid = 1 // seconds that the kernel may keep names and sizes

func (c *calls) entry(n *inode, out *fuse.EntryOut) {
	out.NodeId, out.EntryValid, out.AttrValid = n.id, valid, valid
	n.attr(&out.Attr)
}

// begin takes the lock and finds a node. The caller unlocks, whatever it got.
func (c *calls) begin(op Op, id uint64) (*inode, fuse.Status) {
	c.d.mu.Lock()
	n := c.d.inodes[id]
	if n == nil {
		return nil, fuse.ENOENT
	}
	if op != 0 {
		if e := c.d.fails(op, n); e != 0 {
			return n, fuse.Status(e)
		}
	}
	return n, fuse.OK
}

// beginEntry is begin for a name in a directory; faults are about the name.
func (c *calls) beginEntry(op Op, id uint64, name string) (*inode, *inode, fuse.Status) {
	dir, st := c.begin(0, id)
	if st != fuse.OK {
		return nil, nil, st
	}
	n := c.d.inodes[dir.entries[name]]
	about := n
	if about == nil {
		about = &inode{name: join(dir, name)}
	}
	if op != 0 {
		if e := c.d.fails(op, about); e != 0 {
			return dir, n, fuse.Status(e)
		}
	}
	return dir, n, fuse.OK
}

func (c *calls) Lookup(_ <-chan struct{}, h *fuse.InHeader, name string,
	out *fuse.EntryOut) fuse.Status {
	_, n, st := c.beginEntry(0, h.NodeId, name)
	defer c.d.mu.Unlock()
	if st != fuse.OK {
		return st
	}
	if n == nil {
		return fuse.ENOENT
	}
	c.entry(n, out)
	return fuse.OK
}

func (c *calls) GetAttr(_ <-chan struct{}, in *fuse.GetAttrIn, out *fuse.AttrOut) fuse.Status {
	n, st := c.begin(0, in.NodeId)
	defer c.d.mu.Unlock()
	if st != fuse.OK {
		return st
	}
	out.AttrValid = valid
	n.attr(&out.Attr)
	return fuse.OK
}

func (c *calls) SetAttr(_ <-chan struct{}, in *fuse.SetAttrIn, out *fuse.AttrOut) fuse.Status {
	n, st := c.begin(OpWrite, in.NodeId)
	defer c.d.mu.Unlock()
	if st != fuse.OK {
		return st
	}
	if size, ok := in.GetSize(); ok {
		if e := c.d.truncate(n, int64(size)); e != 0 {
			return fuse.Status(e)
		}
	}
	out.AttrValid = valid
	n.attr(&out.Attr)
	return fuse.OK
}

// create adds a node under a name.
func (c *calls) create(parent uint64, name string, dir bool, out *fuse.EntryOut) (*inode,
	fuse.Status) {
	p, n, st := c.beginEntry(OpNames, parent, name)
	defer c.d.mu.Unlock()
	if st != fuse.OK {
		return nil, st
	}
	if n != nil {
		return nil, fuse.Status(syscall.EEXIST)
	}
	if c.d.used >= c.d.capacity {
		c.d.faults++
		return nil, fuse.Status(syscall.ENOSPC)
	}
	n = c.d.make(dir, join(p, name))
	n.links = 1
	c.d.enter(p, name, n.id)
	c.entry(n, out)
	return n, fuse.OK
}

func (c *calls) Mkdir(_ <-chan struct{}, in *fuse.MkdirIn, name string,
	out *fuse.EntryOut) fuse.Status {
	_, st := c.create(in.NodeId, name, true, out)
	return st
}

func (c *calls) Create(_ <-chan struct{}, in *fuse.CreateIn, name string,
	out *fuse.CreateOut) fuse.Status {
	n, st := c.create(in.NodeId, name, false, &out.EntryOut)
	if st == fuse.OK {
		c.d.mu.Lock()
		n.open++
		c.d.mu.Unlock()
		out.OpenFlags = fuse.FOPEN_DIRECT_IO
	}
	return st
}

func (c *calls) drop(parent uint64, name string) fuse.Status {
	p, n, st := c.beginEntry(OpNames, parent, name)
	defer c.d.mu.Unlock()
	switch {
	case st != fuse.OK:
		return st
	case n == nil:
		return fuse.ENOENT
	case len(n.entries) > 0:
		return fuse.Status(syscall.ENOTEMPTY)
	}
	c.d.remove(p, name)
	return fuse.OK
}

func (c *calls) Unlink(_ <-chan struct{}, h *fuse.InHeader, name string) fuse.Status {
	return c.drop(h.NodeId, name)
}

func (c *calls) Rmdir(_ <-chan struct{}, h *fuse.InHeader, name string) fuse.Status {
	return c.drop(h.NodeId, name)
}

func (c *calls) Rename(_ <-chan struct{}, in *fuse.RenameIn, old, name string) fuse.Status {
	from, n, st := c.beginEntry(OpNames, in.NodeId, old)
	defer c.d.mu.Unlock()
	to := c.d.inodes[in.Newdir]
	switch {
	case st != fuse.OK:
		return st
	case n == nil || to == nil:
		return fuse.ENOENT
	case in.Flags != 0:
		return fuse.Status(syscall.EINVAL)
	}
	if prev := c.d.inodes[to.entries[name]]; prev != nil && len(prev.entries) > 0 {
		return fuse.Status(syscall.ENOTEMPTY)
	}
	c.d.move(from, to, old, name)
	return fuse.OK
}

func (c *calls) Link(_ <-chan struct{}, in *fuse.LinkIn, name string,
	out *fuse.EntryOut) fuse.Status {
	p, prev, st := c.beginEntry(OpNames, in.NodeId, name)
	defer c.d.mu.Unlock()
	n := c.d.inodes[in.Oldnodeid]
	switch {
	case st != fuse.OK:
		return st
	case n == nil:
		return fuse.ENOENT
	case prev != nil:
		return fuse.Status(syscall.EEXIST)
	}
	n.links++
	c.d.enter(p, name, n.id)
	c.entry(n, out)
	return fuse.OK
}

func (c *calls) StatFs(_ <-chan struct{}, _ *fuse.InHeader, out *fuse.StatfsOut) fuse.Status {
	c.d.mu.Lock()
	defer c.d.mu.Unlock()
	out.Bsize, out.Frsize, out.NameLen = 4096, 4096, 255
	out.Blocks = uint64(c.d.capacity / 4096)
	out.Bfree = uint64(max(0, c.d.capacity-c.d.used) / 4096)
	out.Bavail, out.Files, out.Ffree = out.Bfree, 1<<20, 1<<19
	return fuse.OK
}

func (c *calls) ReadDir(_ <-chan struct{}, in *fuse.ReadIn, out *fuse.DirEntryList) fuse.Status {
	n, st := c.begin(OpRead, in.NodeId)
	defer c.d.mu.Unlock()
	if st != fuse.OK {
		return st
	}
	names := make([]string, 0, len(n.entries))
	for name := range n.entries {
		names = append(names, name)
	}
	sort.Strings(names)
	for i := int(in.Offset); i < len(names); i++ {
		child := c.d.inodes[n.entries[names[i]]]
		var a fuse.Attr
		child.attr(&a)
		if !out.AddDirEntry(fuse.DirEntry{
			Name: names[i],
			Ino:  child.id,
			Mode: a.Mode,
			Off:  uint64(i + 1),
		}) {
			break
		}
	}
	return fuse.OK
}
