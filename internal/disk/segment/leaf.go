package segment

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"dalmatiner/internal/codec/zstd"
)

const (
	leafHead  = 8 + 2 + 2 + 8      // bucket, rows, entries, lowest chunk number
	rowSize   = 16 + 2             // hash, first entry
	entrySize = 4 + 4 + 2 + 2      // chunk − lowest, block, offset in the block, length
	leafBody  = leafSize - crcSize // payload of a full leaf

	// leafGain is the least part of a leaf that compressing has to save: a look-up in one that
	// is not in memory takes twice as long.
	leafGain = 8
)

// leafBuilder gathers the rows and entries of one leaf.
type leafBuilder struct {
	bucket  uint64
	rows    []byte
	entries []entry
	last    Hash // of the last row
	lo, hi  int64

	leaf, packed []byte // scratch memory
}

// fits reports whether one more entry may join the leaf. The chunk numbers of a
// leaf lie within 32 bits of each other.
func (b *leafBuilder) fits(bucket uint64, h *Hash, chunk int64) bool {
	if len(b.entries) == 0 {
		return true
	}
	size := leafHead + len(b.rows) + (len(b.entries)+1)*entrySize
	if b.last != *h {
		size += rowSize
	}
	return bucket == b.bucket && size <= leafBody &&
		uint64(max(b.hi, chunk))-uint64(min(b.lo, chunk)) <= math.MaxUint32
}

func (b *leafBuilder) add(bucket uint64, h *Hash, e entry) {
	if len(b.entries) == 0 {
		b.bucket, b.lo, b.hi = bucket, e.chunk, e.chunk
	}
	if len(b.entries) == 0 || b.last != *h {
		b.rows = append(b.rows, h[:]...)
		b.rows = binary.LittleEndian.AppendUint16(b.rows, uint16(len(b.entries)))
		b.last = *h
	}
	b.lo, b.hi = min(b.lo, e.chunk), max(b.hi, e.chunk)
	b.entries = append(b.entries, e)
}

// appendTo appends the leaf to dst and empties the builder.
func (b *leafBuilder) appendTo(dst []byte) []byte {
	le := binary.LittleEndian
	dst = le.AppendUint64(dst, b.bucket)
	dst = le.AppendUint16(dst, uint16(len(b.rows)/rowSize))
	dst = le.AppendUint16(dst, uint16(len(b.entries)))
	dst = le.AppendUint64(dst, uint64(b.lo))
	dst = append(dst, b.rows...)
	for _, e := range b.entries {
		dst = le.AppendUint32(dst, uint32(e.chunk-b.lo))
		dst = le.AppendUint32(dst, e.block)
		dst = le.AppendUint16(dst, e.off)
		dst = le.AppendUint16(dst, e.length)
	}
	b.rows, b.entries = b.rows[:0], b.entries[:0]
	return dst
}

// writeLeaves sorts what was added and writes the leaves; it returns their
// fences and notes the last key.
func (w *Writer) writeLeaves() (fences []byte, err error) {
	w.sortRuns()
	var b leafBuilder
	var again []entry
	for i := 0; i < len(w.runs); {
		r := &w.runs[i]
		end := i + 1
		for end < len(w.runs) && w.runs[end].isSameSeries(r) {
			end++
		}
		entries := w.entries[r.first:r.past]
		if end-i > 1 {
			if again, err = w.mergeRuns(again[:0], w.runs[i:end]); err != nil {
				return nil, err
			}
			entries = again
		}
		if !w.timestamps.Is(r.bucket, r.hash) {
			w.foot.info.Series++
		}
		for _, e := range entries {
			if !b.fits(r.bucket, &r.hash, e.chunk) {
				if err := w.writeLeaf(&b); err != nil {
					return nil, err
				}
			}
			if len(b.entries) == 0 {
				fences = appendFence(fences, r.bucket, &r.hash, e.chunk)
			}
			b.add(r.bucket, &r.hash, e)
		}
		i = end
	}
	if len(b.entries) == 0 {
		return fences, nil
	}
	w.lastKey = appendFence(nil, b.bucket, &b.last, b.entries[len(b.entries)-1].chunk)
	return fences, w.writeLeaf(&b)
}

// writeLeaf writes the leaf in the builder and empties it.
func (w *Writer) writeLeaf(b *leafBuilder) error {
	b.leaf = b.appendTo(b.leaf[:0])
	packed, plain := leaf(b.leaf).appendPacked(b.packed[:0])
	b.packed = packed
	start := len(w.buf)
	w.buf = zstd.AppendBlock(w.buf, packed, plain, w.encoder())
	if len(w.buf)-start > len(packed)-len(packed)/leafGain {
		w.buf = zstd.AppendBlock(w.buf[:start], packed, plain, nil)
	}
	return w.endBlock(kindLeaf)
}

// isSameSeries reports whether r is of the same series as other.
func (r *run) isSameSeries(other *run) bool {
	return r.bucket == other.bucket && r.hash == other.hash
}

