package chunk

import (
	"math"
	"math/bits"

	"dalmatiner/internal/codec/intlist"
	"dalmatiner/internal/codec/kernel"
	"dalmatiner/internal/codec/point"
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
	// asNear + 16j + e: of m = 2^j bits the lowest, less half of what they may be, is how many
	// doubles the float lies above the one next to rest / 10^e: sums of decimals.
	asNear transform = 96
	// asWord: a list of one float only, in the place of its integer stands the word.
	asWord transform = 160
)

const maxExponent = 9

func (t transform) isDefined() bool { return t == asInt || t.bits() || t.decimal() || t.isNear() }

// bits and decimal report which of the floats t makes.
func (t transform) bits() bool { return t >= asBits && t < asEven }

func (t transform) decimal() bool {
	return t-asDecimal <= maxExponent || t-asEven <= maxExponent
}

func (t transform) isNear() bool {
	return t >= asNear && t < asNear+nearWidths*nearStep && (t-asNear)%nearStep <= maxExponent
}

const (
	nearStep   = 16
	nearWidths = 4
)

// nearBits returns how many bits tell the distance from a decimal.
func (t transform) nearBits() uint { return 1 << ((t - asNear) / nearStep) }

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
	case t.isNear():
		t.nearWords(dst, values)
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
	case t.isNear():
		var word [1]uint64
		t.nearWords(word[:], []uint64{uint64(v)})
		return word[0]
	}
	return point.FromFloat(math.Float64frombits(uint64(v) << ((t - asBits) & 63)))
}

// value is the inverse of word; ok is false when w is another kind of word.
func (t transform) value(w uint64) (k int64, ok bool) {
	if t == asInt {
		return point.Int(w), point.KindOf(w) == point.KindInt
	}
	if t.isNear() {
		k, off := nearestDecimal(w, t.quotient())
		m := t.nearBits()
		return k<<m + off + 1<<(m-1), nearBits(off) <= m
	}
	if t.bits() {
		double, z := math.Float64bits(point.Double(w)), (t-asBits)&63
		return int64(double >> z), double>>z<<z == double
	}
	return t.quotient().Int(w)
}

// values is the inverse of words for words that all have a value.
func (t transform) values(ks []int64, words []uint64) {
	for i, w := range words {
		ks[i], _ = t.value(w)
	}
}

// nearWords is words of near decimals.
func (t transform) nearWords(dst, values []uint64) {
	m := t.nearBits()
	half := uint64(1) << (m - 1)
	for i := range dst {
		dst[i] = uint64(int64(values[i]) >> m)
	}
	kernel.Decimals(dst, dst, t.quotient())
	for i, w := range dst {
		off := values[i]&(2*half-1) - half
		dst[i] = point.FromFloat(math.Float64frombits(math.Float64bits(point.Double(w)) + off))
	}
}

// maxNear bounds the integers of near decimals: of random floats few lie as close to one.
const maxNear = 1 << 40

// nearestDecimal returns the decimal next to the float w, and how many doubles w lies above it,
// which are too many where there is none.
func nearestDecimal(w uint64, q kernel.Quotient) (k, off int64) {
	v := point.Double(w)
	x := math.RoundToEven(v * q.Scale)
	if !(x > -maxNear && x < maxNear) {
		return 0, math.MaxInt64
	}
	k = int64(x) // which makes 0 of -0
	return k, int64(math.Float64bits(v) - math.Float64bits(float64(k)/q.Scale))
}

// nearBits returns how many bits an offset takes.
func nearBits(off int64) uint { return uint(bits.Len64(uint64(off^off>>63))) + 1 }

// toNear finds the exponent with which most float words lie near decimals, and how many bits
// their distances take. It returns how many words do not; too many are len(words).
func toNear(words []uint64) (t transform, odds int) {
	const most = 1 << (nearWidths - 1) // bits
	var need [most + 1]int
	t = asNear
	for i, w := range words {
		found := false
		for next := t; !found && next-asNear <= maxExponent; next++ {
			_, off := nearestDecimal(w, next.quotient())
			if m := nearBits(off); m <= most {
				t, found = next, true
				need[m]++
			}
		}
		if found {
			continue
		}
		if odds++; odds > 8 && odds > i/2 {
			return 0, len(words)
		}
	}
	// A word that is not near takes all its bits.
	best, size := uint(0), math.MaxInt
	for j, others := uint(0), len(words); j < nearWidths; j++ {
		for m := 1<<j/2 + 1; m <= 1<<j; m++ {
			others -= need[m]
		}
		if n := (len(words)-others)<<j + 64*others; n < size {
			best, size, odds = j, n, others
		}
	}
	return t + transform(best*nearStep), odds
}

// quotient tells what decimals of kind t stand for, or are near to.
func (t transform) quotient() kernel.Quotient {
	switch {
	case t >= asNear:
		return kernel.Quotient{Scale: powers[(t-asNear)%nearStep], Keep: kernel.Whole}
	case t >= asEven:
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
		if i += kernel.ScaledIntegers(ks[i:], words[i:], q); i == len(words) {
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
