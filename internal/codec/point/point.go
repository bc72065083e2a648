// Package point converts between values and the 8-byte points on the wire and in files.
//
// In memory a point is a word: the 8 bytes, read as a big-endian uint64 and normalised,
// so that only four kinds are left:
//
//	0                     unset
//	1                     a stale marker
//	01 | 56-bit integer   signed, two's complement
//	04… to ff…            float: the bits of the double, rotated right by one,
//	                      with the highest bit turned over
//
// A float whose lowest bit is 0 has a word that begins with 80… to ff…: sign,
// exponent and the upper 51 of the 52 fraction bits below a marker, as the original
// wrote it. One whose lowest bit is 1 has a word that begins with 04… to 7f…. Only a
// positive one below 2^-895 would begin with less, and loses its lowest bit.
//
// Two words are the same point if and only if they are equal.
package point

import (
	"encoding/binary"
	"math"
	"math/bits"
)

// Size is the number of bytes of a point on the wire.
const Size = 8

// Unset is the word of a slot that holds no value.
const Unset uint64 = 0

// Stale is the word of a stale marker: the series has ended for now, as its sender says. It
// is not a value. It reads as unset unless a reader asks for it, and a value overwrites it.
const Stale uint64 = 1

// Unknown is no point: where words of several sources are laid over each other it
// stands for a slot of which damage took the newest one. It is never stored.
const Unknown uint64 = 3 << 56

// The range of values that fit an integer point.
const (
	MaxInt int64 = 1<<55 - 1
	MinInt int64 = -1 << 55
)

const (
	floatMarker = uint64(1) << 63
	firstFloat  = uint64(0x04) << 56
	tagInt      = uint64(0x01) << 56
	payload56   = uint64(1)<<56 - 1

	tagDecimal = 0x02
)

// Kind tells what a word holds.
type Kind uint8

// The kinds of a normalised word. That of a stale marker is KindUnset.
const (
	KindUnset Kind = iota
	KindInt
	KindFloat
)

// KindOf returns the kind of a normalised word.
func KindOf(w uint64) Kind {
	switch {
	case w >= firstFloat:
		return KindFloat
	case w <= Stale:
		return KindUnset
	default:
		return KindInt
	}
}

// FromInt returns the word of v. A value beyond 56 bits becomes a float, where
// the original silently kept the low 56 bits.
func FromInt(v int64) uint64 {
	if v > MaxInt || v < MinInt {
		return FromFloat(float64(v))
	}
	return tagInt | uint64(v)&payload56
}

// FromFloat returns the float word of v, which Double turns back bit for bit. A positive
// v below 2^-895 whose lowest bit is 1 loses this bit.
func FromFloat(v float64) uint64 {
	w := bits.RotateLeft64(math.Float64bits(v), -1) ^ floatMarker
	if w < firstFloat {
		return w | floatMarker
	}
	return w
}

// EvenWord returns the word of a value as the original's protocol has it: a float loses its
// lowest bit.
func EvenWord(w uint64) uint64 {
	if w >= firstFloat {
		return w | floatMarker
	}
	return w
}

// Int returns the value of an integer word. The result is meaningless for
// other kinds.
func Int(w uint64) int64 { return int64(w<<8) >> 8 }

// Float returns the value of a word as a double: an integer converted, an
// unset word as 0. The result is meaningless for a stale marker.
func Float(w uint64) float64 {
	if w >= firstFloat {
		return Double(w)
	}
	return float64(Int(w))
}

// Double returns the value of a float word. The result is meaningless for other kinds.
func Double(w uint64) float64 {
	return math.Float64frombits(bits.RotateLeft64(w^floatMarker, 1))
}

// Overwrite returns what a slot holds that held older when newer is written to it: newer, unless
// that is unset, or a stale marker where there is a value.
func Overwrite(newer, older uint64) uint64 {
	if newer > Stale || older == Unset {
		return newer
	}
	return older
}

// HideStale makes the stale markers among words unset.
func HideStale(words []uint64) {
	for i, w := range words {
		if w == Stale {
			words[i] = Unset
		}
	}
}

// NormalizeMarked is Normalize for a sender who may send stale markers: payload 1 of type 00
// is one.
func NormalizeMarked(raw uint64) (w uint64, ok bool) {
	if raw == Stale {
		return Stale, true
	}
	return Normalize(raw)
}

// Normalize turns the big-endian word of 8 wire bytes into a stored word. Any
// payload of type 00 is unset; a legacy decimal (type 02) becomes the integer
// or float of the same value. Type 03 is undefined: ok is false.
func Normalize(raw uint64) (w uint64, ok bool) {
	if raw >= firstFloat || raw>>56 == 1 {
		return raw, true
	}
	return normalizeOther(raw)
}

func normalizeOther(raw uint64) (w uint64, ok bool) {
	switch raw >> 56 {
	case 0:
		return Unset, true
	case tagDecimal:
		return fromDecimal(raw), true
	}
	return Unset, false
}

// fromDecimal converts coefficient × 10^exponent: an integer where it is one
// and fits, else the nearest double.
func fromDecimal(raw uint64) uint64 {
	exp := int(int8(raw >> 48))
	coef := int64(raw<<16) >> 16
	if exp >= 0 && exp <= 16 {
		v := coef
		for i := 0; i < exp; i++ {
			if v > MaxInt/10 || v < MinInt/10 {
				return FromFloat(float64(coef) * math.Pow10(exp))
			}
			v *= 10
		}
		return FromInt(v)
	}
	if exp < 0 && exp >= -22 {
		// Both operands are exact doubles, so the division rounds once.
		return FromFloat(float64(coef) / math.Pow10(-exp))
	}
	return FromFloat(float64(coef) * math.Pow10(exp))
}

// Get reads the word at the start of src, which holds at least 8 bytes. The
// result is not normalised.
func Get(src []byte) uint64 { return binary.BigEndian.Uint64(src) }

// Append appends the 8 wire bytes of w to dst.
func Append(dst []byte, w uint64) []byte { return binary.BigEndian.AppendUint64(dst, w) }
