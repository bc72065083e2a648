package chunk

import (
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
	// asBits + z, z of 0 to 63: the bits of a float word below the marker,
	// without z zeros at the end.
	asBits transform = 16
)

const maxExponent = 9

func (t transform) defined() bool {
	return t <= asDecimal+maxExponent || t >= asBits && t < asBits+64
}

const (
	floatMarker = uint64(1) << 63
	intTag      = uint64(0x01) << 56
	intPayload  = uint64(1)<<56 - 1
)

// words converts the integers of a list, as int64 bits, to words.
func (t transform) words(dst, values []uint64) {
	switch {
	case t == asInt:
		kernel.Ints(dst, values)
	case t < asBits:
		kernel.Decimals(dst, values, pow10(int(t-asDecimal)))
	default:
		kernel.Bits(dst, values, uint(t-asBits))
	}
}

// word converts one integer.
func (t transform) word(v int64) uint64 {
	switch {
	case t == asInt:
		return intTag | uint64(v)&intPayload
	case t < asBits:
		return kernel.Decimal(v, pow10(int(t-asDecimal)))
	}
	return uint64(v)<<((t-asBits)&63) | floatMarker
}

// value is the inverse of word for integers and decimals; ok is false when w
// is another kind of word.
func (t transform) value(w uint64) (k int64, ok bool) {
	if t == asInt {
		return point.Int(w), w < floatMarker
	}
	return kernel.ScaledOne(w, pow10(int(t-asDecimal)))
}

// pow10 is exact. e is at most maxExponent.
func pow10(e int) float64 { return powers[e] }

var powers = [maxExponent + 1]float64{1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9}

// toDecimals finds the exponent with which the float words become integers and
// fills in those. Words that have none are marked in odd and counted; when
// they are too many the count stops short.
func toDecimals(ks []int64, words []uint64, odd *intlist.Mask) (t transform, odds int) {
	*odd = intlist.Mask{}
	exp, scale := 0, 1.0
	redo := 0 // values below this one were scaled by a smaller exponent
	for i := 0; ; i++ {
		if i += kernel.Scaled(ks[i:], words[i:], scale); i == len(words) {
			break
		}
		ok := false
		for e, s := exp, scale; !ok && e < maxExponent; {
			e, s = e+1, s*10
			if ks[i], ok = kernel.ScaledOne(words[i], s); ok {
				exp, scale, redo = e, s, i
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
		if ks[i], ok = kernel.ScaledOne(w, scale); !ok {
			odd.Set(i) // too large for the larger exponent
			odds++
		}
	}
	return asDecimal + transform(exp), odds
}

// toBits turns float words into integers without the marker and the zeros that
// all of them end with.
func toBits(ks []int64, words []uint64) transform {
	var all uint64
	for _, w := range words {
		all |= w
	}
	all &^= floatMarker
	shift := 0
	if all != 0 {
		shift = bits.TrailingZeros64(all)
	}
	for i, w := range words {
		ks[i] = int64((w &^ floatMarker) >> shift)
	}
	return asBits + transform(shift)
}
