package exec

import "dalmatiner/internal/query/stats"

// moving gives for every input the mean of it and those before it within size
// inputs. The first ones have fewer.
type moving struct {
	over
	size int64

	pos  int64 // in the current block
	n    int64 // inputs in the window
	sums stats.Slide
	sure stats.Slide
}

func (m *moving) next(x *executor, dst block) (block, error) {
	in, err := x.pull(m.in, x.scratch())
	if err != nil {
		return dst, err
	}
	most := min(m.size, m.Values)
	for i, v := range in.v {
		m.n = min(m.n+1, m.size)
		dst.v = append(dst.v, m.sums.Take(v, most)/float64(m.n))
		if m.Confidence {
			dst.c = append(dst.c, m.sure.Take(in.c[i], most)/float64(m.n))
		}
		if m.pos++; m.pos == m.size {
			m.sums.Turn()
			m.sure.Turn()
			m.pos = 0
		}
	}
	x.release(in)
	return dst, nil
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
