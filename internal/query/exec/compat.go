package exec

import (
	"math"

	"dalmatiner/internal/codec/kernel"
	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/query/function"
	"dalmatiner/internal/query/plan"
)

// What the original answers (Options.Compat) and we do not: a read fills its gaps, and what is
// missing at the end of a span or of a series is the last value again.

// unknown stands for the first set slot of a read before it is looked for.
const unknown = math.MinInt64

// filled fills the gaps of a read as the original does: a gap repeats the value before it, a
// gap at the start takes the first value, and a range without values is all 0. The confidence
// is 1 for a set slot and 0 for a filled one.
type filled struct {
	*leaf
	stop  int64 // end of the part at pos: past, or before it where reads begin anew
	first int64 // first set slot of the part; stop if there is none
	carry float64
}

func openFilled(l *leaf) *filled {
	f := &filled{leaf: l, stop: l.past, first: unknown}
	if l.Restart > 0 {
		f.stop = min(l.past, l.pos+l.Restart)
	}
	return f
}

// produce reads the slots up to one.
func (f *filled) produce(r *reader, dst block, until int64) (block, error) {
	for f.pos < until {
		var err error
		if dst, err = f.upTo(r, dst, min(until, f.stop)); err != nil {
			return dst, err
		}
		if f.pos == f.stop && f.stop < f.past { // it goes on behind the slot that the original loses
			f.pos = f.stop + 1
			f.stop = min(f.past, f.pos+f.Restart)
			f.first, f.carry = unknown, 0
		}
	}
	return dst, nil
}

// upTo appends the slots up to until, which belong to one part.
func (f *filled) upTo(r *reader, dst block, until int64) (block, error) {
	n := until - f.pos
	words := r.Words[:n]
	read := false
	if f.first == unknown {
		if err := f.fetch(r, f.pos, words); err != nil {
			return dst, err
		}
		read = true
		if err := f.findFirst(r, words); err != nil {
			return dst, err
		}
	}
	from := f.pos
	f.pos = until
	if until <= f.first {
		return f.appendGap(dst, int(n)), nil
	}
	if !read {
		if err := f.fetch(r, from, words); err != nil {
			return dst, err
		}
	}
	return f.append(dst, from, words), nil
}

// findFirst looks for the first set slot of the range, first in words, the
// slots from pos on. When it is not there it reads ahead, and words is
// overwritten: everything in it was unset.
func (f *filled) findFirst(r *reader, words []uint64) error {
	from := f.pos
	for {
		for i, w := range words {
			if w != point.Unset {
				f.first, f.carry = from+int64(i), point.Float(w)
				return nil
			}
		}
		from += int64(len(words))
		from = min(max(from, f.Oldest), f.stop)
		if from == f.stop {
			f.first = f.stop
			return nil
		}
		words = r.Words[:min(int64(len(r.Words)), f.stop-from)]
		if err := f.fetch(r, from, words); err != nil {
			return err
		}
	}
}

func (f *filled) appendGap(dst block, n int) block {
	dst = dst.grow(n, f.Confidence)
	v := dst.v[len(dst.v)-n:]
	for i := range v {
		v[i] = f.carry
	}
	if f.Confidence {
		clear(dst.c[len(dst.c)-n:])
	}
	return dst
}

// append appends the values of words, the slots from from on, with gaps filled.
func (f *filled) append(dst block, from int64, words []uint64) block {
	n := len(words)
	dst = dst.grow(n, f.Confidence)
	v := dst.v[len(dst.v)-n:][:n]
	carry := f.carry
	for i := 0; i < n; {
		if k := kernel.Numbers(v[i:], words[i:]); k > 0 {
			f.of.take(from+int64(i), int64(k))
			i += k
			carry = v[i-1]
		}
		for ; i < n && words[i] == point.Unset; i++ {
			v[i] = carry
		}
	}
	f.carry = carry
	if f.Confidence {
		c := dst.c[len(dst.c)-n:][:n]
		for i, w := range words {
			c[i] = 0
			if w != point.Unset {
				c[i] = 1
			}
		}
	}
	return dst
}

// nothing is a series without values.
type nothing struct{ over }

func (n *nothing) next(x *executor, dst block) (block, error) {
	in, err := n.in.pull(x, x.scratch())
	if err == nil {
		x.release(in)
	}
	return dst, err
}

