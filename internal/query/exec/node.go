package exec

import (
	"time"

	"dalmatiner/internal/query/plan"
)

// block is a run of values with, where the plan needs them, the confidences
// of the same values. Both grow by appending.
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

func extend(s []float64, n int) []float64 {
	if len(s)+n > cap(s) {
		s = append(make([]float64, 0, max(2*cap(s), len(s)+n)), s...)
	}
	return s[:len(s)+n]
}

// node is what runs an operator of the plan: the operator itself, which never changes, and
// what it holds from one round to the next. It is pulled once per round by each of its
// consumers, through executor.pull.
type node interface {
	// next appends to dst the outputs that become complete in this round, in
	// order. With Confidence, it appends their confidences too.
	next(x *executor, dst block) (block, error)

	// coverage returns how many slots were read below the node, and how many
	// of them are set. Valid after the last round.
	coverage() (set, slots int64)

	shared() *common
}

// common is what all nodes have.
type common struct {
	*plan.Node

	took    time.Duration
	visited int  // by the walk of that number over what a result is computed from
	listed  bool // in the order of pulls
	round   int  // that buf belongs to; rounds count from 1
	buf     block
}

func (c *common) shared() *common { return c }

// over is what nodes of one input have, and what most of them do.
type over struct {
	common
	in node
}

func (o *over) coverage() (set, slots int64) { return o.in.coverage() }
