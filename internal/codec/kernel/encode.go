package kernel

import "math"

// KindsOf looks at words, of which there is at least one.
func KindsOf(words []uint64) Kinds {
	k, done := kinds(words)
	for _, w := range words[done:] {
		k.add(w)
	}
	return k
}

// Integers makes integers of the words src, all of integers; dst is not longer
// than src.
func Integers(dst []int64, src []uint64) {
	src = src[:len(dst)]
	for i := integers(dst, src); i < len(dst); i++ {
		dst[i] = intOf(src[i])
	}
}

// Offsets fills dst with v less base; dst is not longer than v.
func Offsets(dst []uint64, v []int64, base int64) {
	v = v[:len(dst)]
	for i := offsets(dst, v, base); i < len(dst); i++ {
		dst[i] = uint64(v[i] - base)
	}
}

// Steps fills dst with the differences of neighbours less base, one fewer than
// there are values in v.
func Steps(dst []uint64, v []int64, base int64) {
	v = v[:len(dst)+1]
	for i := steps(dst, v, base); i < len(dst); i++ {
		dst[i] = uint64(v[i+1] - v[i] - base)
	}
}

// Spread tells how far integers and their differences lie apart.
type Spread struct {
	Min, Max int64
	// MinStep and MaxStep are those of the differences of neighbours.
	MinStep, MaxStep int64
	// Equal is how many neighbours are equal.
	Equal int64
	// The sum of the integers is High × 2^32 + Low.
	High, Low int64
}

// SpreadOf looks at v, of which there are at least two.
func SpreadOf(v []int64) Spread {
	d := v[1] - v[0]
	s := Spread{
		Min:     v[0],
		Max:     v[0],
		MinStep: d,
		MaxStep: d,
		High:    v[0] >> 32,
		Low:     v[0] & math.MaxUint32,
	}
	spreadGo(&s, v[spread(&s, v):])
	return s
}

// spreadGo takes in the integers behind the first.
func spreadGo(s *Spread, v []int64) {
	for i, x := range v[1:] {
		d := x - v[i]
		s.Min, s.Max = min(s.Min, x), max(s.Max, x)
		s.MinStep, s.MaxStep = min(s.MinStep, d), max(s.MaxStep, d)
		if d == 0 {
			s.Equal++
		}
		s.High += x >> 32
		s.Low += x & math.MaxUint32
	}
}

// ScaledIntegers finds the integers for which the float words src stand, and writes them to dst,
// which is not shorter. It returns how many come before the first word that stands for none
// below 2^51. No NaN and no infinity does.
func ScaledIntegers(dst []int64, src []uint64, q Quotient) int {
	dst = dst[:len(src)]
	i := scaledIntegers(dst, src, q)
	for ; i < len(src); i++ {
		var ok bool
		if dst[i], ok = q.Int(src[i]); !ok {
			break
		}
	}
	return i
}

// Int is ScaledIntegers of one word.
func (q Quotient) Int(w uint64) (k int64, ok bool) {
	const (
		limit = 1 << 51
		magic = 3 << 51 // adding it leaves the rounded integer in the fraction
	)
	double := bitsOf(w)
	x := math.Float64frombits(double) * q.Scale
	if !(x > -limit && x < limit) {
		return 0, false
	}
	k = int64(math.Float64bits(x+magic) - math.Float64bits(magic))
	return k, q.bits(k) == double
}
