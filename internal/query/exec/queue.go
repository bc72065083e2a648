package exec

import (
	"dalmatiner/internal/query/plan"
)

// queue holds back what inputs complete early until all have come as far. An
// input that ends early repeats its last value with confidence 0.
type queue struct {
	in      []node
	pending []block // what came and was not used
	came    []int64 // values that came
	given   int64   // values used
}

func newQueue(in []node) queue {
	return queue{in: in, pending: make([]block, len(in)), came: make([]int64, len(in))}
}

// fill pulls all inputs and returns how many values all of them now have, of
// n in all. Inputs that have ended are padded.
func (q *queue) fill(x *executor, n int64, conf bool) (int, error) {
	ready := n - q.given
	for i, in := range q.in {
		before := len(q.pending[i].v)
		var err error
		if q.pending[i], err = x.pull(in, q.pending[i]); err != nil {
			return 0, err
		}
		q.came[i] += int64(len(q.pending[i].v) - before)
		if !conf {
			q.pending[i].c = q.pending[i].c[:0]
		}
		if q.came[i] < in.shared().Values {
			ready = min(ready, int64(len(q.pending[i].v)))
		}
	}
	for i := range q.in {
		q.pad(i, int(ready), conf)
	}
	q.given += ready
	return int(ready), nil
}

// pad extends what is pending of input i to n values. Only an input that has
// ended needs it.
func (q *queue) pad(i, n int, conf bool) {
	b := &q.pending[i]
	for len(b.v) < n {
		last := 0.0
		if len(b.v) > 0 {
			last = b.v[len(b.v)-1]
		}
		b.v = append(b.v, last)
		if conf {
			b.c = append(b.c, 0)
		}
	}
}

// head returns the first n pending values of input i. They are the queue's.
func (q *queue) head(i, n int) block {
	b := q.pending[i]
	b.v = b.v[:n]
	if len(b.c) > 0 {
		b.c = b.c[:n]
	}
	return b
}

// drop takes n used values from the pending ones. Of an input that has ended
// the last value stays, because padding repeats it.
func (q *queue) drop(i, n int) {
	b := &q.pending[i]
	ended := q.came[i] == q.in[i].shared().Values
	if ended && n == len(b.v) && n > 0 {
		n--
		if len(b.c) > 0 {
			b.c[n] = 0
		}
	}
	b.v = b.v[:copy(b.v, b.v[n:])]
	if len(b.c) > 0 {
		b.c = b.c[:copy(b.c, b.c[n:])]
	}
}

// coverage adds up what was read below all inputs.
func (q *queue) coverage() (set, slots int64) {
	for _, n := range q.in {
		a, b := n.coverage()
		set, slots = set+a, slots+b
	}
	return set, slots
}

// across makes one series from several where each output needs all inputs at
// once: a quantile, or the k-th greatest or least value. Its confidence is the
// mean of theirs.
type across struct {
	common
	queue
	*plan.Across
	column []float64 // values of one time
}

func (g *across) next(x *executor, dst block) (block, error) {
	ready, err := g.queue.fill(x, g.Values, g.Confidence)
	if err != nil {
		return dst, err
	}
	for j := range ready {
		g.column = g.column[:0]
		sure := 0.0
		for i := range g.in {
			b := &g.pending[i]
			if v := b.v[j]; v == v {
				g.column = append(g.column, v)
			}
			if g.Confidence {
				sure += b.c[j]
			}
		}
		dst.v = append(dst.v, g.value())
		if g.Confidence {
			dst.c = append(dst.c, sure/float64(len(g.in)))
		}
	}
	for i := range g.in {
		g.drop(i, ready)
	}
	return dst, nil
}
