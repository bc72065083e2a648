package chunk

import (
	"math"
	"math/bits"

	"dalmatiner/internal/codec/floatsum"
	"dalmatiner/internal/codec/kernel"
	"dalmatiner/internal/codec/point"
)

// Sum is a sum of words in two parts that are never mixed: integers exactly, in 128 bits of
// two's complement, and floats as a double.
//
// The float part of a chunk has one defined order, so that every kernel gives the same
// bits. The floats of each lane (slots [60j, 60j+60)) are added up in the order of the slots as
// package floatsum does it, and the sum of the lane is rounded. The twelve sums of the lanes are
// added up in the same way, in the order of the lanes. A sum that is not a number is the one
// value math.NaN().
type Sum struct {
	// Hi and Lo are the upper and the lower half of the integer part.
	Hi int64
	Lo uint64
	// Float is the float part.
	Float float64
}

// Float64 returns the whole sum as a double: the integer part rounded once,
// plus the float part.
func (s Sum) Float64() float64 {
	if s.Hi == int64(s.Lo)>>63 {
		return float64(int64(s.Lo)) + s.Float
	}
	return s.wideFloat()
}

// wideFloat is Float64 where the integer part has more than 64 bits.
func (s Sum) wideFloat() float64 {
	hi, lo, sign := uint64(s.Hi), s.Lo, 1.0
	if s.Hi < 0 {
		var borrow uint64
		lo, borrow = bits.Sub64(0, lo, 0)
		hi, _ = bits.Sub64(0, hi, borrow)
		sign = -1
	}
	if hi == 0 {
		return sign*float64(lo) + s.Float
	}
	// The 64 highest bits carry a sticky bit for the dropped ones, so that the
	// conversion rounds exactly once.
	n := bits.Len64(hi)
	top := hi<<(64-n) | lo>>n
	if lo<<(64-n) != 0 {
		top |= 1
	}
	return sign*math.Ldexp(float64(top), n) + s.Float
}

// Mean returns Sum ÷ Count, which lies between Min and Max. It reports false where the sum
// does not tell: without a set slot, with NaN among the words, and where finite words have a
// sum beyond the doubles. Then the words have to be added up.
func (h *Header) Mean() (float64, bool) {
	if h.Count == 0 || h.Min == point.Unset {
		return math.NaN(), false
	}
	low, high := point.Float(h.Min), point.Float(h.Max)
	mean := h.Sum.Float64() / float64(h.Count)
	told := mean == mean && (mean != math.Inf(1) || high == mean) &&
		(mean != math.Inf(-1) || low == mean)
	switch {
	case mean < low:
		mean = low
	case mean > high:
		mean = high
	}
	return mean, told
}

// AddInts adds the integer part of o.
func (s *Sum) AddInts(o Sum) {
	lo, carry := bits.Add64(s.Lo, o.Lo, 0)
	hi, _ := bits.Add64(uint64(s.Hi), uint64(o.Hi), carry)
	s.Hi, s.Lo = int64(hi), lo
}

// product returns v × n for n >= 0.
func product(v int64, n int) Sum {
	hi, lo := bits.Mul64(uint64(v), uint64(n))
	if v < 0 {
		hi -= uint64(n)
	}
	return Sum{Hi: int64(hi), Lo: lo}
}

// difference returns the low 128 bits of the difference of the integer parts.
func (s Sum) difference(o Sum) (hi, lo uint64) {
	lo, borrow := bits.Sub64(s.Lo, o.Lo, 0)
	hi, _ = bits.Sub64(uint64(s.Hi), uint64(o.Hi), borrow)
	return hi, lo
}

// AddInt adds v to the integer part.
func (s *Sum) AddInt(v int64) {
	lo, carry := bits.Add64(s.Lo, uint64(v), 0)
	hi, _ := bits.Add64(uint64(s.Hi), uint64(v>>63), carry)
	s.Hi, s.Lo = int64(hi), lo
}

func canonical(f float64) float64 {
	if f != f {
		return math.NaN()
	}
	return f
}

// Less reports whether the value of the set word a is below that of the set word b. An
// integer and a float are compared exactly, without rounding. It is false if either is NaN.
func Less(a, b uint64) bool {
	switch fa, fb := point.KindOf(a) == point.KindFloat, point.KindOf(b) == point.KindFloat; {
	case fa && fb:
		return point.Float(a) < point.Float(b)
	case fa:
		return floatBelowInt(point.Float(a), point.Int(b))
	case fb:
		// a < b is the same as -b < -a, and 56-bit integers can be negated.
		return floatBelowInt(-point.Float(b), -point.Int(a))
	default:
		return point.Int(a) < point.Int(b)
	}
}

// floatBelowInt compares without the rounding that a conversion of a 56-bit
// integer to a double would bring.
func floatBelowInt(f float64, i int64) bool {
	const limit = 1 << 56
	switch {
	case f != f || f >= limit:
		return false
	case f < -limit:
		return true
	}
	down := math.Floor(f)
	return int64(down) < i
}

// sumWords returns the sum of words, the slots from off on.
func sumWords(words []uint64, off int) (sum Sum) {
	var floats floatsum.Sum
	for len(words) > 0 {
		n := min(Lane-off%Lane, len(words))
		if lane := words[:n]; kernel.KindsOf(lane).HasFloat() {
			floats.Add(sumLane(&sum, lane))
		} else {
			all := int64(0) // a lane's sum has less than 63 bits
			for _, w := range lane {
				all += point.Int(w)
			}
			sum.AddInt(all)
		}
		words, off = words[n:], off+n
	}
	sum.Float = canonical(floats.Value())
	return sum
}

// sumLane adds the integers of a lane with floats to sum, and returns the sum of the floats.
func sumLane(sum *Sum, lane []uint64) float64 {
	var floats floatsum.Sum
	for _, w := range lane {
		switch point.KindOf(w) {
		case point.KindFloat:
			floats.Add(point.Double(w))
		case point.KindInt:
			sum.AddInt(point.Int(w))
		}
	}
	return floats.Value()
}

// rises reports whether a value is finite and not below the one before it.
func rises(before, w uint64) bool {
	if before>>56 == intTag>>56 && w>>56 == intTag>>56 {
		return int64(before<<8) <= int64(w<<8)
	}
	return finite(w) && !Less(w, before)
}

// finite reports whether the value of a set word is an integer or a finite float.
func finite(w uint64) bool {
	v := point.Float(w)
	return v-v == 0
}

// sumFloats returns the float sum of words without gaps.
func sumFloats(words []uint64, off int) float64 {
	var total floatsum.Sum
	for len(words) > 0 {
		n := min(Lane-off%Lane, len(words))
		var lane floatsum.Sum
		for _, w := range words[:n] {
			lane.Add(point.Double(w))
		}
		total.Add(lane.Value())
		words, off = words[n:], off+n
	}
	return canonical(total.Value())
}
