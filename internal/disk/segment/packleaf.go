package segment

import (
	"encoding/binary"
	"errors"
	"math"
	"math/bits"
	"slices"

	"dalmatiner/internal/codec/fields"
	"dalmatiner/internal/codec/intlist"
)

// errPacked is the error of a stored leaf that is none.
var errPacked = errors.New("a stored leaf is cut short, too long, or no leaf")

// How the place of an entry follows from those before it in its leaf. The end is where the
// entry ends that lies furthest back in the file, at first the start of the file.
const (
	placeOn    = iota // at the end
	placeNext         // at the start of the data block behind that of the end
	placeSame         // where the entry before it is
	placeApart        // elsewhere

	placeBits = 2
	placeMask = 1<<placeBits - 1
)

// places says where entries lie, one after the other.
type places struct{ end, last entry }

// kind returns how the place of the next entry follows.
func (p *places) kind(e entry) uint64 {
	switch {
	case e.block == p.end.block && e.off == p.end.off:
		return placeOn
	case e.block == p.last.block && e.off == p.last.off:
		return placeSame
	case e.block == p.end.block+1 && e.off == 0:
		return placeNext
	}
	return placeApart
}

// note takes the next entry.
func (p *places) note(e entry) {
	p.last = e
	past := e.off + e.length
	if e.block > p.end.block || e.block == p.end.block && past > p.end.off {
		p.end = entry{block: e.block, off: past}
	}
}

// appendPacked appends l as it is stored, and returns how many of the bytes in front do not
// compress. The chunk numbers of a row ascend.
func (l leaf) appendPacked(dst []byte) (packed []byte, plain int) {
	start := len(dst)
	dst = binary.LittleEndian.AppendUint64(dst, l.bucket())
	dst = binary.LittleEndian.AppendUint64(dst, uint64(l.lowest()))
	dst = binary.AppendUvarint(dst, uint64(l.rows()))
	dst = binary.AppendUvarint(dst, uint64(l.entries()))
	for i := range l.rows() {
		dst = append(dst, l.rowHash(i)...)
	}
	plain = len(dst) - start
	for i := range l.rows() {
		dst = binary.AppendUvarint(dst, uint64(l.rowPast(i)-l.rowFirst(i)))
	}
	for i := range l.rows() {
		dst = l.appendNumbers(dst, l.rowFirst(i), l.rowPast(i))
	}
	for i := range l.rows() {
		dst = l.appendLengths(dst, l.rowFirst(i), l.rowPast(i))
	}
	return l.appendPlaces(dst), plain
}

// appendNumbers appends the chunk numbers of a row as runs: how many numbers are left out, and
// how many follow.
func (l leaf) appendNumbers(dst []byte, i, past int) []byte {
	next := l.lowest()
	for i < past {
		first, run := l.entry(i).chunk, 1
		for i+run < past && l.entry(i+run).chunk == first+int64(run) {
			run++
		}
		dst = binary.AppendUvarint(dst, uint64(first)-uint64(next))
		dst = binary.AppendUvarint(dst, uint64(run))
		next, i = first+int64(run), i+run
	}
	return dst
}

// appendLengths appends the lengths of a row: the least and a width, and in so many bits each
// what they are longer. The chunks of a series are about as long as each other.
func (l leaf) appendLengths(dst []byte, i, past int) []byte {
	least, most := l.entry(i).length, uint16(0)
	for n := i; n < past; n++ {
		least, most = min(least, l.entry(n).length), max(most, l.entry(n).length)
	}
	width := uint(bits.Len16(most - least))
	w := intlist.BitWriter{Dst: binary.AppendUvarint(dst, uint64(least)<<widthBits|uint64(width))}
	for ; i < past; i++ {
		w.Put(uint64(l.entry(i).length-least), width)
	}
	return w.Finish()
}

// widthBits hold the width of a length.
const widthBits = 5

// appendPlaces appends the places of the entries as runs of one kind.
func (l leaf) appendPlaces(dst []byte) []byte {
	var p places
	for i := 0; i < l.entries(); {
		before, kind, run := p, p.kind(l.entry(i)), 0
		for i+run < l.entries() && p.kind(l.entry(i+run)) == kind {
			p.note(l.entry(i + run))
			run++
		}
		dst = binary.AppendUvarint(dst, uint64(run)<<placeBits|kind)
		for n := 0; kind == placeApart && n < run; n++ {
			e := l.entry(i + n)
			dst = binary.AppendVarint(dst, int64(e.block)-int64(before.end.block))
			dst = binary.AppendUvarint(dst, uint64(e.off))
			before.note(e)
		}
		i += run
	}
	return dst
}

// unpacker reads a stored leaf from its start.
type unpacker struct{ fields.Reader }

// sumWithin returns base and a varint, where that lies within [0, limit].
func (u *unpacker) sumWithin(base, limit int64) int64 {
	v := u.Varint()
	u.Check(v >= -base && v <= limit-base)
	return base + v
}

