package diskfs

import (
	"syscall"

	"github.com/hanwen/go-fuse/v2/fuse"
)

// fails decides whether an operation on n does. The caller holds the lock.
func (d *Disk) fails(op Op, n *inode) syscall.Errno {
	if d.cut {
		return syscall.EIO
	}
	if d.fault == nil || n == nil {
		return 0
	}
	e := d.fault(op, n.name)
	if e != 0 {
		d.faults++
	}
	return e
}

// room takes bytes of the capacity for n, which is to have size bytes.
func (d *Disk) room(n *inode, size int64) bool {
	want := max(size, n.reserve)
	if want > n.charged && d.used+want-n.charged > d.capacity {
		d.faults++
		return false
	}
	d.used += want - n.charged
	n.charged = want
	return true
}

func (d *Disk) read(n *inode, off int64, buf []byte) int {
	if off >= int64(len(n.data)) {
		return 0
	}
	return copy(buf, n.data[off:])
}

func (d *Disk) write(n *inode, off int64, data []byte) syscall.Errno {
	if !d.room(n, max(off+int64(len(data)), int64(len(n.data)))) {
		return syscall.ENOSPC
	}
	n.data = written(n.data, off, data)
	n.pending = append(n.pending, write{off, append([]byte{}, data...)})
	return 0
}

func (d *Disk) truncate(n *inode, size int64) syscall.Errno {
	if size < int64(len(n.data)) {
		n.reserve = 0
	}
	if !d.room(n, size) {
		return syscall.ENOSPC
	}
	n.data = resized(n.data, size)
	n.pending = append(n.pending, write{off: size})
	return 0
}

func (d *Disk) allocate(n *inode, end int64, keepSize bool) syscall.Errno {
	reserve := n.reserve
	n.reserve = max(n.reserve, end)
	if !d.room(n, int64(len(n.data))) {
		n.reserve = reserve
		return syscall.ENOSPC
	}
	if !keepSize && end > int64(len(n.data)) {
		return d.truncate(n, end)
	}
	return 0
}

func (d *Disk) sync(n *inode) {
	for _, w := range n.pending {
		if w.data == nil {
			n.synced = resized(n.synced, w.off)
		} else {
			n.synced = written(n.synced, w.off, w.data)
		}
	}
	n.pending = nil
}

// failedSync does what Linux does: what was to be written is clean from then on
// and will never be, a later sync says that all is well.
func (d *Disk) failedSync(n *inode) { n.pending = nil }

// syncDir makes the entries of a directory durable, and those of others that a
// rename ties to them.
func (d *Disk) syncDir(dir *inode) {
	tied := map[*inode]bool{dir: true}
	commit := make([]bool, len(d.journal))
	for i := len(d.journal) - 1; i >= 0; i-- {
		r := d.journal[i]
		if tied[r.dirs[0]] || tied[r.dirs[1]] {
			commit[i] = true
			tied[r.dirs[0]], tied[r.dirs[1]] = true, true
		}
	}
	keep := d.journal[:0]
	for i, r := range d.journal {
		if commit[i] {
			r.do()
		} else {
			keep = append(keep, r)
		}
	}
	d.journal = keep
}

// enter gives dir an entry, now and, once it is synced, for good.
func (d *Disk) enter(dir *inode, name string, id uint64) {
	dir.entries[name] = id
	d.journal = append(d.journal, rename{[2]*inode{dir, dir}, func() { dir.durable[name] = id }})
}

func (d *Disk) remove(dir *inode, name string) {
	n := d.inodes[dir.entries[name]]
	delete(dir.entries, name)
	d.unlinked(n)
	d.journal = append(d.journal, rename{[2]*inode{dir, dir}, func() { delete(dir.durable, name) }})
}

// unlinked counts a name less. The bytes stay as long as a power cut could bring
// the name back; they are free for others.
func (d *Disk) unlinked(n *inode) {
	n.links--
	if n.links == 0 && n.open == 0 {
		d.used -= n.charged
		n.charged = 0
	}
}

func (d *Disk) move(from, to *inode, old, name string) {
	id := from.entries[old]
	if prev, ok := to.entries[name]; ok && prev != id {
		d.unlinked(d.inodes[prev])
	}
	delete(from.entries, old)
	to.entries[name] = id
	d.inodes[id].name = join(to, name)
	d.journal = append(d.journal, rename{[2]*inode{from, to}, func() {
		delete(from.durable, old)
		to.durable[name] = id
	}})
}

func join(dir *inode, name string) string {
	if dir.id == rootID {
		return name
	}
	return dir.name + "/" + name
}

func (n *inode) attr(out *fuse.Attr) {
	out.Ino, out.Nlink, out.Blksize = n.id, uint32(max(n.links, 1)), 4096
	if n.entries != nil {
		out.Mode = fuse.S_IFDIR | 0o755
		return
	}
	out.Mode, out.Size = fuse.S_IFREG|0o644, uint64(len(n.data))
	out.Blocks = uint64(n.charged+511) / 512
}