// runKey is what decides the order of almost all runs, small so that sorting
// moves few bytes.
type runKey struct {
	top    uint64 // of the hash
	bucket uint64
	run    uint32
}

// sortRuns puts the runs in order by bucket, hash and first chunk.
func (w *Writer) sortRuns() {
	if w.sorted {
		return
	}
	keys := make([]runKey, len(w.runs))
	for i := range w.runs {
		r := &w.runs[i]
		keys[i] = runKey{binary.BigEndian.Uint64(r.hash[:]), r.bucket, uint32(i)}
	}
	compare := func(a, b runKey) int {
		switch {
		case a.bucket != b.bucket:
			return cmp(a.bucket < b.bucket)
		case a.top != b.top:
			return cmp(a.top < b.top)
		}
		x, y := &w.runs[a.run], &w.runs[b.run]
		if c := bytes.Compare(x.hash[8:], y.hash[8:]); c != 0 {
			return c
		}
		return cmp(w.entries[x.first].chunk < w.entries[y.first].chunk)
	}
	slices.SortFunc(keys, compare)
	runs := make([]run, len(keys))
	for i, k := range keys {
		runs[i] = w.runs[k.run]
	}
	w.runs, w.sorted = runs, true
}

func cmp(less bool) int {
	if less {
		return -1
	}
	return 1
}

// mergeRuns appends the entries of all runs of one series in chunk order.
func (w *Writer) mergeRuns(dst []entry, runs []run) ([]entry, error) {
	for i := range runs {
		dst = append(dst, w.entries[runs[i].first:runs[i].past]...)
	}
	slices.SortFunc(dst, func(a, b entry) int { return cmp(a.chunk < b.chunk) })
	for i := 1; i < len(dst); i++ {
		if dst[i].chunk == dst[i-1].chunk {
			return nil, fmt.Errorf("segment: chunk %d of series %s in bucket %d was added twice",
				dst[i].chunk, runs[0].hash, runs[0].bucket)
		}
	}
	return dst, nil
}

// leaf is a checked index leaf as it is looked at. In the file it is packed (appendPacked).
type leaf []byte

func (l leaf) bucket() uint64 { return binary.LittleEndian.Uint64(l) }
func (l leaf) rows() int      { return int(binary.LittleEndian.Uint16(l[8:])) }
func (l leaf) entries() int   { return int(binary.LittleEndian.Uint16(l[10:])) }
func (l leaf) lowest() int64  { return int64(binary.LittleEndian.Uint64(l[12:])) }

func (l leaf) rowHash(i int) []byte { return l[leafHead+i*rowSize:][:16] }
func (l leaf) rowFirst(i int) int {
	return int(binary.LittleEndian.Uint16(l[leafHead+i*rowSize+16:]))
}

// rowPast is the number of the entry behind the last of row i.
func (l leaf) rowPast(i int) int {
	if i+1 == l.rows() {
		return l.entries()
	}
	return l.rowFirst(i + 1)
}

// entry returns entry i.
func (l leaf) entry(i int) entry {
	b := l[leafHead+l.rows()*rowSize+i*entrySize:][:entrySize]
	le := binary.LittleEndian
	return entry{chunk: l.lowest() + int64(le.Uint32(b)), block: le.Uint32(b[4:]),
		off: le.Uint16(b[8:]), length: le.Uint16(b[10:])}
}

// find returns the first row whose hash is not below h.
func (l leaf) find(h *Hash) int {
	lo, hi := 0, l.rows()
	top := binary.BigEndian.Uint64(h[:])
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		row := l.rowHash(mid)
		v := binary.BigEndian.Uint64(row)
		if v < top || v == top && bytes.Compare(row[8:], h[8:]) < 0 {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo
}

// row returns the row of a series, if the leaf has one.
func (l leaf) row(bucket uint64, h *Hash) (row int, ok bool) {
	if l.bucket() != bucket {
		return 0, false
	}
	row = l.find(h)
	return row, row < l.rows() && bytes.Equal(l.rowHash(row), h[:])
}

// seek returns the first entry of [a, b), all of one row, whose chunk number is
// not below chunk. Numbers ascend, so it lies no further behind the first entry
// than its number does, and just there where the series has every chunk.
func (l leaf) seek(a, b int, chunk int64) int {
	if a >= b {
		return a
	}
	first := l.entry(a).chunk
	if first >= chunk {
		return a
	}
	if away := uint64(chunk) - uint64(first); away < uint64(b-a) {
		b = a + int(away)
		if l.entry(b).chunk == chunk {
			return b
		}
	} else if l.entry(b-1).chunk < chunk {
		return b
	}
	for a++; a < b; {
		mid := int(uint(a+b) >> 1)
		if l.entry(mid).chunk < chunk {
			a = mid + 1
		} else {
			b = mid
		}
	}
	return a
}
