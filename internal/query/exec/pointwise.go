package exec

import (
	"fmt"

	"dalmatiner/internal/query/function"
	"dalmatiner/internal/query/plan"
)

// scalar computes with one constant, value by value.
type scalar struct {
	over
	*plan.Scalar
}

func (s *scalar) next(x *executor, dst block) (block, error) {
	base := len(dst.v)
	dst, err := x.pull(s.in, dst)
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
			v[i] = c / divisor(v[i])
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
	return dst, nil
}

// divisor is what stands below the line when v is asked to: division by 0
// counts as division by 1.
func divisor(v float64) float64 {
	if v == 0 {
		return 1
	}
	return v
}

// confidence gives its input's confidences as values.
type confidence struct{ over }

func (n *confidence) next(x *executor, dst block) (block, error) {
	in, err := x.pull(n.in, x.scratch())
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
