package exec

import (
	"fmt"
	"math"

	"dalmatiner/internal/query/function"
	"dalmatiner/internal/query/plan"
)

// scalar computes with one constant, value by value.
type scalar struct {
	over
	*plan.Scalar
}

func (s *scalar) next(x *executor, dst block) (block, error) {
	base, baseC := len(dst.v), len(dst.c)
	dst, err := s.in.pull(x, dst)
	if err != nil {
		return dst, err
	}
	v, c := dst.v[base:], s.Constant
	switch s.Fn {
	case function.Add:
		for i := range v {
			v[i] += c
		}
	case function.Sub:
		for i := range v {
			v[i] -= c
		}
	case function.SubFrom:
		for i := range v {
			v[i] = c - v[i]
		}
	case function.Mul:
		for i := range v {
			v[i] *= c
		}
	case function.Divide:
		for i := range v {
			v[i] /= c
		}
	case function.DivideInto:
		for i := range v {
			v[i] = c / divisor(v[i], x.plan.Compat)
		}
	case function.ClampLow:
		for i := range v {
			if v[i] < c {
				v[i] = c
			}
		}
	case function.ClampHigh:
		for i := range v {
			if v[i] > c {
				v[i] = c
			}
		}
	default:
		panic(fmt.Sprintf("query: scalar function %d", s.Fn))
	}
	if !x.plan.Compat {
		doubt(v, dst.c[baseC:])
	}
	return dst, nil
}

// doubt has gaps that a function makes of values have no confidence. Without confidences it does
// nothing.
func doubt(v, c []float64) {
	for i := range c {
		if v[i] != v[i] {
			c[i] = 0
		}
	}
}

// divisor is what stands below the line when v is asked to: what is divided by 0 is a gap. The
// original divides by 1 there.
func divisor(v float64, old bool) float64 {
	switch {
	case v != 0:
		return v
	case old:
		return 1
	}
	return math.NaN()
}

// confidence gives its input's confidences as values.
type confidence struct{ over }

func (n *confidence) next(x *executor, dst block) (block, error) {
	in, err := n.in.pull(x, x.scratch())
	if err != nil {
		return dst, err
	}
	dst.v = append(dst.v, in.c...)
	if n.Confidence {
		for range in.c {
			dst.c = append(dst.c, 1)
		}
	}
	x.release(in)
	return dst, nil
}
