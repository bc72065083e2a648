package diskfs

import (
	"syscall"

	"github.com/hanwen/go-fuse/v2/fuse"
)

func (c *calls) Open(_ <-chan struct{}, in *fuse.OpenIn, out *fuse.OpenOut) fuse.Status {
	n, st := c.begin(OpRead, in.NodeId)
	defer c.d.mu.Unlock()
	if st != fuse.OK {
		return st
	}
	if in.Flags&syscall.O_TRUNC != 0 {
		if e := c.d.truncate(n, 0); e != 0 {
			return fuse.Status(e)
		}
	}
	n.open++
	out.OpenFlags = fuse.FOPEN_DIRECT_IO
	return fuse.OK
}

func (c *calls) Release(_ <-chan struct{}, in *fuse.ReleaseIn) {
	n, st := c.begin(0, in.NodeId)
	defer c.d.mu.Unlock()
	if st != fuse.OK || n.open == 0 {
		return
	}
	n.open--
	n.reserve = 0
	if n.links == 0 && n.open == 0 {
		c.d.used -= n.charged
		n.charged = 0
	}
}

func (c *calls) Read(_ <-chan struct{}, in *fuse.ReadIn, buf []byte) (fuse.ReadResult,
	fuse.Status) {
	n, st := c.begin(OpRead, in.NodeId)
	defer c.d.mu.Unlock()
	if st != fuse.OK {
		return nil, st
	}
	return fuse.ReadResultData(buf[:c.d.read(n, int64(in.Offset), buf)]), fuse.OK
}

func (c *calls) Write(_ <-chan struct{}, in *fuse.WriteIn, data []byte) (uint32, fuse.Status) {
	n, st := c.begin(OpWrite, in.NodeId)
	defer c.d.mu.Unlock()
	if st != fuse.OK {
		if n != nil && !c.d.cut && c.d.rng.IntN(2) == 0 {
			// a part of it may have arrived
			_ = c.d.write(n, int64(in.Offset), data[:c.d.rng.IntN(len(data)+1)])
		}
		return 0, st
	}
	if e := c.d.write(n, int64(in.Offset), data); e != 0 {
		return 0, fuse.Status(e)
	}
	return uint32(len(data)), fuse.OK
}

func (c *calls) Fsync(_ <-chan struct{}, in *fuse.FsyncIn) fuse.Status {
	n, st := c.begin(OpSync, in.NodeId)
	defer c.d.mu.Unlock()
	if st != fuse.OK {
		if n != nil && !c.d.cut {
			c.d.failedSync(n)
		}
		return st
	}
	c.d.sync(n)
	return fuse.OK
}

func (c *calls) FsyncDir(_ <-chan struct{}, in *fuse.FsyncIn) fuse.Status {
	n, st := c.begin(OpSync, in.NodeId)
	defer c.d.mu.Unlock()
	if st != fuse.OK {
		return st
	}
	c.d.syncDir(n)
	return fuse.OK
}

func (c *calls) Fallocate(_ <-chan struct{}, in *fuse.FallocateIn) fuse.Status {
	n, st := c.begin(OpWrite, in.NodeId)
	defer c.d.mu.Unlock()
	if st != fuse.OK {
		return st
	}
	const keepSize = 1
	if in.Mode&^keepSize != 0 {
		return fuse.Status(syscall.EOPNOTSUPP)
	}
	return fuse.Status(c.d.allocate(n, int64(in.Offset+in.Length), in.Mode == keepSize))
}

func (c *calls) Flush(<-chan struct{}, *fuse.FlushIn) fuse.Status { return fuse.OK }

func (c *calls) OpenDir(_ <-chan struct{}, in *fuse.OpenIn, _ *fuse.OpenOut) fuse.Status {
	_, st := c.begin(OpRead, in.NodeId)
	c.d.mu.Unlock()
	return st
}

func (c *calls) ReleaseDir(*fuse.ReleaseIn) {}

func (c *calls) Access(<-chan struct{}, *fuse.AccessIn) fuse.Status { return fuse.OK }
