package stats

import "math"

// Sum adds up numbers without the errors of rounding piling up (Neumaier's sum), and knows
// their mean. NaN is passed over. The zero value is the sum of nothing.
//
// Numbers of 2^960 and more are added up scaled, in a sum of their own: the mean of finite
// numbers is finite, whatever their sum is.
type Sum struct {
	small, large compensated // of large, numbers times scale
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
		s.small.add(v)
	} else {
		s.large.add(v * scale)
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
	s.small.join(o.small)
	s.large.join(o.large)
}

// Count returns how many numbers were added.
func (s *Sum) Count() int64 { return s.n }

// Value returns the sum; 0 of nothing. It is infinite where the sum is beyond the doubles.
func (s *Sum) Value() float64 {
	if s.large == (compensated{}) {
		return s.small.value()
	}
	all := s.large
	all.join(compensated{s.small.sum * scale, s.small.rest * scale})
	return all.value() / scale
}

// Mean returns the sum ÷ the count, which lies between the least and the greatest of the
// numbers; NaN of nothing, and where infinities of both signs were added.
func (s *Sum) Mean() float64 {
	n := float64(s.n) // 0 gives 0 ÷ 0
	mean := s.small.value() / n
	if s.large != (compensated{}) {
		all := s.large
		all.join(compensated{s.small.sum * scale, s.small.rest * scale})
		mean = all.value() / n / scale
	}
	return within(mean, s.low, s.high)
}

// compensated is a sum and what rounding took from it.
type compensated struct{ sum, rest float64 }

func (c *compensated) add(v float64) {
	sum := c.sum + v
	if math.Abs(c.sum) >= math.Abs(v) {
		c.rest += (c.sum - sum) + v
	} else {
		c.rest += (v - sum) + c.sum
	}
	c.sum = sum
}

func (c *compensated) join(o compensated) {
	rest := c.rest + o.rest
	c.rest = 0
	c.add(o.sum)
	c.rest += rest
}

// value returns the sum as one double. What rounding took from an infinite sum is not a number.
func (c compensated) value() float64 {
	if math.IsInf(c.sum, 0) {
		return c.sum
	}
	return c.sum + c.rest
}
