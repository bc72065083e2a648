package segment

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"sync"
	"sync/atomic"

	"dalmatiner/internal/codec/zstd"
)

// directory is what a Reader keeps in memory of the index: the offsets of all
// blocks and the fences, as they lie in the file, and the leaves that were
// needed so far. It holds one pointer per loaded leaf, none per series or
// chunk. It reads the blocks that it knows the places of.
type directory struct {
	file *openFile // that it is of
	foot *footer

	raw     []byte
	blocks  int // of all kinds; raw starts with blocks+1 offsets
	leaves  []atomic.Pointer[leaf]
	rollups []atomic.Pointer[rollupBlock] // those of Small, then those of Large
	small   int                           // how many are of Small
	loaded  atomic.Int64                  // bytes of loaded leaves and rollups
}

func appendDirectory(dst []byte, offsets []int64, end int64, fences []byte) []byte {
	for _, off := range offsets {
		dst = binary.LittleEndian.AppendUint64(dst, uint64(off))
	}
	dst = binary.LittleEndian.AppendUint64(dst, uint64(end))
	return append(dst, fences...)
}

// parseDirectory checks that the blocks of raw, which parseFooter has sized,
// fill the file up to the directory without a gap.
func parseDirectory(raw []byte, file *openFile, f *footer) (*directory, error) {
	d := &directory{
		file: file, foot: f, raw: raw, blocks: f.first(kinds), small: int(f.blocks[kindSmall]),
		leaves:  make([]atomic.Pointer[leaf], f.blocks[kindLeaf]),
		rollups: make([]atomic.Pointer[rollupBlock], f.blocks[kindSmall]+f.blocks[kindLarge]),
	}
	if d.offset(0) != 0 || d.offset(d.blocks) != f.dirOff {
		return nil, fmt.Errorf("blocks lie from offset %d to %d, want 0 to %d", d.offset(0),
			d.offset(d.blocks), f.dirOff)
	}
	for i := range d.blocks {
		// A length within its bounds cannot come from an overflow: the sum of
		// all lengths is the size of the file.
		if n := d.offset(i+1) - d.offset(i); n <= crcSize || n > maxBlock {
			return nil, fmt.Errorf("block %d of %d has %d bytes, the limits are %d and %d", i, d.blocks, n,
				crcSize+1, maxBlock)
		}
	}
	return d, nil
}

// offset is where block i starts; offset(blocks) is where the last one ends.
func (d *directory) offset(i int) int64 {
	return int64(binary.LittleEndian.Uint64(d.raw[i*offsetSize:]))
}

// fence is the key of the first entry of leaf i; those of the blocks of rollups
// follow, and behind them stands the last key of the segment.
func (d *directory) fence(i int) []byte {
	return d.raw[(d.blocks+1)*offsetSize+i*fenceSize:][:fenceSize]
}

// search returns the first leaf that may hold key or something above it: the
// last one whose fence is not above key.
func (d *directory) search(key []byte) int { return max(0, d.searchFences(0, len(d.leaves), key)) }

// searchFences returns the last fence of [first, past) that is not above key,
// or first-1.
func (d *directory) searchFences(first, past int, key []byte) int {
	for first < past {
		mid := int(uint(first+past) >> 1)
		if bytes.Compare(d.fence(mid), key) <= 0 {
			first = mid + 1
		} else {
			past = mid
		}
	}
	return first - 1
}

// holds reports whether the series lies between the first and the last of the
// segment.
func (d *directory) holds(bucket uint64, h *Hash) bool {
	if len(d.leaves) == 0 {
		return false
	}
	var buf [fenceSize]byte
	key := appendFence(buf[:0], bucket, h, 0)[:fenceSize-8]
	last := d.fence(len(d.leaves) + len(d.rollups))
	return bytes.Compare(key, d.fence(0)[:len(key)]) >= 0 && bytes.Compare(key, last[:len(key)]) <= 0
}

func (d *directory) bytes() int64 { return int64(len(d.raw)) + d.loaded.Load() }

// check verifies block i, of kind k, which is src with its CRC, and returns its
// payload.
func (d *directory) check(i int, k kind, src []byte) ([]byte, error) {
	payload := src[:len(src)-crcSize]
	want, got := binary.LittleEndian.Uint32(src[len(payload):]), blockCRC(payload, d.offset(i))
	if want != got {
		return nil, &DamageError{File: d.file.path, Offset: d.offset(i), Length: int64(len(src)),
			Want: want, Got: got, Part: k.String()}
	}
	return payload, nil
}

// malformed is the error for block i, whose CRC is right and content is not.
func (d *directory) malformed(i int, k kind, detail string) *DamageError {
	return d.file.damage(d.offset(i), int(d.offset(i+1)-d.offset(i)), k.String(), detail)
}

// size is the length of block i in the file.
func (d *directory) size(i int) int64 { return d.offset(i+1) - d.offset(i) }

// readBlock reads and verifies block i with the memory of s, and returns its content, which
// is valid until s is used again.
func (d *directory) readBlock(s *scratch, i int, k kind) ([]byte, error) {
	n := int(d.size(i))
	if cap(s.stored) < n {
		s.stored = make([]byte, n)
	}
	s.stored = s.stored[:n]
	if err := d.file.readAt(s.stored, d.offset(i), k.String()); err != nil {
		return nil, err
	}
	payload, err := d.check(i, k, s.stored)
	if err != nil {
		return nil, err
	}
	payload, s.content, err = zstd.Content(s.content, payload, maxBlock)
	if err != nil {
		return nil, d.malformed(i, k, err.Error())
	}
	return payload, nil
}

// leaf returns leaf i, from memory or from the file. It stays in memory unless
// the caller lends memory for it.
func (d *directory) leaf(i int, lent *scratch) (leaf, error) {
	if l := d.leaves[i].Load(); l != nil {
		return *l, nil
	}
	s := lent
	if s == nil {
		s = scratches.Get().(*scratch)
		defer scratches.Put(s)
	}
	block := d.foot.first(kindLeaf) + i
	packed, err := d.readBlock(s, block, kindLeaf)
	if err != nil {
		return nil, err
	}
	var room []byte // none for one that stays: it gets what it needs
	if lent != nil {
		room = lent.block[:0]
	}
	l, err := unpackLeaf(room, packed)
	if err != nil {
		return nil, d.malformed(block, kindLeaf, err.Error())
	}
	if lent != nil {
		lent.block = l
		return l, nil
	}
	if d.leaves[i].CompareAndSwap(nil, &l) {
		d.loaded.Add(int64(cap(l)))
	}
	return l, nil
}

// scratch is memory for reading a block: as it lies in the file, decompressed, and in the form
// in which it is looked at.
type scratch struct{ stored, content, block []byte }

// scratches is shared by all readers, like walks.
var scratches = sync.Pool{New: func() any { return new(scratch) }}
