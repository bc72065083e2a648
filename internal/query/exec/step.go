package exec

import (
	"dalmatiner/internal/query/function"
	"dalmatiner/internal/query/stats"
)

// step computes from each value and the one before it. The first output
// repeats the second with confidence 0, so the length stays; a single value
// gives 0.
type step struct {
	over
	fn      function.Op
	seconds float64 // of a step
	every   int64   // the inputs begin anew after so many; 0 = never

	came     int64 // inputs since the beginning
	all      int64 // inputs in all
	last     float64
	lastSure float64
}

func (s *step) next(x *executor, dst block) (block, error) {
	in, err := x.pull(s.in, x.scratch())
	if err != nil {
		return dst, err
	}
	for v, c := in.v, in.c; len(v) > 0; {
		n := int64(len(v))
		if s.every > 0 {
			n = min(n, s.every-s.came)
		}
		var sure []float64
		if s.Confidence {
			sure, c = c[:n], c[n:]
		}
		dst = s.changes(dst, v[:n], sure)
		v = v[n:]
		s.all += n
		if s.came == s.every || s.all == s.Values {
			if s.came == 1 {
				dst = s.append(dst, 0, 0)
			}
			s.came = 0
		}
	}
	x.release(in)
	return dst, nil
}

// changes takes inputs up to where they begin anew, at least one.
func (s *step) changes(dst block, v, c []float64) block {
	if s.came == 0 {
		s.came, s.last, v = 1, v[0], v[1:]
		if s.Confidence {
			s.lastSure, c = c[0], c[1:]
		}
	}
	if len(v) == 0 {
		return dst
	}
	if s.came == 1 {
		dst = s.append(dst, s.change(s.last, v[0]), 0)
	}
	s.came += int64(len(v))
	n := len(v)
	dst = dst.grow(n, s.Confidence)
	out, last := dst.v[len(dst.v)-n:], s.last
	if s.fn == function.Derivate {
		for i, f := range v {
			out[i] = f - last
			last = f
		}
	} else {
		for i, f := range v {
			out[i] = s.change(last, f)
			last = f
		}
	}
	s.last = last
	if s.Confidence {
		out, last = dst.c[len(dst.c)-n:], s.lastSure
		for i, f := range c {
			out[i] = (last + f) / 2
			last = f
		}
		s.lastSure = last
	}
	return dst
}

func (s *step) append(dst block, v, sure float64) block {
	dst.v = append(dst.v, v)
	if s.Confidence {
		dst.c = append(dst.c, sure)
	}
	return dst
}

func (s *step) change(last, v float64) float64 {
	switch s.fn {
	case function.Derivate:
		return v - last
	case function.Increase:
		return stats.Grown(last, v)
	}
	return stats.Grown(last, v) / s.seconds
}
