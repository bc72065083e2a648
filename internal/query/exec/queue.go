package exec

import (
	"math"

	"dalmatiner/internal/query/hold"
	"dalmatiner/internal/query/plan"
)

// queue holds back what inputs complete early until all have come as far. An input that ends
// early has gaps behind its end; with compat it repeats its last value with confidence 0.
type queue struct {
	in      []input
	repeats bool    // with compat
	pending []block // what came and was not used
	came    []int64 // values that came
	given   int64   // values used
}

func newQueue(x *executor, in []input) queue {
	return queue{
		in:      in,
		repeats: x.plan.Compat,
		pending: make([]block, len(in)),
		came:    make([]int64, len(in)),
	}
}

// fill pulls all inputs and returns how many values all of them now have, of
// n in all. Inputs that have ended are padded.
func (q *queue) fill(x *executor, n int64, conf bool) (int, error) {
	ready := n - q.given
	for i := range q.in {
		in := &q.in[i]
		before := len(q.pending[i].v)
		var err error
		if q.pending[i], err = in.pull(x, q.pending[i]); err != nil {
			return 0, err
		}
		q.came[i] += int64(len(q.pending[i].v) - before)
		if !conf {
			q.pending[i].c = q.pending[i].c[:0]
		}
		if q.came[i] < in.all {
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
		last := math.NaN()
		if q.repeats {
			if last = 0; len(b.v) > 0 {
				last = b.v[len(b.v)-1]
			}
		}
		*b = b.put(last, 0, conf)
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

// drop takes n used values from the pending ones. With compat the last value of an input that
// has ended stays, because padding repeats it.
func (q *queue) drop(i, n int) {
	b := &q.pending[i]
	ended := q.came[i] == q.in[i].all
	if q.repeats && ended && n == len(b.v) && n > 0 {
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

// across makes one series from several where each output needs all inputs at once: a quantile,
// or the k-th greatest or least value. Its confidence is the mean of theirs.
type across struct {
	common
	queue
	*plan.Across
	held   []hold.Series // of each input; nil with compat
	column []float64     // values of one time
	own    []bool        // whether an input has a value of its own there
}

func newAcross(x *executor, c common, in []input, op *plan.Across) *across {
	g := &across{common: c, Across: op, queue: newQueue(x, in)}
	if !x.plan.Compat {
		g.held = make([]hold.Series, len(in))
	}
	return g
}

func (g *across) next(x *executor, dst block) (block, error) {
	ready, err := g.queue.fill(x, g.all, g.Confidence)
	if err != nil {
		return dst, err
	}
	g.own = append(g.own[:0], make([]bool, ready)...)
	for i := range g.held {
		b := g.head(i, ready)
		for j, v := range b.v {
			g.own[j] = g.own[j] || v == v
		}
		g.held[i].Fill(b.v, b.c, g.Resolution)
	}
	for j := range ready {
		v, sure := g.at(j)
		if g.held != nil && !g.own[j] {
			v, sure = math.NaN(), 0
		}
		dst = dst.put(v, sure, g.Confidence)
	}
	for i := range g.in {
		g.drop(i, ready)
	}
	return dst, nil
}

// at returns what the inputs have at position j of what is pending, and the mean of the
// confidences of those that take part.
func (g *across) at(j int) (v, sure float64) {
	g.column = g.column[:0]
	for i := range g.in {
		b := &g.pending[i]
		v := b.v[j]
		if v == v {
			g.column = append(g.column, v)
		}
		if g.Confidence && (v == v || g.held == nil) {
			sure += b.c[j]
		}
	}
	n := len(g.column)
	if g.held == nil {
		n = len(g.in)
	}
	return g.value(), sure / float64(max(n, 1))
}
