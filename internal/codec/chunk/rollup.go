package chunk

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"

	"dalmatiner/internal/codec/floatsum"
	"dalmatiner/internal/codec/point"
)

// MaxRollup is the largest number of slots that a rollup stands for.
const MaxRollup = 120 * Slots

// Flags of a rollup beside those that a header has, too (wordFlags).
const (
	rollupInts   = 1 << 6 // the sum has an integer part
	rollupFloats = 1 << 7 // the sum has a float part
)

// Node puts the aggregates of parts of a range together, in their order: rollups are made of
// chunks in this way, and the aggregates of a range of both. The zero value is empty.
type Node struct {
	h      Header
	floats floatsum.Sum
}

// Count returns how many slots have a value so far.
func (n *Node) Count() int { return n.h.Count }

// Header returns the aggregates of what came. The float part of the sum is that of the parts,
// added up as package floatsum does it and rounded, so the same parts in the same order give
// the same bits. Without a value the Count is 0.
func (n *Node) Header() Header {
	h := n.h
	h.Sum.Float = canonical(n.floats.Value())
	return h
}

// Append takes the next part. at is the distance in slots from slot 0 of the node to slot 0 of
// next. All set slots of next lie behind those of n. A next without a value changes nothing.
func (n *Node) Append(next *Header, at int) {
	if next.Count == 0 {
		return
	}
	n.floats.Add(next.Sum.Float)
	h := &n.h
	if h.Count == 0 {
		*h = *next
		h.FirstOff += at
		h.LastOff += at
		return
	}
	h.Rises = h.Rises && next.Rises && !Less(next.First, h.Last)
	h.Sum.AddInts(next.Sum)
	if h.Min == point.Unset || next.Min != point.Unset && Less(next.Min, h.Min) {
		h.Min = next.Min
	}
	if h.Max == point.Unset || next.Max != point.Unset && Less(h.Max, next.Max) {
		h.Max = next.Max
	}
	h.Count += next.Count
	h.LastOff, h.Last = next.LastOff+at, next.Last
}

// emptyRollup is the rollup of slots without a value, as of chunks of stale markers alone: of
// one slot one is unset.
var emptyRollup = []byte{0, 0, 0, 1}

// AppendRollup appends h, the aggregates of up to MaxRollup slots, to dst. DESIGN.md has the
// form under "Rollups".
func AppendRollup(dst []byte, h *Header) []byte {
	if h.Count == 0 {
		return append(dst, emptyRollup...)
	}
	f := frame{Header: *h}
	flags := f.wordFlags()
	if f.hasInts() {
		flags |= rollupInts
	}
	if math.Float64bits(h.Sum.Float) != 0 {
		flags |= rollupFloats
	}
	dst = append(dst, flags)
	dst = binary.AppendUvarint(dst, uint64(h.FirstOff))
	dst = binary.AppendUvarint(dst, uint64(h.LastOff-h.FirstOff))
	dst = binary.AppendUvarint(dst, uint64(f.slots()-h.Count))
	dst = f.appendEnds(dst, flags)
	return appendRollupSum(dst, h.Sum, flags)
}

// appendRollupSum appends the integer part as a varint of up to 128 bits after
// zigzag, and the float part, where the flags say that there are such.
func appendRollupSum(dst []byte, s Sum, flags byte) []byte {
	if flags&rollupInts != 0 {
		sign := uint64(s.Hi >> 63)
		hi, lo := (uint64(s.Hi)<<1|s.Lo>>63)^sign, s.Lo<<1^sign
		for hi != 0 || lo >= 0x80 {
			dst = append(dst, byte(lo)|0x80)
			hi, lo = hi>>7, lo>>7|hi<<57
		}
		dst = append(dst, byte(lo))
	}
	if flags&rollupFloats != 0 {
		dst = binary.LittleEndian.AppendUint64(dst, math.Float64bits(s.Float))
	}
	return dst
}

func (r *reader) rollupSum(flags byte) Sum {
	var s Sum
	if flags&rollupInts != 0 {
		var hi, lo uint64
		for shift := uint(0); ; shift += 7 {
			b := r.U8()
			if shift > 126 || r.Bad {
				r.Bad = true
				return s
			}
			v := uint64(b & 0x7f)
			if shift < 64 {
				lo |= v << shift
				hi |= v >> (64 - shift)
			} else {
				hi |= v << (shift - 64)
			}
			if b < 0x80 {
				break
			}
		}
		sign := -(lo & 1)
		s.Lo, s.Hi = (lo>>1|hi<<63)^sign, int64(hi>>1^sign)
	}
	if flags&rollupFloats != 0 {
		s.Float = r.float()
	}
	return s
}

// ParseRollup reads what AppendRollup wrote from the start of src. rest is the part of src
// behind it. The error wraps ErrCorrupt.
func ParseRollup(src []byte) (h Header, rest []byte, err error) {
	if bytes.HasPrefix(src, emptyRollup) {
		return h, src[len(emptyRollup):], nil
	}
	r := newReader(src)
	var f frame
	flags := r.U8()
	first, length, missing := r.Uvarint(), r.Uvarint(), r.Uvarint()
	if r.Bad || first >= MaxRollup || length >= MaxRollup-first || missing > length {
		return h, nil, fmt.Errorf("%w: rollup of %d slots from %d on, %d of them unset", ErrCorrupt,
			length, first, missing)
	}
	f.FirstOff, f.LastOff = int(first), int(first+length)
	f.Count = f.slots() - int(missing)
	f.parseEnds(&r, flags)
	f.Sum = r.rollupSum(flags)
	f.Rises = flags&flagRises != 0
	if r.Bad {
		return h, nil, fmt.Errorf("%w: rollup with flags %#02x is cut off", ErrCorrupt, flags)
	}
	return f.Header, r.Src, nil
}
