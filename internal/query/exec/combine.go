package exec

import (
	"fmt"
	"math"

	"dalmatiner/internal/codec/kernel"
	"dalmatiner/internal/codec/sumtree"
	"dalmatiner/internal/query/function"
	"dalmatiner/internal/query/hold"
	"dalmatiner/internal/query/plan"
)

// combine makes one series from several, value by value in their order. A series takes part
// with its value or with the last one that it holds; there is a result where one of them has a
// value of its own. Its confidence is the mean of theirs.
//
// Inputs of one form complete equally many values in a round and are folded
// into the output one after the other, so that a thousand inputs need two
// buffers. Others wait in the queue until every input has come as far.
type combine struct {
	common
	queue
	*plan.Combine
	held    []hold.Series // of each input
	partial []partial     // what is not joined yet, behind the first one

	// Of the outputs of a round: how many inputs have no value of their own, and how many take no
	// part. Both are empty as long as there are none.
	unowned, absent []int32
	// Of averages: the extremes of what takes part, and its sum times a number that keeps it
	// finite.
	low, high, scaled []float64
}

// partial is the combination of some inputs.
type partial struct {
	block
	split uint8 // between it and the one before it
}

func newCombine(x *executor, c common, in []input, op *plan.Combine) *combine {
	z := &combine{common: c, Combine: op, queue: queue{in: in}, held: make([]hold.Series, len(in))}
	if !op.Aligned {
		z.queue = newQueue(x, in)
	}
	return z
}

func (z *combine) next(x *executor, dst block) (block, error) {
	base, baseC := len(dst.v), len(dst.c)
	ready := 0
	if !z.Aligned {
		var err error
		if ready, err = z.queue.fill(x, z.all, z.Confidence); err != nil {
			return dst, err
		}
	}
	z.unowned, z.absent = z.unowned[:0], z.absent[:0]
	z.low, z.high, z.scaled = z.low[:0], z.high[:0], z.scaled[:0]
	dst, err := z.join(x, dst, ready)
	if err != nil {
		return dst, err
	}
	z.finish(dst.v[base:], dst.c[baseC:])
	return dst, nil
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
		if w, ok := z.in[i+far].node.(*window); ok {
			kernel.FetchOf(w)
			kernel.FetchOf(&w.ready)
		}
	}
	if i+near < len(z.in) {
		if w, ok := z.in[i+near].node.(*window); ok {
			kernel.FetchOf(&w.Uses)
		}
	}
}

// input appends what input i has in this round to dst, with the values that it holds.
func (z *combine) input(x *executor, dst block, i, ready int) (_ block, err error) {
	from, fromC := len(dst.v), len(dst.c)
	if z.Aligned {
		dst, err = z.in[i].pull(x, dst)
	} else {
		b := z.head(i, ready)
		dst.v, dst.c = append(dst.v, b.v...), append(dst.c, b.c...)
		z.drop(i, ready)
	}
	if err != nil {
		return dst, err
	}
	v := dst.v[from:]
	z.unowned = countGaps(z.unowned, v)
	if z.held[i].Fill(v, dst.c[fromC:], z.Resolution) > 0 {
		z.absent = countGaps(z.absent, v)
	}
	if z.Fn == function.Avg {
		z.measure(v)
	}
	return dst, nil
}

// countGaps counts at which positions there are gaps, in a list that is empty until there is
// one.
func countGaps(counts []int32, v []float64) []int32 {
	for i, f := range v {
		if f == f {
			continue
		}
		if len(counts) == 0 {
			counts = append(counts, make([]int32, len(v))...)
		}
		counts[i]++
	}
	return counts
}

// measure notes of averages what else their mean depends on.
func (z *combine) measure(v []float64) {
	if len(z.low) == 0 {
		z.low, z.high, z.scaled = append(z.low, v...), append(z.high, v...),
			append(z.scaled, make([]float64, len(v))...)
	}
	for i, f := range v {
		if f != f {
			continue
		}
		z.scaled[i] += f * sumtree.MeanScale
		if f < z.low[i] || z.low[i] != z.low[i] {
			z.low[i] = f
		}
		if f > z.high[i] || z.high[i] != z.high[i] {
			z.high[i] = f
		}
	}
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

// fold combines v into acc, which has as many values. What takes no part is a gap.
func (z *combine) fold(acc, v []float64) {
	v = v[:len(acc)]
	if sum := z.Fn == function.Sum || z.Fn == function.Avg; sum && (len(z.absent) == 0 || z.Strict) {
		kernel.AddTo(acc, v)
		return
	}
	if z.Strict {
		z.foldAll(acc, v)
		return
	}
	for i, f := range v {
		switch {
		case hold.IsGap(f):
		case hold.IsGap(acc[i]):
			acc[i] = f
		case z.Fn == function.Sum || z.Fn == function.Avg:
			acc[i] += f
		case z.Fn == function.Min && f < acc[i] || z.Fn == function.Max && f > acc[i]:
			acc[i] = f
		}
	}
}

// foldAll is fold of operators, whose inputs all have to take part.
func (z *combine) foldAll(acc, v []float64) {
	switch z.Fn {
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
			acc[i] /= divisor(v[i], false)
		}
	default:
		panic(fmt.Sprintf("query: combining function %d", z.Fn))
	}
}

// finish makes averages and confidences of sums, and gaps where no input has a value of its
// own.
func (z *combine) finish(v, c []float64) {
	all := int32(len(z.in))
	if z.Fn == function.Avg {
		for i, sum := range v {
			n := all
			if len(z.absent) > 0 {
				n -= z.absent[i]
			}
			v[i] = sumtree.Mean(sum, z.scaled[i], int64(n), z.low[i], z.high[i])
		}
	}
	for i := range c {
		n := all
		if len(z.absent) > 0 {
			n -= z.absent[i]
		}
		c[i] /= float64(max(n, 1))
	}
	for i, n := range z.unowned {
		if n == all {
			v[i] = math.NaN()
		}
	}
	doubt(v, c)
}
