package exec

import (
	"fmt"
	"slices"

	"dalmatiner/internal/query/plan"
)

// build makes what runs every node of the plan.
func (x *executor) build() {
	leaves := make([]leaf, len(x.plan.Reads))
	windows := make([]window, countWindows(x.plan.Nodes))
	moved := x.movedReads()
	x.nodes = make([]node, len(x.plan.Nodes))
	x.leaves = make([]*leaf, 0, len(leaves))
	for i, n := range x.plan.Nodes {
		switch op := n.Op.(type) {
		case *plan.Read:
			l := &leaves[len(x.leaves)]
			if moved != nil {
				op = &moved[len(x.leaves)]
			}
			l.open(n, op)
			x.leaves = append(x.leaves, l)
			x.nodes[i] = l
		case *plan.Window:
			w := &windows[0]
			windows = windows[1:]
			w.open(over{common: common{Node: n}, in: x.nodes[n.Inputs[0].ID]}, op)
			x.nodes[i] = w
		default:
			x.nodes[i] = x.nodeOf(n)
		}
	}
	x.columns = make([]*columns, len(x.plan.Roots))
	for i, r := range x.plan.Roots {
		if r.Columns != nil {
			x.columns[i] = openColumns(r.Columns, r.Of.Values, x.plan.Confidence)
		}
	}
	x.openSpans()
	for _, l := range x.leaves {
		x.openSums(l)
	}
}

// movedReads returns the reads of the plan where its run has a later range; else nil. Nothing
// before that range has outlived a bucket.
func (x *executor) movedReads() []plan.Read {
	if x.known == nil {
		return nil
	}
	by := x.plan.Start - x.known.plan.Start
	moved := make([]plan.Read, len(x.plan.Reads))
	for i, n := range x.plan.Reads {
		moved[i] = *n.Op.(*plan.Read)
		r := &moved[i]
		r.From, r.Past = r.From+by/n.Resolution, r.Past+by/n.Resolution
		r.Sums = slices.Clone(r.Sums)
		for j := range r.Sums {
			s := &r.Sums[j]
			s.From, s.Until = s.From+by/n.Resolution, s.Until+by/n.Resolution
		}
	}
	return moved
}

// countWindows returns how many of the nodes are windows. With the leaves they are most
// of what a query over many series has, and made in one go.
func countWindows(nodes []*plan.Node) (n int) {
	for _, node := range nodes {
		if _, ok := node.Op.(*plan.Window); ok {
			n++
		}
	}
	return n
}

// nodeOf makes what runs any other node.
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
		x.picks = true
		return &pick{common: c, fn: op.Fn, queue: newQueue(in)}
	}
	panic(fmt.Sprintf("query: operator %T", c.Op))
}
