package exec

import (
	"time"

	"dalmatiner/internal/query/plan"
)

// block is a run of values with, where the plan needs them, the confidences
// of the same values. Both grow by appending. NaN is a gap.
type block struct {
	v []float64
	c []float64
}

func (b block) empty() block { return block{v: b.v[:0], c: b.c[:0]} }

// take appends all of o to b and empties it.
func (b block) take(o *block) block {
	b.v, b.c = append(b.v, o.v...), append(b.c, o.c...)
	*o = o.empty()
	return b
}

// grow returns b longer by n undefined values, and as many confidences where
// conf is set.
func (b block) grow(n int, conf bool) block {
	b.v = extend(b.v, n)
	if conf {
		b.c = extend(b.c, n)
	}
	return b
}

// put appends a value, and its confidence where conf is set.
func (b block) put(v, sure float64, conf bool) block {
	b.v = append(b.v, v)
	if conf {
		b.c = append(b.c, sure)
	}
	return b
}

// cut takes n values away from position from on.
func (b block) cut(from, fromC, n int) block {
	b.v = append(b.v[:from], b.v[from+n:]...)
	if len(b.c) > fromC {
		b.c = append(b.c[:fromC], b.c[fromC+n:]...)
	}
	return b
}

func extend(s []float64, n int) []float64 {
	if len(s)+n > cap(s) {
		s = append(make([]float64, 0, max(2*cap(s), len(s)+n)), s...)
	}
	return s[:len(s)+n]
}

// node is what runs an operator of the plan: the operator itself, which never changes, and
// what it holds from one round to the next. It is pulled once per round by each of its
// consumers, through their inputs.
type node interface {
	// next appends to dst the outputs that become complete in this round, in
	// order. With Confidence, it appends their confidences too.
	next(x *executor, dst block) (block, error)

	shared() *common
}

// common is what all nodes have.
type common struct {
	*plan.Node

	took    time.Duration
	all     int64 // outputs of this run
	visited int   // by the walk of that number over what a result is computed from
	listed  bool  // in the order of pulls
	round   int   // that buf belongs to; rounds count from 1
	buf     block
}

func (c *common) shared() *common { return c }

// input is a node that is read, by one of its consumers.
type input struct {
	node
	skip int64 // outputs that come first and that the consumer does not want
	all  int64 // outputs that it gets in this run
}

// inputOf returns an input of a node.
func (x *executor) inputOf(of, in *plan.Node) input {
	n := x.nodes[in.ID]
	skip := in.Before - of.Takes(in)
	return input{node: n, skip: skip, all: n.shared().all - skip}
}

// pull appends what the consumer gets in this round to dst.
func (in *input) pull(x *executor, dst block) (block, error) {
	from, fromC := len(dst.v), len(dst.c)
	dst, err := x.pull(in.node, dst)
	if in.skip > 0 && err == nil {
		n := min(in.skip, int64(len(dst.v)-from))
		dst = dst.cut(from, fromC, int(n))
		in.skip -= n
	}
	return dst, err
}

// over is what nodes of one input have.
type over struct {
	common
	in input
}
