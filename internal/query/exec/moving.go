package exec

import (
	"math"

	"dalmatiner/internal/query/plan"
	"dalmatiner/internal/query/stats"
)

// moving gives for every value the mean of it and of those before it within size outputs. Its
// confidence is their share of the outputs.
type moving struct {
	over
	size int64

	values stats.Sliding
	sure   stats.Sliding
}

func newMoving(o over, size int64) *moving {
	most := int(min(size, o.Values)) // of fewer values a window never ends
	return &moving{
		over:   o,
		size:   size,
		values: stats.Sliding{Size: most},
		sure:   stats.Sliding{Size: most},
	}
}

func (m *moving) next(x *executor, dst block) (block, error) {
	base, baseC := len(dst.v), len(dst.c)
	dst, err := m.in.pull(x, dst)
	if err != nil {
		return dst, err
	}
	v, c := dst.v[base:], dst.c[baseC:]
	for i, f := range v {
		sum := m.values.Take(f)
		if f == f {
			v[i] = sum.Mean()
		}
		if m.Confidence {
			sum = m.sure.Take(c[i])
			c[i] = 0
			if f == f {
				c[i] = sum.Value() / float64(m.size)
			}
		}
	}
	return dst, nil
}

// oldMoving is moving of the original: the first values have fewer before them, and one that is
// not a number makes all of its spans none.
type oldMoving struct {
	over
	size int64

	pos  int64 // in the current block
	n    int64 // inputs in the window
	sums stats.Slide
	sure stats.Slide
}

func (m *oldMoving) next(x *executor, dst block) (block, error) {
	in, err := m.in.pull(x, x.scratch())
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

// ewma is an exponentially weighted mean of values and confidences. It begins with the first
// value of the range; gaps stay, but with compat.
type ewma struct {
	over
	*plan.Ewma
	blank int64 // inputs before the range that are still to come, which it does not look at

	begun   bool
	since   int64 // outputs since the last value
	v, sure float64
}

func (m *ewma) next(x *executor, dst block) (block, error) {
	base, baseC := len(dst.v), len(dst.c)
	dst, err := m.in.pull(x, dst)
	if err != nil {
		return dst, err
	}
	c := dst.c[baseC:]
	for i, v := range dst.v[base:] {
		sure := 0.0
		if m.Node.Confidence {
			sure = c[i]
		}
		if m.since++; m.blank > 0 {
			m.blank--
			v, dst.v[base+i] = math.NaN(), math.NaN()
		}
		if v == v {
			m.take(v, sure)
		}
		if m.begun && (v == v || x.plan.Compat) {
			dst.v[base+i] = m.v
		}
		if m.Node.Confidence {
			if c[i] = m.sure; v != v && !x.plan.Compat {
				c[i] = 0
			}
		}
	}
	return dst, nil
}

func (m *ewma) take(v, sure float64) {
	alpha := m.Alpha
	if m.Span > 0 && m.since > 1 {
		alpha = -math.Expm1(-float64(m.since*m.Resolution) / float64(m.Span))
	}
	if m.begun {
		m.v += alpha * (v - m.v)
		m.sure += alpha * (sure - m.sure)
	} else {
		m.begun, m.v, m.sure = true, v, sure
	}
	m.since = 0
}
