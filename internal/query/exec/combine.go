package exec

import (
	"fmt"

	"dalmatiner/internal/kernel"
	"dalmatiner/internal/query/function"
	"dalmatiner/internal/query/plan"
)

// combine makes one series from several, value by value in their order. Its
// confidence is the mean of theirs.
//
// Inputs of one form complete equally many values in a round and are folded
// into the output one after the other, so that a thousand inputs need two
// buffers. Others wait in the queue until every input has come as far.
type combine struct {
	common
	queue
	*plan.Combine
	partial []partial // what is not joined yet, behind the first one
}

// partial is the combination of some inputs.
type partial struct {
	block
	split uint8 // between it and the one before it
}

func (z *combine) next(x *executor, dst block) (block, error) {
	base, baseC := len(dst.v), len(dst.c)
	ready := 0
	if !z.Aligned {
		var err error
		if ready, err = z.queue.fill(x, z.Values, z.Confidence); err != nil {
			return dst, err
		}
	}
	dst, err := z.join(x, dst, ready)
	if err != nil {
		return dst, err
	}
	k := float64(len(z.in))
	if z.Fn == function.Avg {
		divideAll(dst.v[base:], k)
	}
	if z.Confidence && z.Weights == nil {
		divideAll(dst.c[baseC:], k)
	}
	return dst, nil
}

func divideAll(v []float64, by float64) {
	for i := range v {
		v[i] /= by
	}
}

// join combines what all inputs have, in their order: an input is joined with those
// before it up to its split.
func (z *combine) join(x *executor, dst block, ready int) (block, error) {
	base, baseC := len(dst.v), len(dst.c)
	for i := range z.in {
		split := plan.OneByOne
		if z.Splits != nil {
			split = z.Splits[i]
		}
		z.joinUpTo(x, dst.v[base:], dst.c[baseC:], split)
		z.fetch(i)
		var in block
		if i > 0 {
			in = x.scratch()
		} else {
			in = dst
		}
		in, err := z.input(x, in, i, ready)
		if err != nil {
			return dst, err
		}
		if i > 0 {
			z.partial = append(z.partial, partial{in, split})
		} else {
			dst = in
		}
	}
	z.joinUpTo(x, dst.v[base:], dst.c[baseC:], plan.OneByOne)
	return dst, nil
}

// fetch asks for what inputs behind input i hold. They lie in the order of their names, not
// of their hashes, so that each of thousands would be waited for. What an input points to is
// not looked at: a reader may be writing it.
func (z *combine) fetch(i int) {
	const near, far = 4, 8
	if i+far < len(z.in) {
		if w, ok := z.in[i+far].(*window); ok {
			kernel.FetchOf(w)
			kernel.FetchOf(&w.ready)
		}
	}
	if i+near < len(z.in) {
		if w, ok := z.in[i+near].(*window); ok {
			kernel.FetchOf(&w.Uses)
		}
	}
}

// input appends what input i has in this round to dst.
func (z *combine) input(x *executor, dst block, i, ready int) (_ block, err error) {
	from := len(dst.c)
	if z.Aligned {
		dst, err = x.pull(z.in[i], dst)
	} else {
		b := z.head(i, ready)
		dst.v, dst.c = append(dst.v, b.v...), append(dst.c, b.c...)
		z.drop(i, ready)
	}
	if z.Confidence && z.Weights != nil {
		for j := range dst.c[from:] {
			dst.c[from+j] *= z.Weights[i]
		}
	}
	return dst, err
}

// joinUpTo joins the last partial results whose splits are not above one. v and c
// are the first of them.
func (z *combine) joinUpTo(x *executor, v, c []float64, split uint8) {
	for n := len(z.partial) - 1; n >= 0 && z.partial[n].split <= split; n-- {
		last := z.partial[n].block
		z.partial = z.partial[:n]
		intoV, intoC := v, c
		if n > 0 {
			intoV, intoC = z.partial[n-1].v, z.partial[n-1].c
		}
		z.fold(intoV, last.v)
		if z.Confidence {
			kernel.AddTo(intoC, last.c)
		}
		x.release(last)
	}
}

// fold combines v into acc, which has as many values.
func (z *combine) fold(acc, v []float64) {
	v = v[:len(acc)]
	switch z.Fn {
	case function.Sum, function.Avg:
		kernel.AddTo(acc, v)
	case function.Diff:
		for i := range acc {
			acc[i] -= v[i]
		}
	case function.Product:
		for i := range acc {
			acc[i] *= v[i]
		}
	case function.Quotient:
		for i := range acc {
			acc[i] /= divisor(v[i])
		}
	case function.Min:
		for i, f := range v {
			if f < acc[i] || acc[i] != acc[i] {
				acc[i] = f
			}
		}
	case function.Max:
		for i, f := range v {
			if f > acc[i] || acc[i] != acc[i] {
				acc[i] = f
			}
		}
	default:
		panic(fmt.Sprintf("query: combining function %d", z.Fn))
	}
}
