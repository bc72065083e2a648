package query

import "fmt"

// combine makes one series from several, value by value in their order. Its
// confidence is the mean of theirs.
//
// Inputs of one form complete equally many values in a round and are folded
// into the output one after the other, so that a thousand inputs need two
// buffers. Others wait in pending until every input has come as far. An input
// that ends early repeats its last value with confidence 0.
type combine struct {
	common
	in      []node
	fn      opFunc
	aligned bool

	pending []block // what came and was not used
	came    []int64 // values that came
	given   int64   // values given out
}

func (z *combine) needConfidence(want bool) {
	if z.enter(want) {
		for _, n := range z.in {
			n.needConfidence(want)
		}
	}
}

func (z *combine) coverage() (set, slots int64) {
	for _, n := range z.in {
		a, b := n.coverage()
		set, slots = set+a, slots+b
	}
	return set, slots
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
	z.given += int64(len(dst.v) - base)
	k := float64(len(z.in))
	if z.fn == fnAvg {
		divideAll(dst.v[base:], k)
	}
	if z.conf {
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
	for _, n := range z.in[1:] {
		in, err := x.pull(n, x.scratch())
		if err != nil {
			return dst, err
		}
		z.fold(dst.v[base:], in.v)
		if z.conf {
			addAll(dst.c[baseC:], in.c)
		}
		x.release(in)
	}
	return dst, nil
}

func (z *combine) foldPending(x *executor, dst block) (block, error) {
	ready := z.n - z.given
	for i, n := range z.in {
		before := len(z.pending[i].v)
		var err error
		if z.pending[i], err = x.pull(n, z.pending[i]); err != nil {
			return dst, err
		}
		z.came[i] += int64(len(z.pending[i].v) - before)
		if z.came[i] < n.shared().n {
			ready = min(ready, int64(len(z.pending[i].v)))
		}
	}
	base, baseC := len(dst.v), len(dst.c)
	for i := range z.in {
		b := z.padded(i, int(ready))
		if i == 0 {
			dst.v = append(dst.v, b.v[:ready]...)
			if z.conf {
				dst.c = append(dst.c, b.c[:ready]...)
			}
		} else {
			z.fold(dst.v[base:], b.v[:ready])
			if z.conf {
				addAll(dst.c[baseC:], b.c[:ready])
			}
		}
		z.keep(i, b, int(ready))
	}
	return dst, nil
}

// padded returns what is pending of input i, at least n values. Only an input
// that has ended may need padding.
func (z *combine) padded(i, n int) block {
	b := z.pending[i]
	for len(b.v) < n {
		last := 0.0
		if len(b.v) > 0 {
			last = b.v[len(b.v)-1]
		}
		b.v = append(b.v, last)
		if z.conf {
			b.c = append(b.c, 0)
		}
	}
	return b
}

// keep takes n used values from the pending ones. Of an input that has ended
// the last value stays, because padding repeats it.
func (z *combine) keep(i int, b block, n int) {
	ended := z.came[i] == z.in[i].shared().n
	if ended && n == len(b.v) && n > 0 {
		n--
		if z.conf {
			b.c[n] = 0
		}
	}
	b.v = b.v[:copy(b.v, b.v[n:])]
	if z.conf {
		b.c = b.c[:copy(b.c, b.c[n:])]
	} else {
		b.c = b.c[:0]
	}
	z.pending[i] = b
}

func addAll(dst, v []float64) {
	for i := range dst {
		dst[i] += v[i]
	}
}

// fold combines v into acc, which has as many values.
func (z *combine) fold(acc, v []float64) {
	v = v[:len(acc)]
	switch z.fn {
	case fnSum, fnAvg:
		addAll(acc, v)
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
