package exec

import (
	"fmt"

	"dalmatiner/internal/query/plan"
)

// build makes what runs every node of the plan.
func (x *executor) build() {
	leaves := make([]leaf, len(x.plan.Reads))
	windows := make([]window, countWindows(x.plan.Nodes))
	x.nodes = make([]node, len(x.plan.Nodes))
	x.leaves = make([]*leaf, 0, len(leaves))
	for i, n := range x.plan.Nodes {
		switch op := n.Op.(type) {
		case *plan.Read:
			l := &leaves[len(x.leaves)]
			l.open(x, x.common(n), op)
			x.leaves = append(x.leaves, l)
			x.nodes[i] = l
		case *plan.Window:
			o := x.over(n)
			if x.plan.Compat {
				x.nodes[i] = newOldWindow(o, op)
				continue
			}
			w := &windows[0]
			windows = windows[1:]
			w.open(o, op)
			x.nodes[i] = w
		default:
			x.nodes[i] = x.nodeOf(n)
		}
	}
	x.columns = make([]*columns, len(x.plan.Roots))
	x.roots = make([]input, len(x.plan.Roots))
	for i, r := range x.plan.Roots {
		x.roots[i] = input{node: x.nodes[r.Of.ID], skip: r.Of.Before}
		if r.Columns != nil {
			x.columns[i] = openColumns(r.Columns, r.Of.Values-r.Of.Before, x.plan.Confidence)
		} else if l, ok := x.roots[i].node.(*leaf); ok {
			l.shown = true
		}
	}
	x.openSpans()
	for _, l := range x.leaves {
		x.openSums(l)
	}
}

// common returns what all nodes have, of one.
func (x *executor) common(n *plan.Node) common {
	all := n.Values - (x.from-x.plan.Start)/n.Resolution + (x.end-x.plan.End)/n.Resolution
	return common{Node: n, all: all}
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

// over returns what nodes of one input have.
func (x *executor) over(n *plan.Node) over {
	return over{common: x.common(n), in: x.inputOf(n, n.Inputs[0])}
}

// nodeOf makes what runs any other node.
func (x *executor) nodeOf(n *plan.Node) node {
	if len(n.Inputs) > 1 {
		return x.listOf(n)
	}
	o := x.over(n)
	switch op := n.Op.(type) {
	case *plan.Scalar:
		return &scalar{o, op}
	case *plan.Map:
		return &apply{o, op}
	case *plan.Replace:
		return &replace{o, op}
	case *plan.Confidence:
		return &confidence{o}
	case *plan.Histogram:
		return &histogram{over: o, Histogram: op}
	case *plan.PickStatistic:
		return &statistic{over: o, of: o.in.node.(*histogram), index: op.Index}
	case *plan.Ewma:
		return &ewma{over: o, Ewma: op, blank: n.Before}
	case *plan.Nothing:
		return &nothing{o}
	}
	if x.plan.Compat {
		return x.oldNodeOf(o)
	}
	switch op := n.Op.(type) {
	case *plan.Step:
		return newStep(o, op.Fn)
	case *plan.Fill:
		return newFill(o, op.With)
	case *plan.MovingAvg:
		return newMoving(o, op.Size)
	}
	return x.listOf(n)
}

// oldNodeOf is nodeOf for what the original computes in another way.
func (x *executor) oldNodeOf(o over) node {
	switch op := o.Op.(type) {
	case *plan.Step:
		return &oldStep{over: o, fn: op.Fn, seconds: float64(o.Resolution) / 1000, every: o.Restart}
	case *plan.Fill:
		return &oldFill{over: o, with: op.With}
	case *plan.MovingAvg:
		return &oldMoving{over: o, size: op.Size}
	}
	return x.listOf(o.Node)
}

// listOf makes what runs a node that reads a list of others, which may be of one.
func (x *executor) listOf(n *plan.Node) node {
	c, in := x.common(n), make([]input, len(n.Inputs))
	for i, of := range n.Inputs {
		in[i] = x.inputOf(n, of)
	}
	switch op := n.Op.(type) {
	case *plan.Combine:
		if x.plan.Compat {
			return &oldCombine{common: c, Combine: op, queue: newQueue(x, in)}
		}
		return newCombine(x, c, in, op)
	case *plan.Across:
		return newAcross(x, c, in, op)
	case *plan.Pick:
		return &pick{common: c, fn: op.Fn, queue: newQueue(x, in)}
	}
	panic(fmt.Sprintf("query: operator %T", n.Op))
}
