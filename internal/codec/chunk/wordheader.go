package chunk

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"

	"dalmatiner/internal/codec/intlist"
	"dalmatiner/internal/codec/point"
)

// appendWords appends the aggregates of classBits and classSplit, which stand
// there as words.
func (f *frame) appendWords(dst []byte) []byte {
	flags := f.wordFlags()
	if f.constant {
		flags |= flagConstant
	}
	if f.hasInts() {
		flags |= flagInts
	}
	dst = f.appendEnds(append(dst, flags), flags)
	return appendSum(dst, f.Sum, flags)
}

// wordFlags are the flags that headers and rollups have in common.
func (f *frame) wordFlags() byte {
	flags := f.sourceOf(f.Min)<<flagMin | f.sourceOf(f.Max)<<flagMax
	if f.Last == f.First {
		flags |= flagSame
	}
	if f.Rises {
		flags |= flagRises
	}
	return flags
}

// hasInts reports whether the sum has an integer part.
func (f *frame) hasInts() bool { return f.Sum.Hi != 0 || f.Sum.Lo != 0 }

// appendEnds appends the first, last, least and greatest word, as far as one of
// them is not another.
func (f *frame) appendEnds(dst []byte, flags byte) []byte {
	dst = appendWord(dst, f.First)
	if flags&flagSame == 0 {
		dst = appendWord(dst, f.Last)
	}
	if flags>>flagMin&3 == fromStored {
		dst = appendWord(dst, f.Min)
	}
	if flags>>flagMax&3 == fromStored {
		dst = appendWord(dst, f.Max)
	}
	return dst
}

func (f *frame) parseEnds(r *reader, flags byte) {
	f.First = r.word()
	f.Last = f.First
	if flags&flagSame == 0 {
		f.Last = r.word()
	}
	f.Min = f.findWord(r, flags>>flagMin&3)
	f.Max = f.findWord(r, flags>>flagMax&3)
}

// sourceOf tells where a reader finds the word w.
func (f *frame) sourceOf(w uint64) byte {
	switch w {
	case point.Unset:
		return fromUnset
	case f.First:
		return fromFirst
	case f.Last:
		return fromLast
	}
	return fromStored
}

// appendSum appends the integer part in 9 bytes, enough for 720 values of 56
// bits, if the flags say that there is one, and the float part.
func appendSum(dst []byte, s Sum, flags byte) []byte {
	if flags&flagInts != 0 {
		dst = append(binary.LittleEndian.AppendUint64(dst, s.Lo), byte(s.Hi))
	}
	return binary.LittleEndian.AppendUint64(dst, math.Float64bits(s.Float))
}

func (r *reader) sum(flags byte) Sum {
	var s Sum
	if flags&flagInts != 0 {
		if b := r.Take(9); b != nil {
			s.Lo = binary.LittleEndian.Uint64(b)
			s.Hi = int64(int8(b[8]))
		}
	}
	s.Float = r.float()
	return s
}

// appendWord appends one word: an integer as a varint with a low bit of 0; a
// float as a byte that tells how many zero bytes at its end are left out, with
// a low bit of 1, and the others from the highest on.
func appendWord(dst []byte, w uint64) []byte {
	if point.KindOf(w) != point.KindFloat {
		return binary.AppendUvarint(dst, intlist.Zigzag(point.Int(w))<<1)
	}
	zeros := bits.TrailingZeros64(w) / 8
	dst = append(dst, byte(zeros<<1|1))
	for i := 7; i >= zeros; i-- {
		dst = append(dst, byte(w>>(8*i)))
	}
	return dst
}

func (r *reader) word() uint64 {
	if len(r.Src) == 0 || r.Src[0]&1 == 0 {
		return intTag | uint64(intlist.Unzigzag(r.Uvarint()>>1))&intPayload
	}
	zeros := int(r.U8() >> 1)
	var w uint64
	for _, b := range r.Take(8 - zeros) {
		w = w<<8 | uint64(b)
	}
	if w <<= 8 * zeros; r.Bad || point.KindOf(w) != point.KindFloat {
		r.Bad = true
		return firstFloat
	}
	return w
}

func (f *frame) parseWords(r *reader) error {
	flags := r.U8()
	f.constant = flags&flagConstant != 0
	f.parseEnds(r, flags)
	f.Sum = r.sum(flags)
	f.Rises = flags&flagRises != 0
	if r.Bad || f.constant && flags&flagSame == 0 {
		return fmt.Errorf("%w: header with flags %#02x is cut off or contradicts itself", ErrCorrupt,
			flags)
	}
	return nil
}

func (f *frame) findWord(r *reader, whence byte) uint64 {
	switch whence {
	case fromUnset:
		return point.Unset
	case fromFirst:
		return f.First
	case fromLast:
		return f.Last
	}
	return r.word()
}