// unpackLeaf appends the leaf that appendPacked stored as src to dst: at most leafBody bytes,
// of a shape in which every look-up stays inside. The order of the rows is checked by Verify,
// and whether there is data where the entries point to.
func unpackLeaf(dst, src []byte) (leaf, error) {
	const fixed = 8 + 8
	if len(src) < fixed {
		return nil, errPacked
	}
	bucket, lowest := src[:8], src[8:fixed]
	u := unpacker{fields.Reader{Src: src[fixed:]}}
	rows, entries := int(u.UpTo(leafBody/rowSize)), int(u.UpTo(leafBody/entrySize))
	size := leafHead + rows*rowSize + entries*entrySize
	if u.Bad || rows == 0 || entries < rows || size > leafBody || len(u.Src) < rows*len(Hash{}) {
		return nil, errPacked
	}
	hashes := u.Src
	u.Src = u.Src[rows*len(Hash{}):]
	le, start := binary.LittleEndian, len(dst)
	dst = slices.Grow(dst, size)
	dst = append(dst, bucket...)
	dst = le.AppendUint16(dst, uint16(rows))
	dst = le.AppendUint16(dst, uint16(entries))
	dst = append(dst, lowest...)
	first := 0
	for range rows {
		dst = append(dst, hashes[:len(Hash{})]...)
		dst = le.AppendUint16(dst, uint16(first))
		hashes = hashes[len(Hash{}):]
		count := int(u.UpTo(uint64(entries - first)))
		u.Bad = u.Bad || count == 0
		first += count
	}
	if u.Bad || first != entries {
		return nil, errPacked
	}
	at := len(dst)
	dst = append(dst, make([]byte, entries*entrySize)...)
	l := leaf(dst[start:])
	for i := range rows {
		u.numbers(dst[at+l.rowFirst(i)*entrySize : at+l.rowPast(i)*entrySize])
	}
	for i := range rows {
		u.lengths(dst[at+l.rowFirst(i)*entrySize : at+l.rowPast(i)*entrySize])
	}
	u.places(dst[at:])
	if u.Bad || len(u.Src) > 0 {
		return nil, errPacked
	}
	return dst, nil
}

// numbers reads the chunk numbers of a row, without the lowest of the leaf, into its entries.
func (u *unpacker) numbers(entries []byte) {
	next := uint64(0)
	for len(entries) > 0 && !u.Bad {
		next += u.UpTo(math.MaxUint32)
		run := u.UpTo(uint64(len(entries) / entrySize))
		if run == 0 || next+run-1 > math.MaxUint32 {
			u.Bad = true
			return
		}
		for range run {
			binary.LittleEndian.PutUint32(entries, uint32(next))
			entries = entries[entrySize:]
			next++
		}
	}
}

// lengths reads the lengths of a row into its entries.
func (u *unpacker) lengths(entries []byte) {
	head := u.UpTo(math.MaxUint16<<widthBits | (1<<widthBits - 1))
	least, width := uint16(head>>widthBits), uint(head%(1<<widthBits))
	size := (len(entries)/entrySize*int(width) + 7) / 8
	if width > 16 || size > len(u.Src) {
		u.Bad = true
		return
	}
	r := intlist.BitReader{Src: u.Src[:size]}
	for ; len(entries) > 0; entries = entries[entrySize:] {
		length := least + uint16(r.Get(width))
		u.Bad = u.Bad || length < least
		binary.LittleEndian.PutUint16(entries[10:], length)
	}
	u.Src = u.Src[size:]
}

// places reads the places of all entries, whose lengths are there.
func (u *unpacker) places(entries []byte) {
	le := binary.LittleEndian
	var p places
	for len(entries) > 0 && !u.Bad {
		run := u.UpTo(uint64(len(entries)/entrySize)<<placeBits | placeMask)
		kind := run & placeMask
		if run >>= placeBits; run == 0 {
			u.Bad = true
		}
		if kind == placeOn {
			n := p.placeEntries(entries[:run*entrySize])
			run -= uint64(n)
			entries = entries[n*entrySize:]
		}
		for ; run > 0 && !u.Bad; run-- {
			e := p.end
			switch kind {
			case placeNext:
				e = entry{block: p.end.block + 1}
			case placeSame:
				e = p.last
			case placeApart:
				e.block = uint32(u.sumWithin(int64(p.end.block), math.MaxUint32))
				e.off = uint16(u.UpTo(math.MaxUint16))
			}
			e.length = le.Uint16(entries[10:])
			le.PutUint32(entries[4:], e.block)
			le.PutUint16(entries[8:], e.off)
			p.note(e)
			entries = entries[entrySize:]
		}
	}
}

// placeEntries places entries each at the end, as nearly all are, and returns how many: one that
// would end beyond what a block can hold is not its.
func (p *places) placeEntries(entries []byte) (n int) {
	le, block, off := binary.LittleEndian, p.end.block, uint32(p.end.off)
	for ; len(entries) > 0; entries = entries[entrySize:] {
		length := le.Uint16(entries[10:])
		if off+uint32(length) > math.MaxUint16 {
			break
		}
		le.PutUint32(entries[4:], block)
		le.PutUint16(entries[8:], uint16(off))
		p.last = entry{block: block, off: uint16(off), length: length}
		off += uint32(length)
		n++
	}
	p.end.off = uint16(off)
	return n
}
