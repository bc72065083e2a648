package exec

import (
	"fmt"
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

// build makes what runs every node of the plan.
func (x *executor) build() {
	leaves := make([]leaf, len(x.plan.Reads))
	x.nodes = make([]node, len(x.plan.Nodes))
	x.leaves = make([]*leaf, 0, len(leaves))
	for i, n := range x.plan.Nodes {
		if read, ok := n.Op.(*plan.Read); ok {
			l := &leaves[len(x.leaves)]
			l.open(n, read)
			x.leaves = append(x.leaves, l)
			x.nodes[i] = l
		} else {
			x.nodes[i] = x.nodeOf(n)
		}
	}
	x.columns = make([]*columns, len(x.plan.Roots))
	for i, r := range x.plan.Roots {
		if r.Columns != nil {
			x.columns[i] = openColumns(r.Columns, r.Of.Values, x.plan.Confidence)
		}
	}
	for _, s := range x.plan.Spans {
		x.spans = append(x.spans, x.openSpans(s))
	}
	for _, l := range x.leaves {
		x.openSums(l)
	}
}

// nodeOf makes what runs a node that reads others.
func (x *executor) nodeOf(n *plan.Node) node {
	c := common{Node: n}
	if len(n.Inputs) > 1 {
		return x.listOf(c)
	}
	o := over{common: c, in: x.nodes[n.Inputs[0].ID]}
	switch op := n.Op.(type) {
	case *plan.Scalar:
		return &scalar{o, op}
	case *plan.Map:
		return &apply{o, op}
	case *plan.Replace:
		return &replace{o, op}
	case *plan.Step:
		return &step{over: o, fn: op.Fn, seconds: float64(n.Resolution) / 1000, every: n.Restart}
	case *plan.Fill:
		return &fill{over: o, with: op.With}
	case *plan.Nothing:
		return &nothing{o}
	case *plan.Confidence:
		return &confidence{o}
	case *plan.MovingAvg:
		return &moving{over: o, size: op.Size}
	case *plan.Ewma:
		return &ewma{over: o, alpha: op.Alpha}
	case *plan.Window:
		return openWindow(o, op)
	case *plan.Histogram:
		return &histogram{over: o, Histogram: op}
	case *plan.PickStatistic:
		return &statistic{over: o, of: o.in.(*histogram), index: op.Index}
	}
	return x.listOf(c)
}

// listOf makes what runs a node that reads a list of others, which may be of one.
func (x *executor) listOf(c common) node {
	in := make([]node, len(c.Inputs))
	for i, n := range c.Inputs {
		in[i] = x.nodes[n.ID]
	}
	switch op := c.Op.(type) {
	case *plan.Combine:
		z := &combine{common: c, Combine: op, queue: queue{in: in}}
		if !op.Aligned {
			z.queue = newQueue(in)
		}
		return z
	case *plan.Across:
		return &across{common: c, Across: op, queue: newQueue(in)}
	case *plan.Pick:
		return &pick{common: c, fn: op.Fn, queue: newQueue(in)}
	}
	panic(fmt.Sprintf("query: operator %T", c.Op))
}
