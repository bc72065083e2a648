package postings

import (
	"math/bits"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"
)

// Lists is many lists of ids, each known by a number: small ones, as every list costs 8 bytes up
// to the highest number in use. A list of one id takes nothing else, one of up to maxShort ids 4
// bytes an id, rounded up to a power of two, and a longer one is a roaring bitmap.
//
// Reads may be concurrent with each other, not with changes. The zero value has only empty lists.
type Lists struct {
	heads  []head
	blocks [classes]blocks
	long   []*roaring.Bitmap
	free   []uint32 // places in long
}

// A list becomes long above maxShort ids, where a bitmap takes less, and short again at
// minLong, so that an id that comes and goes does not move it each time.
const (
	classes  = 6
	maxShort = 1 << classes
	minLong  = maxShort / 2
)

// head says where the ids of a list are: at is the only id, the block, or the place in long.
type head struct {
	at uint32
	n  uint32 // ids, with isLong
}

const isLong = 1 << 31

// classOf returns the class of blocks for n ids: from 2 in class 0 to maxShort.
func classOf(n int) int { return bits.Len(uint(n-1)) - 1 }

// blocks are blocks of one length, with a list of the free ones through their first ids.
type blocks struct {
	chunks [][]uint32
	used   uint32 // blocks that were ever used
	free   uint32 // number of the first free one + 1
}

const chunkIDs = 1 << 14 // ids of a chunk of blocks

func (b *blocks) get(class int, at uint32) []uint32 {
	size := uint32(2) << class
	per := chunkIDs / size
	return b.chunks[at/per][at%per*size:][:size:size]
}

func (b *blocks) take(class int) (at uint32) {
	if b.free != 0 {
		at = b.free - 1
		b.free = b.get(class, at)[0]
		return at
	}
	if at = b.used; at == uint32(len(b.chunks))*(chunkIDs>>(class+1)) {
		b.chunks = append(b.chunks, make([]uint32, chunkIDs))
	}
	b.used++
	return at
}

func (b *blocks) give(class int, at uint32) {
	b.get(class, at)[0] = b.free
	b.free = at + 1
}

// Len returns how many ids a list has.
func (l *Lists) Len(list uint32) int {
	if int(list) >= len(l.heads) {
		return 0
	}
	h := l.heads[list]
	if h.n&isLong != 0 {
		return int(l.long[h.at].GetCardinality())
	}
	return int(h.n)
}

// shortIDs returns the ids of a list that is not long, in ascending order. one is memory for them.
func (l *Lists) shortIDs(h head, one *[1]uint32) []uint32 {
	switch h.n {
	case 0:
		return nil
	case 1:
		one[0] = h.at
		return one[:]
	}
	class := classOf(int(h.n))
	return l.blocks[class].get(class, h.at)[:h.n]
}

// Add adds an id to a list that has it not.
func (l *Lists) Add(list, id uint32) {
	if n := int(list) + 1; n > len(l.heads) {
		l.heads = slices.Grow(l.heads, n-len(l.heads))[:n]
	}
	h := &l.heads[list]
	if h.n&isLong != 0 {
		l.long[h.at].Add(id)
		return
	}
	var one [1]uint32
	ids := l.shortIDs(*h, &one)
	at, _ := slices.BinarySearch(ids, id)
	if n := len(ids); n > 1 && n < 2<<classOf(n) { // room in its block
		ids = ids[:n+1]
		copy(ids[at+1:], ids[at:])
		ids[at] = id
		h.n++
		return
	}
	l.store(h, slices.Insert(slices.Clone(ids), at, id))
}

// Remove removes an id from a list that has it.
func (l *Lists) Remove(list, id uint32) {
	h := &l.heads[list]
	if h.n&isLong != 0 {
		b := l.long[h.at]
		if b.Remove(id); b.GetCardinality() <= minLong {
			l.long[h.at] = nil
			l.free = append(l.free, h.at)
			*h = head{}
			l.store(h, b.ToArray())
		}
		return
	}
	var one [1]uint32
	ids := l.shortIDs(*h, &one)
	at, _ := slices.BinarySearch(ids, id)
	if n := len(ids); n > 2 && classOf(n-1) == classOf(n) {
		copy(ids[at:], ids[at+1:])
		h.n--
		return
	}
	l.store(h, slices.Delete(slices.Clone(ids), at, at+1))
}

// store gives a list that is not long other ids, in a place of their own.
func (l *Lists) store(h *head, ids []uint32) {
	if h.n > 1 {
		class := classOf(int(h.n))
		l.blocks[class].give(class, h.at)
	}
	h.n = uint32(len(ids))
	switch n := len(ids); {
	case n == 0:
		h.at = 0
	case n == 1:
		h.at = ids[0]
	case n <= maxShort:
		class := classOf(n)
		h.at = l.blocks[class].take(class)
		copy(l.blocks[class].get(class, h.at), ids)
	default:
		b := roaring.BitmapOf(ids...)
		if n := len(l.free); n > 0 {
			h.at, l.free = l.free[n-1], l.free[:n-1]
			l.long[h.at] = b
		} else {
			h.at = uint32(len(l.long))
			l.long = append(l.long, b)
		}
		h.n = isLong
	}
}

// Set returns the ids of a list. They are valid until the lists change.
func (l *Lists) Set(list uint32) Set {
	if int(list) >= len(l.heads) {
		return Of()
	}
	h := l.heads[list]
	if h.n&isLong != 0 {
		return Set{l.long[h.at]}
	}
	var one [1]uint32
	return Of(l.shortIDs(h, &one)...)
}

// Collect adds the ids of a list to a union.
func (l *Lists) Collect(u *Union, list uint32) {
	if int(list) >= len(l.heads) {
		return
	}
	h := l.heads[list]
	if h.n&isLong != 0 {
		for id := range (Set{l.long[h.at]}).All() {
			u.Add(id)
		}
		return
	}
	var one [1]uint32
	for _, id := range l.shortIDs(h, &one) {
		u.Add(id)
	}
}

// CommonLen returns how many ids a list has in common with a set.
func (l *Lists) CommonLen(list uint32, s Set) (n int) {
	if int(list) >= len(l.heads) {
		return 0
	}
	h := l.heads[list]
	if h.n&isLong != 0 {
		return s.CommonLen(Set{l.long[h.at]})
	}
	var one [1]uint32
	for _, id := range l.shortIDs(h, &one) {
		if s.Contains(id) {
			n++
		}
	}
	return n
}

// Bytes returns the memory of all lists.
func (l *Lists) Bytes() int64 {
	n := int64(cap(l.heads))*8 + int64(cap(l.long))*8 + int64(cap(l.free))*4
	for i := range l.blocks {
		n += int64(len(l.blocks[i].chunks)) * (chunkIDs*4 + 24)
	}
	for _, b := range l.long {
		if b != nil {
			n += bitmapBytes + int64(b.GetSizeInBytes())
		}
	}
	return n
}

// bitmapBytes is what a bitmap takes beside its ids.
const bitmapBytes = 200
