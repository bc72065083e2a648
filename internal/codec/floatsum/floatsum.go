// Package floatsum adds up doubles so that the errors of rounding do not pile up.
package floatsum

// Sum is the sum of doubles that came one after the other, and what rounding took from it
// (Møller 1965, Knuth's TwoSum). Its value is that of the exact sum, rounded once, but for
// an error of the second order. The zero value is the sum of nothing, +0.
//
// The same doubles in the same order give the same bits everywhere; package kernel does the
// same operations lane by lane.
type Sum struct {
	// Float is the sum as plain addition makes it, Rest what it lacks.
	Float, Rest float64
}

// Add adds v.
func (s *Sum) Add(v float64) {
	sum := s.Float + v
	added := sum - s.Float
	s.Rest += (s.Float - (sum - added)) + (v - added)
	s.Float = sum
}

// Join adds the doubles of o.
func (s *Sum) Join(o Sum) {
	s.Add(o.Float)
	s.Rest += o.Rest
}

// Value returns the sum as one double. An infinite sum has lost no number, so its Rest, which
// is none, does not count.
func (s Sum) Value() float64 {
	if s.Rest-s.Rest != 0 {
		return s.Float
	}
	return s.Float + s.Rest
}

// Scale returns the sum of the doubles times factor, a power of two.
func (s Sum) Scale(factor float64) Sum { return Sum{s.Float * factor, s.Rest * factor} }
