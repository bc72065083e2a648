package exec

import (
	"math"

	"dalmatiner/internal/query/function"
	"dalmatiner/internal/query/plan"
	"dalmatiner/internal/query/stats"
)

// apply computes value by value without a constant.
type apply struct {
	over
	*plan.Map
}

func (n *apply) next(x *executor, dst block) (block, error) {
	base := len(dst.v)
	dst, err := n.in.pull(x, dst)
	if err != nil {
		return dst, err
	}
	v := dst.v[base:]
	for i, f := range v {
		switch n.Fn {
		case function.Abs:
			v[i] = math.Abs(f)
		case function.SqrtScale:
			v[i] = math.Copysign(math.Sqrt(math.Abs(f)), f)
		default:
			v[i] = stats.Log10Scale(f)
		}
	}
	return dst, nil
}

// replace puts a constant in place of values with little confidence.
type replace struct {
	over
	*plan.Replace
}

func (n *replace) next(x *executor, dst block) (block, error) {
	in, err := n.in.pull(x, x.scratch())
	if err != nil {
		return dst, err
	}
	for i, v := range in.v {
		if in.c[i] <= n.Threshold {
			v = n.With
		}
		dst.v = append(dst.v, v)
	}
	if n.Confidence {
		dst.c = append(dst.c, in.c...)
	}
	x.release(in)
	return dst, nil
}
