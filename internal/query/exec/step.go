package exec

import (
	"math"

	"dalmatiner/internal/query/function"
	"dalmatiner/internal/query/plan"
	"dalmatiner/internal/query/stats"
)

// step computes from each value and the one before it, where that is not too long before.
type step struct {
	over
	fn      function.Op
	seconds float64 // of an output
	most    int64   // outputs from one value to the next

	begun    bool
	since    int64 // outputs since the last value
	last     float64
	lastSure float64
}

func newStep(o over, fn function.Op) *step {
	return &step{
		over:    o,
		fn:      fn,
		seconds: float64(o.Resolution) / 1000,
		most:    plan.LongestPatience(o.Resolution),
	}
}

func (s *step) next(x *executor, dst block) (block, error) {
	base, baseC := len(dst.v), len(dst.c)
	dst, err := s.in.pull(x, dst)
	if err != nil {
		return dst, err
	}
	v, c := dst.v[base:], dst.c[baseC:]
	for i, f := range v {
		s.since++
		if f != f {
			continue
		}
		out, sure := math.NaN(), 0.0
		if s.begun && s.since <= s.most {
			out = changeOf(s.fn, s.last, f, s.seconds*float64(s.since))
		}
		if s.Confidence {
			if out == out {
				sure = (s.lastSure + c[i]) / 2
			}
			s.lastSure, c[i] = c[i], sure
		}
		v[i], s.last, s.begun, s.since = out, f, true, 0
	}
	return dst, nil
}

// changeOf returns what a function makes of a value and the one so many seconds before it.
func changeOf(fn function.Op, last, v, seconds float64) float64 {
	switch fn {
	case function.Derivate:
		return (v - last) / seconds
	case function.Increase:
		return stats.Grown(last, v)
	}
	return stats.Grown(last, v) / seconds
}
