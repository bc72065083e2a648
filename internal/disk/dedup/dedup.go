// Package dedup finds equal chunks among those that are added to a file, so that they are
// stored once. It bounds how many series share one copy, how many bytes are shared, and its
// memory.
package dedup

import (
	"bytes"

	"github.com/zeebo/xxh3"
)

const (
	// minBytes is the shortest chunk that another series shares: an entry that points
	// elsewhere takes some bytes too.
	minBytes = 16

	// MaxSharers is how many series share one copy of a chunk. The next one gets a copy of
	// its own, so that a damaged block takes the chunk from no more.
	MaxSharers = 64

	// MaxShared bounds the chunks of a file that are shared, as one copy each; they
	// stay in memory while the file is written.
	MaxShared = 8 << 20

	// maxKnown bounds the chunks among which equal ones are looked for, in 8 bytes each, and up
	// to 24 more that are free.
	maxKnown = 1 << 20
)

// Table finds equal chunks. Chunks have numbers: those of a caller's entries. It is not for
// concurrent use.
type Table struct {
	slots []knownChunk // a hash table with open addressing, whose size is a power of two
	known int
	kept  map[uint32]*sharedChunk
	bytes int // of kept

	series Series // of the chunk before
	owner  uint32 // of its bytes
	last   []byte
}

// Series names the series of a chunk.
type Series struct {
	Bucket uint64
	Hash   [16]byte
}

// knownChunk is an owner and a part of the hash of its chunk, 0 for a free slot.
type knownChunk struct{ tag, owner uint32 }

// sharedChunk is a chunk that several entries share.
type sharedChunk struct {
	data    []byte
	last    Series // of those that share it
	sharers int
}

// New returns a Table.
func New() *Table {
	return &Table{slots: make([]knownChunk, 1<<10), kept: make(map[uint32]*sharedChunk)}
}

// Find returns the number of a chunk that is equal to data and that this series may share. ok is
// false if there is none, and then own is the number of data from now on. The bytes of an earlier
// chunk are what read returns, nil if it has another length or cannot be read. They, and data, are
// only read during the call.
func (t *Table) Find(of Series, data []byte, own uint32,
	read func(owner uint32, length int) []byte) (owner uint32, ok bool) {
	if t.last != nil && of == t.series && bytes.Equal(data, t.last) {
		return t.owner, true
	}
	owner, ok = own, false
	if len(data) >= minBytes {
		owner, ok = t.look(of, data, own, read)
	}
	t.series, t.owner, t.last = of, owner, append(t.last[:0], data...)
	return owner, ok
}

// look looks for data among the chunks of all series.
func (t *Table) look(of Series, data []byte, own uint32,
	read func(owner uint32, length int) []byte) (owner uint32, ok bool) {
	tag, mask := max(uint32(xxh3.Hash(data)), 1), uint32(len(t.slots)-1)
	at := tag & mask
	for ; t.slots[at].tag != 0; at = (at + 1) & mask {
		known := &t.slots[at]
		if known.tag != tag {
			continue
		}
		c := t.kept[known.owner]
		if c == nil {
			c = t.keep(known.owner, read(known.owner, len(data)), data)
		}
		if c == nil || !bytes.Equal(c.data, data) {
			continue
		}
		if c.last != of {
			c.last = of
			c.sharers++
		}
		if c.sharers <= MaxSharers {
			return known.owner, true
		}
		delete(t.kept, known.owner)
		known.owner = own // the next ones share the new copy
		t.kept[own] = &sharedChunk{data: c.data, last: of, sharers: 1}
		return own, false
	}
	if t.known < maxKnown {
		t.slots[at] = knownChunk{tag, own}
		if t.known++; 2*t.known > len(t.slots) {
			t.grow()
		}
	}
	return own, false
}

// keep keeps the chunk of an owner, old, to be shared. It returns nil if that is not equal to
// data, or too much is shared.
func (t *Table) keep(owner uint32, old, data []byte) *sharedChunk {
	if !bytes.Equal(old, data) || t.bytes+len(data) > MaxShared {
		return nil
	}
	c := &sharedChunk{data: bytes.Clone(data), sharers: 1}
	t.bytes += len(data)
	t.kept[owner] = c
	return c
}

// grow doubles the table.
func (t *Table) grow() {
	old := t.slots
	t.slots = make([]knownChunk, 2*len(old))
	mask := uint32(len(t.slots) - 1)
	for _, k := range old {
		if k.tag == 0 {
			continue
		}
		at := k.tag & mask
		for t.slots[at].tag != 0 {
			at = (at + 1) & mask
		}
		t.slots[at] = k
	}
}
