package query

// step computes from each value and the one before it. The first output
// repeats the second with confidence 0, so the length stays; a single value
// gives 0.
type step struct {
	common
	in      node
	fn      opFunc
	seconds float64 // of a step
	every   int64   // the inputs begin anew after so many; 0 = never

	came     int64 // inputs since the beginning
	all      int64 // inputs in all
	last     float64
	lastSure float64
}

func (s *step) needConfidence(want bool) {
	if s.enter(want) {
		s.in.needConfidence(want)
	}
}

func (s *step) coverage() (set, slots int64) { return s.in.coverage() }

func (s *step) next(x *executor, dst block) (block, error) {
	in, err := x.pull(s.in, x.scratch())
	if err != nil {
		return dst, err
	}
	for i, v := range in.v {
		sure := 0.0
		if s.conf {
			sure = in.c[i]
		}
		if s.came > 0 {
			change := s.change(v)
			if s.came == 1 {
				dst = s.append(dst, change, 0)
			}
			dst = s.append(dst, change, (s.lastSure+sure)/2)
		}
		s.came++
		s.all++
		s.last, s.lastSure = v, sure
		if s.came == s.every || s.all == s.n {
			if s.came == 1 {
				dst = s.append(dst, 0, 0)
			}
			s.came = 0
		}
	}
	x.release(in)
	return dst, nil
}

func (s *step) append(dst block, v, sure float64) block {
	dst.v = append(dst.v, v)
	if s.conf {
		dst.c = append(dst.c, sure)
	}
	return dst
}

func (s *step) change(v float64) float64 {
	switch s.fn {
	case fnDerivate:
		return v - s.last
	case fnIncrease:
		return grown(s.last, v)
	}
	return grown(s.last, v) / s.seconds
}