// oldStep computes from each value and the one before it, whatever time is between them. The
// first output repeats the second with confidence 0, so the length stays; a single value gives
// 0.
type oldStep struct {
	over
	fn      function.Op
	seconds float64 // of a step
	every   int64   // the inputs begin anew after so many; 0 = never

	came     int64 // inputs since the beginning
	seen     int64 // inputs in all
	last     float64
	lastSure float64
}

func (s *oldStep) next(x *executor, dst block) (block, error) {
	in, err := s.in.pull(x, x.scratch())
	if err != nil {
		return dst, err
	}
	for i, v := range in.v {
		sure := 0.0
		if s.Confidence {
			sure = in.c[i]
		}
		if s.came > 0 {
			change := changeOf(s.fn, s.last, v, s.seconds)
			if s.fn == function.Derivate {
				change = v - s.last
			}
			if s.came == 1 {
				dst = dst.put(change, 0, s.Confidence)
			}
			dst = dst.put(change, (s.lastSure+sure)/2, s.Confidence)
		}
		s.last, s.lastSure = v, sure
		s.came++
		s.seen++
		if s.came == s.every || s.seen == s.Values {
			if s.came == 1 {
				dst = dst.put(0, 0, s.Confidence)
			}
			s.came = 0
		}
	}
	x.release(in)
	return dst, nil
}

// oldFill changes the values whose confidence is 0. Their confidence stays.
type oldFill struct {
	over
	with string // previous, null, zero or linear

	begun bool
	last  float64 // value with a confidence above 0
	open  int64   // of linear: gap since then, not yet given out
	seen  int64   // inputs
}

func (f *oldFill) next(x *executor, dst block) (block, error) {
	in, err := f.in.pull(x, x.scratch())
	if err != nil {
		return dst, err
	}
	for i, v := range in.v {
		f.seen++
		switch {
		case in.c[i] > 0:
			dst, f.open = line(dst, f.last, v, f.open, f.Confidence), 0
			f.begun, f.last = true, v
			dst = dst.put(v, in.c[i], f.Confidence)
		case f.with == "linear" && f.begun:
			f.open++
		default:
			dst = dst.put(f.instead(v), 0, f.Confidence)
		}
	}
	x.release(in)
	if f.seen == f.Values {
		dst, f.open = line(dst, f.last, f.last, f.open, f.Confidence), 0
	}
	return dst, nil
}

// instead returns what stands in a gap; v is the value it was filled with.
func (f *oldFill) instead(v float64) float64 {
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

// oldCombine makes one series from several, one after the other in the order in which they are
// named. All of them take part; confidences have weights of their own.
type oldCombine struct {
	common
	queue
	*plan.Combine
}

func (z *oldCombine) next(x *executor, dst block) (block, error) {
	ready, err := z.queue.fill(x, z.all, z.Confidence)
	if err != nil {
		return dst, err
	}
	base, baseC := len(dst.v), len(dst.c)
	for i := range z.in {
		b := z.head(i, ready)
		for j := range b.c {
			b.c[j] *= z.Weights[i]
		}
		if i == 0 {
			dst.v, dst.c = append(dst.v, b.v...), append(dst.c, b.c...)
		} else {
			for j, v := range b.v {
				dst.v[base+j] = oldFold(z.Fn, dst.v[base+j], v)
			}
			kernel.AddTo(dst.c[baseC:], b.c)
		}
		z.drop(i, ready)
	}
	if z.Fn == function.Avg {
		for i := range dst.v[base:] {
			dst.v[base+i] /= float64(len(z.in))
		}
	}
	return dst, nil
}

func oldFold(fn function.Op, acc, v float64) float64 {
	switch fn {
	case function.Sum, function.Avg:
		return acc + v
	case function.Diff:
		return acc - v
	case function.Product:
		return acc * v
	case function.Quotient:
		return acc / divisor(v, true)
	case function.Min:
		if v < acc || acc != acc {
			return v
		}
	case function.Max:
		if v > acc || acc != acc {
			return v
		}
	}
	return acc
}

// oldCoverage returns how many slots were read for a node, and how many of them are set. A read
// that it takes twice counts twice.
func (x *executor) oldCoverage(of *plan.Node) (set, slots int64) {
	if l, ok := x.nodes[of.ID].(*leaf); ok {
		return l.of.set, l.Values
	}
	for _, in := range shownInputs(of) {
		a, b := x.oldCoverage(in)
		set, slots = set+a, slots+b
	}
	return set, slots
}
