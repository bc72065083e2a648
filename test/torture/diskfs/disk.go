// Package diskfs is a disk that can lose its power, fail and fill up: a file
// system in memory, mounted with FUSE, that knows what was synced. The program
// under attack needs to know nothing of it.
//
// What a sync promises is what POSIX promises and no more: fsync of a file makes
// its bytes durable, fsync of a directory its entries. A power cut keeps what was
// synced, of the other changes of names a prefix, and of the other writes some
// sectors of 512 bytes.
package diskfs

import (
	"math/rand/v2"
	"sync"
	"syscall"
)

const (
	rootID = 1
	sector = 512
)

// Op is a kind of operation that can fail.
type Op uint8

// The kinds.
const (
	OpRead Op = 1 << iota
	OpWrite
	OpSync
	OpNames // create, rename, link, unlink, mkdir
)

// Disk is the state of a disk; it outlives its mounts.
type Disk struct {
	mu       sync.Mutex
	rng      *rand.Rand
	inodes   map[uint64]*inode
	next     uint64
	journal  []rename // changes of names that are not durable, in their order
	capacity int64    // bytes
	used     int64
	fault    func(op Op, name string) syscall.Errno
	faults   int
	cut      bool // the power is off: nothing reaches the disk any more
}

type inode struct {
	id      uint64
	name    string            // of its first entry, for faults
	entries map[string]uint64 // of a directory
	durable map[string]uint64 // the same, after a power cut
	data    []byte
	synced  []byte
	pending []write // since the last sync
	links   int
	open    int
	charged int64 // bytes of the capacity that it takes
	reserve int64 // bytes that were allocated
}

// write is a change of a file's bytes; a nil data is a change of its size.
type write struct {
	off  int64
	data []byte
}

// rename is a change of up to two directories that is one step.
type rename struct {
	dirs [2]*inode
	do   func()
}

// New returns an empty disk of capacity bytes.
func New(seed uint64, capacity int64) *Disk {
	d := &Disk{
		rng:      rand.New(rand.NewPCG(seed, 7)),
		inodes:   map[uint64]*inode{},
		next:     rootID,
		capacity: capacity,
	}
	d.make(true, "/")
	d.inodes[rootID].links = 1
	return d
}

func (d *Disk) make(dir bool, name string) *inode {
	n := &inode{id: d.next, name: name}
	if dir {
		n.entries, n.durable = map[string]uint64{}, map[string]uint64{}
	}
	d.inodes[d.next] = n
	d.next++
	return n
}

// SetFault sets what decides about each operation; nil ends all failures. name
// is the path of the file in the disk.
func (d *Disk) SetFault(f func(op Op, name string) syscall.Errno) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.fault = f
}

// Faults counts the operations that failed by SetFault or for want of space.
func (d *Disk) Faults() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.faults
}

// Fill sets the capacity so that free bytes are left, less than nothing too.
func (d *Disk) Fill(free int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.capacity = d.used + free
}

// SetCapacity sets the size of the disk.
func (d *Disk) SetCapacity(bytes int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.capacity = bytes
}

// CutPower makes everything from now on fail and forgets what was not durable.
// The program that uses the disk is to be killed then, the disk unmounted.
func (d *Disk) CutPower() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.cut = true
	keep := d.rng.IntN(len(d.journal) + 1)
	for _, r := range d.journal[:keep] {
		r.do()
	}
	d.journal = nil
	mode := d.rng.IntN(4)
	for _, n := range d.inodes {
		d.lose(n, mode)
	}
	d.sweep()
}

// PowerOn allows operations again, after a new mount.
func (d *Disk) PowerOn() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.cut = false
}

// lose leaves of a file what was synced and some of what was not: nothing, all,
// a prefix of the writes, or sectors by chance.
func (d *Disk) lose(n *inode, mode int) {
	n.open, n.reserve = 0, 0
	if n.entries != nil {
		n.entries = copied(n.durable)
		return
	}
	upto := len(n.pending)
	switch mode {
	case 0:
		upto = 0
	case 2:
		upto = d.rng.IntN(len(n.pending) + 1)
	}
	for _, w := range n.pending[:upto] {
		if w.data == nil {
			n.synced = resized(n.synced, w.off)
			continue
		}
		if mode < 3 {
			n.synced = written(n.synced, w.off, w.data)
			continue
		}
		for off := w.off; off < w.off+int64(len(w.data)); {
			end := min((off/sector+1)*sector, w.off+int64(len(w.data)))
			if d.rng.IntN(2) == 0 {
				n.synced = written(n.synced, off, w.data[off-w.off:end-w.off])
			}
			off = end
		}
	}
	n.pending = nil
	n.data = append([]byte(nil), n.synced...)
}

// sweep drops what no directory reaches and counts links and bytes anew.
func (d *Disk) sweep() {
	for _, n := range d.inodes {
		n.links = 0
	}
	d.used = 0
	d.reach(d.inodes[rootID])
	for id, n := range d.inodes {
		if n.links == 0 {
			delete(d.inodes, id)
		}
	}
}

func (d *Disk) reach(n *inode) {
	n.links++
	if n.links > 1 {
		return
	}
	n.charged = int64(len(n.data))
	d.used += n.charged
	for _, id := range n.entries {
		d.reach(d.inodes[id])
	}
}

func copied(m map[string]uint64) map[string]uint64 {
	out := make(map[string]uint64, len(m))
	for k, v := range m {
		out[k] = v
	}
	return out
}

func resized(b []byte, size int64) []byte {
	if size <= int64(len(b)) {
		return b[:size]
	}
	return append(b, make([]byte, size-int64(len(b)))...)
}

func written(b []byte, off int64, data []byte) []byte {
	if end := off + int64(len(data)); end > int64(len(b)) {
		b = resized(b, end)
	}
	copy(b[off:], data)
	return b
}
