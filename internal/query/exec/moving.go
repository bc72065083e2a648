package exec

// moving gives for every input the mean of it and those before it within size
// inputs. The first ones have fewer.
//
// Sums are made of the sums of the current block of size inputs from its
// start, and of the block before it to its end: nothing is ever subtracted, so
// errors do not add up and an infinity leaves with its window.
type moving struct {
	over
	size int64

	pos  int64 // in the current block
	n    int64 // inputs in the window
	sums slide
	sure slide
}

// slide is the sum over the last inputs of a block.
type slide struct {
	head   float64   // sum of the current block so far
	block  []float64 // its inputs
	behind []float64 // sums of the block before, from each position to its end
}

func (m *moving) next(x *executor, dst block) (block, error) {
	in, err := x.pull(m.in, x.scratch())
	if err != nil {
		return dst, err
	}
	most := min(m.size, m.Values)
	for i, v := range in.v {
		m.n = min(m.n+1, m.size)
		dst.v = append(dst.v, m.sums.take(v, most)/float64(m.n))
		if m.Confidence {
			dst.c = append(dst.c, m.sure.take(in.c[i], most)/float64(m.n))
		}
		if m.pos++; m.pos == m.size {
			m.sums.turn()
			m.sure.turn()
			m.pos = 0
		}
	}
	x.release(in)
	return dst, nil
}

// take adds an input and returns the sum of the window that ends with it. A
// block has at most that many inputs.
func (s *slide) take(v float64, most int64) float64 {
	if s.block == nil {
		s.block = make([]float64, 0, most)
	}
	s.block = append(s.block, v)
	s.head += v
	if n := len(s.block); n < len(s.behind) {
		return s.behind[n] + s.head
	}
	return s.head
}

// turn begins a new block.
func (s *slide) turn() {
	s.behind, s.block = s.block, s.behind[:0]
	for i := len(s.behind) - 2; i >= 0; i-- {
		s.behind[i] += s.behind[i+1]
	}
	s.head = 0
}

// ewma is an exponentially weighted mean of values and confidences. It begins
// with the first value; NaN is passed over.
type ewma struct {
	over
	alpha float64

	begun   bool
	v, sure float64
}

func (m *ewma) next(x *executor, dst block) (block, error) {
	base, baseC := len(dst.v), len(dst.c)
	dst, err := x.pull(m.in, dst)
	if err != nil {
		return dst, err
	}
	c := dst.c[baseC:]
	for i, v := range dst.v[base:] {
		sure := 0.0
		if m.Confidence {
			sure = c[i]
		}
		switch {
		case v != v:
		case m.begun:
			m.v += m.alpha * (v - m.v)
			m.sure += m.alpha * (sure - m.sure)
		default:
			m.begun, m.v, m.sure = true, v, sure
		}
		if m.begun {
			dst.v[base+i] = m.v
		}
		if m.Confidence {
			c[i] = m.sure
		}
	}
	return dst, nil
}
