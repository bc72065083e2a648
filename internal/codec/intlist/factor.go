package intlist

import "math/bits"

// factorOf returns the greatest common divisor of the values of v above least, one of
// them, of which two differ. It is 1 for most lists after a few values.
func factorOf(v []int64, least int64) uint64 {
	var g uint64
	for i, x := range v {
		d := uint64(x - least)
		if g != 0 && d%g == 0 {
			continue
		}
		if g = gcd(g, d); g == 1 {
			return 1
		}
		if i > 8 && g > 1 {
			if every := newDivisor(g); every.divides(v[i:], least) {
				return g
			}
		}
	}
	return g
}

func gcd(a, b uint64) uint64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// divisor divides multiples of a number by a product: modulo 2^64 odd numbers have an
// inverse. (Granlund, Montgomery: "Division by Invariant Integers using
// Multiplication", PLDI 1994, section 9.)
type divisor struct {
	inverse uint64 // of the odd part
	shift   int    // power of two in it
	most    uint64 // quotient
}

// newDivisor is of d, which is not 0.
func newDivisor(d uint64) divisor {
	q := divisor{shift: bits.TrailingZeros64(d), most: ^uint64(0) / d}
	odd := d >> q.shift
	q.inverse = odd // right in the lowest three bits
	for range 5 {
		q.inverse *= 2 - odd*q.inverse
	}
	return q
}

// quotient returns x divided, if x is a multiple; other numbers have one above most.
func (q *divisor) quotient(x uint64) uint64 {
	return bits.RotateLeft64(x*q.inverse, -q.shift)
}

// divides reports whether all values of v above least are multiples.
func (q *divisor) divides(v []int64, least int64) bool {
	for _, x := range v {
		if q.quotient(uint64(x-least)) > q.most {
			return false
		}
	}
	return true
}

// divide returns the values of v above least in factors.
func (s *Scratch) divide(v []int64, least int64, factor uint64) []int64 {
	q, out := newDivisor(factor), s.divided[:len(v)]
	for i, x := range v {
		out[i] = int64(q.quotient(uint64(x - least)))
	}
	return out
}
