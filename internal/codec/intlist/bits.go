package intlist

import (
	"encoding/binary"
	"math/bits"

	"dalmatiner/internal/codec/fields"
)

// BitWriter appends bit fields to dst, the lowest bit of each first.
type BitWriter struct {
	Dst []byte
	acc uint64
	n   uint
}

// Put appends the low width bits of v; the others are zero. width is at most 64.
func (b *BitWriter) Put(v uint64, width uint) {
	b.acc |= v << b.n
	b.n += width
	if b.n >= 64 {
		b.Dst = binary.LittleEndian.AppendUint64(b.Dst, b.acc)
		b.n -= 64
		b.acc = v >> (width - b.n)
	}
}

// Finish appends the bits that do not fill a byte and returns dst.
func (b *BitWriter) Finish() []byte {
	for n := int(b.n); n > 0; n -= 8 {
		b.Dst = append(b.Dst, byte(b.acc))
		b.acc >>= 8
	}
	return b.Dst
}

// BitReader reads bit fields from src. Beyond the end it reads zeros; the
// caller compares pos with the length.
type BitReader struct {
	Src []byte
	pos int
}

// Get reads width bits, at most 64.
func (r *BitReader) Get(width uint) uint64 {
	v := bitsAt(r.Src, r.pos, width)
	r.pos += int(width)
	return v
}

// HasOverrun reports whether more bits were read than src holds.
func (r *BitReader) HasOverrun() bool { return r.pos > 8*len(r.Src) }

// Rest returns the bytes behind those that were read from.
func (r *BitReader) Rest() []byte { return r.Src[(r.pos+7)/8:] }

// bitsAt returns the width bits of src that start at bit pos, zeros beyond its
// end.
func bitsAt(src []byte, pos int, width uint) uint64 {
	at, shift := pos>>3, uint(pos&7)
	v := loadWord(src, at) >> shift
	if shift+width > 64 && at+8 < len(src) {
		v |= uint64(src[at+8]) << (64 - shift)
	}
	if width < 64 {
		v &= 1<<width - 1
	}
	return v
}

// fieldsAt fills dst with the fields of width bits of src, at most 64 each, that
// follow each other from bit pos on, zeros beyond its end.
func fieldsAt(dst []uint64, src []byte, pos int, width uint) {
	last := len(src) - 8
	if last < 0 {
		for i := range dst {
			dst[i] = bitsAt(src, pos, width)
			pos += int(width)
		}
		return
	}
	keep := uint64(1)<<width - 1 // of 64: all
	if width <= 57 {             // one load each, up to the last ones
		for ; len(dst) > 0 && pos>>3 <= last; dst = dst[1:] {
			dst[0] = binary.LittleEndian.Uint64(src[pos>>3:]) >> (pos & 7) & keep
			pos += int(width)
		}
	}
	for i := range dst {
		at := min(pos>>3, last)
		shift := uint(pos - 8*at)
		v := binary.LittleEndian.Uint64(src[at:]) >> shift
		if shift+width > 64 && at < last {
			v |= uint64(src[at+8]) << (64 - shift)
		}
		dst[i] = v & keep
		pos += int(width)
	}
}

// loadWord reads up to 8 bytes at src[at:], missing ones as zero.
func loadWord(src []byte, at int) uint64 {
	if at >= 0 && at+8 <= len(src) {
		return binary.LittleEndian.Uint64(src[at:])
	}
	return loadEnd(src, at)
}

// loadEnd is loadWord where not all bytes are there.
func loadEnd(src []byte, at int) uint64 {
	if missing := at + 8 - len(src); at >= 0 && len(src) >= 8 {
		return binary.LittleEndian.Uint64(src[len(src)-8:]) >> min(8*uint(missing), 64)
	}
	var v uint64
	for i := 0; i < 8 && at+i < len(src); i++ {
		v |= uint64(src[at+i]) << (8 * i)
	}
	return v
}

func bytesFor(bits int) int { return (bits + 7) / 8 }

// Zigzag maps small integers of either sign to small unsigned ones, Unzigzag back.
func Zigzag(v int64) uint64 { return uint64(v)<<1 ^ uint64(v>>63) }

// Unzigzag is the inverse of Zigzag.
func Unzigzag(u uint64) int64 { return int64(u>>1) ^ -int64(u&1) }

// uvarintLen is the number of bytes of u as a varint.
func uvarintLen(u uint64) int { return (bits.Len64(u|1) + 6) / 7 }

// Reader reads the byte-oriented fields, and lists and sets.
type Reader struct{ fields.Reader }

// NewReader returns a reader of src.
func NewReader(src []byte) Reader { return Reader{fields.Reader{Src: src}} }
