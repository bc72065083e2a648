package exec

import (
	"math"
)

// fill changes the values whose confidence is 0. Their confidence stays.
type fill struct {
	over
	with string // previous, null, zero or linear

	begun bool
	last  float64 // value with a confidence above 0
	open  int64   // of linear: gap since then, not yet given out
	seen  int64   // inputs
}

func (f *fill) next(x *executor, dst block) (block, error) {
	in, err := x.pull(f.in, x.scratch())
	if err != nil {
		return dst, err
	}
	for i, v := range in.v {
		f.seen++
		switch {
		case in.c[i] > 0:
			if f.open > 0 {
				f.bridge(&dst, v)
			}
			f.begun, f.last = true, v
			f.put(&dst, v, in.c[i])
		case f.with == "linear" && f.begun:
			f.open++
		default:
			f.put(&dst, f.instead(v), 0)
		}
	}
	x.release(in)
	if f.seen == f.Values {
		f.bridge(&dst, f.last)
	}
	return dst, nil
}

// instead returns what stands in a gap; v is the value it was filled with.
func (f *fill) instead(v float64) float64 {
	switch {
	case f.with == "null":
		return math.NaN()
	case f.with == "zero":
		return 0
	case f.begun:
		return f.last
	}
	return v
}

// bridge gives out the open gap, on the line from the last value to v.
func (f *fill) bridge(dst *block, v float64) {
	steps := float64(f.open + 1)
	for i := int64(1); i <= f.open; i++ {
		f.put(dst, f.last+(v-f.last)*(float64(i)/steps), 0)
	}
	f.open = 0
}

func (f *fill) put(dst *block, v, sure float64) {
	dst.v = append(dst.v, v)
	if f.Confidence {
		dst.c = append(dst.c, sure)
	}
}
