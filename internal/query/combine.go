package query

import (
	"fmt"

	"dalmatiner/internal/kernel"
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
	fn      opFunc
	aligned bool
	weights []float64 // of the confidences, with sum 1; nil for the plain mean
}

func (z *combine) needConfidence(want bool) {
	if z.enter(want) {
		for _, n := range z.in {
			n.needConfidence(want)
		}
	}
}

func (z *combine) next(x *executor, dst block) (block, error) {
	base, baseC := len(dst.v), len(dst.c)
	fold := z.foldPending
	if z.aligned {
		fold = z.foldAligned
	}
	dst, err := fold(x, dst)
	if err != nil {
		return dst, err
	}
	k := float64(len(z.in))
	if z.fn == fnAvg {
		divideAll(dst.v[base:], k)
	}
	if z.conf && z.weights == nil {
		divideAll(dst.c[baseC:], k)
	}
	return dst, nil
}

func divideAll(v []float64, by float64) {
	for i := range v {
		v[i] /= by
	}
}

func (z *combine) foldAligned(x *executor, dst block) (block, error) {
	base, baseC := len(dst.v), len(dst.c)
	dst, err := x.pull(z.in[0], dst)
	if err != nil {
		return dst, err
	}
	if z.conf {
		z.weigh(0, dst.c[baseC:])
	}
	for i, n := range z.in[1:] {
		in, err := x.pull(n, x.scratch())
		if err != nil {
			return dst, err
		}
		z.fold(dst.v[base:], in.v)
		if z.conf {
			z.weigh(i+1, in.c)
			kernel.AddTo(dst.c[baseC:], in.c)
		}
		x.release(in)
	}
	return dst, nil
}

// weigh multiplies the confidences of input i with their weight.
func (z *combine) weigh(i int, c []float64) {
	if z.weights == nil {
		return
	}
	for j := range c {
		c[j] *= z.weights[i]
	}
}

func (z *combine) foldPending(x *executor, dst block) (block, error) {
	ready, err := z.queue.fill(x, z.n, z.conf)
	if err != nil {
		return dst, err
	}
	base, baseC := len(dst.v), len(dst.c)
	for i := range z.in {
		b := z.head(i, ready)
		if z.conf {
			z.weigh(i, b.c)
		}
		if i == 0 {
			dst.v = append(dst.v, b.v...)
			dst.c = append(dst.c, b.c...)
		} else {
			z.fold(dst.v[base:], b.v)
			if z.conf {
				kernel.AddTo(dst.c[baseC:], b.c)
			}
		}
		z.drop(i, ready)
	}
	return dst, nil
}

// fold combines v into acc, which has as many values.
func (z *combine) fold(acc, v []float64) {
	v = v[:len(acc)]
	switch z.fn {
	case fnSum, fnAvg:
		kernel.AddTo(acc, v)
	case fnDiff:
		for i := range acc {
			acc[i] -= v[i]
		}
	case fnProduct:
		for i := range acc {
			acc[i] *= v[i]
		}
	case fnQuotient:
		for i := range acc {
			acc[i] /= divisor(v[i])
		}
	case fnMin:
		for i, f := range v {
			if f < acc[i] || acc[i] != acc[i] {
				acc[i] = f
			}
		}
	case fnMax:
		for i, f := range v {
			if f > acc[i] || acc[i] != acc[i] {
				acc[i] = f
			}
		}
	default:
		panic(fmt.Sprintf("query: combining function %d", z.fn))
	}
}
