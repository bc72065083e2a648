package chunk

import (
	"math"
	"math/bits"

	"dalmatiner/internal/intlist"
	"dalmatiner/internal/kernel"
	"dalmatiner/internal/point"
)

// transform tells how the words of a list follow from its integers. Its value
// is the byte in the file.
type transform byte

const (
	// asInt: the integer is the value of an integer word.
	asInt transform = 0
	// asDecimal + e, e of 0 to maxExponent: the float integer / 10^e.
	asDecimal transform = 1
	// asBits + z, z of 0 to 63: the bits of a double without z zeros at the end.
	asBits transform = 16
	// asEven + e: the float integer / 10^e without its lowest bit, as clients of the original
	// send it.
	asEven transform = 80
)

const maxExponent = 9

func (t transform) defined() bool { return t == asInt || t.bits() || t.decimal() }

// bits and decimal report which of the floats t makes.
func (t transform) bits() bool { return t >= asBits && t < asEven }

func (t transform) decimal() bool {
	return t-asDecimal <= maxExponent || t-asEven <= maxExponent
}

const (
	intTag     = uint64(0x01) << 56
	intPayload = uint64(1)<<56 - 1
	firstFloat = uint64(0x04) << 56
)

// words converts the integers of a list, as int64 bits, to words.
func (t transform) words(dst, values []uint64) {
	switch {
	case t == asInt:
		kernel.Ints(dst, values)
	case t.decimal():
		kernel.Decimals(dst, values, t.quotient())
	default:
		kernel.Bits(dst, values, uint(t-asBits))
	}
}

// word converts one integer.
func (t transform) word(v int64) uint64 {
	switch {
	case t == asInt:
		return intTag | uint64(v)&intPayload
	case t.decimal():
		return t.quotient().Word(v)
	}
	return point.FromFloat(math.Float64frombits(uint64(v) << ((t - asBits) & 63)))
}

// value is the inverse of word for integers and decimals; ok is false when w
// is another kind of word.
func (t transform) value(w uint64) (k int64, ok bool) {
	if t == asInt {
		return point.Int(w), point.KindOf(w) == point.KindInt
	}
	return t.quotient().Int(w)
}

// quotient tells what decimals of kind t stand for.
func (t transform) quotient() kernel.Quotient {
	if t >= asEven {
		return kernel.Quotient{Scale: powers[t-asEven], Keep: kernel.Even}
	}
	return kernel.Quotient{Scale: powers[t-asDecimal], Keep: kernel.Whole}
}

var powers = [maxExponent + 1]float64{1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9}

// toDecimals finds the exponent with which the float words become integers and
// fills in those. Words that have none are marked in odd and counted; when
// they are too many the count stops short.
func toDecimals(ks []int64, words []uint64, odd *intlist.Mask) (t transform, odds int) {
	*odd = intlist.Mask{}
	t = asDecimal
	if allEven(words) {
		t = asEven
	}
	most, q := t+maxExponent, t.quotient()
	redo := 0 // values below this one were scaled by a smaller exponent
	for i := 0; ; i++ {
		if i += kernel.Scaled(ks[i:], words[i:], q); i == len(words) {
			break
		}
		ok := false
		for next := t; !ok && next < most; {
			next++
			if ks[i], ok = next.quotient().Int(words[i]); ok {
				t, q, redo = next, next.quotient(), i
			}
		}
		if !ok {
			odd.Set(i)
			if odds++; odds > 8 && odds > i/2 {
				return 0, len(words)
			}
		}
	}
	for i, w := range words[:redo] {
		if odd.Has(i) {
			continue
		}
		var ok bool
		if ks[i], ok = q.Int(w); !ok {
			odd.Set(i) // too large for the larger exponent
			odds++
		}
	}
	return t, odds
}

// allEven reports whether the lowest bit of no float is 1. Half of the doubles next to
// decimals have it, so that those of a sender that drops it show.
func allEven(words []uint64) bool {
	const marker = 1 << 63
	all := ^uint64(0)
	for _, w := range words {
		all &= w
	}
	return all&marker != 0
}

// toBits turns float words into the bits of their doubles, without the zeros that all of
// them end with.
func toBits(ks []int64, words []uint64) transform {
	var all uint64
	for i, w := range words {
		double := math.Float64bits(point.Double(w))
		ks[i] = int64(double)
		all |= double
	}
	shift := bits.TrailingZeros64(all) & 63 // of zeros only: none
	for i, k := range ks[:len(words)] {
		ks[i] = int64(uint64(k) >> shift)
	}
	return asBits + transform(shift)
}
