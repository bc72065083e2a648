package stats

import (
	"math"

	"dalmatiner/internal/codec/floatsum"
)

// Sum adds up numbers without the errors of rounding piling up (package floatsum), and knows
// their mean. NaN is passed over. The zero value is the sum of nothing.
//
// Numbers of 2^960 and more are added up scaled, in a sum of their own: the mean of finite
// numbers is finite, whatever their sum is.
type Sum struct {
	small, large floatsum.Sum // of large, numbers times scale
	low, high    float64
	n            int64
}

const (
	huge  = 0x1p960 // 2^63 numbers below it have a finite sum
	scale = 0x1p-64
)

// Add adds v.
func (s *Sum) Add(v float64) {
	if v != v {
		return
	}
	if s.n == 0 {
		s.low, s.high = v, v
	} else if v < s.low {
		s.low = v
	} else if v > s.high {
		s.high = v
	}
	s.n++
	if math.Abs(v) < huge {
		s.small.Add(v)
	} else {
		s.large.Add(v * scale)
	}
}

// Join adds the numbers of o, which come behind those of s.
func (s *Sum) Join(o *Sum) {
	if o.n == 0 {
		return
	}
	if s.n == 0 {
		*s = *o
		return
	}
	s.n += o.n
	s.low, s.high = min(s.low, o.low), max(s.high, o.high)
	s.small.Join(o.small)
	s.large.Join(o.large)
}

// Count returns how many numbers were added.
func (s *Sum) Count() int64 { return s.n }

// Value returns the sum; 0 of nothing. It is infinite where the sum is beyond the doubles.
func (s *Sum) Value() float64 {
	if s.large == (floatsum.Sum{}) {
		return s.small.Value()
	}
	all := s.large
	all.Join(s.small.Scale(scale))
	return all.Value() / scale
}

// Mean returns the sum ÷ the count, which lies between the least and the greatest of the
// numbers; NaN of nothing, and where infinities of both signs were added.
func (s *Sum) Mean() float64 {
	n := float64(s.n) // 0 gives 0 ÷ 0
	mean := s.small.Value() / n
	if s.large != (floatsum.Sum{}) {
		all := s.large
		all.Join(s.small.Scale(scale))
		mean = all.Value() / n / scale
	}
	return within(mean, s.low, s.high)
}
