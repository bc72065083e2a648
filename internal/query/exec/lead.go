package exec

import (
	"dalmatiner/internal/query/plan"
)

// lead returns how many outputs of a node stand for times before the first
// point of all that it is computed from: n where there is no point. A function
// whose value is known without a point has none: the confidence, counts of
// slots, and what is asked to take the place of gaps. It is valid once the node
// has given an output.
func (x *executor) lead(n node) int64 {
	c := n.shared()
	switch n := n.(type) {
	case *leaf:
		first := n.firstSet()
		if first == unknown {
			return 0
		}
		return min(first-n.From, n.Values)
	case *confidence, *replace, *nothing:
		return 0
	case *fill:
		if n.with != "null" {
			return 0
		}
	case *window:
		if _, ok := n.by.(*counted); ok {
			return 0
		}
		return shortened(x.lead(n.in), n.in.shared().Values, n.Size, c.Values)
	case *histogram:
		return shortened(x.lead(n.in), n.in.shared().Values, n.Size, c.Values)
	case *combine:
		return x.leadOfAny(n.in, c.Values)
	case *across:
		return x.leadOfAny(n.in, c.Values)
	}
	return x.lead(x.nodes[c.Inputs[0].ID]) // of pick, the other is what it is compared with
}

// firstSet returns the first set slot, unknown before it was looked for. Spans of
// several sizes may find it in different rounds.
func (l *leaf) firstSet() int64 {
	for _, s := range l.spans {
		if s.begun {
			return s.first
		}
	}
	return l.first
}

// shortened returns the lead of windows of size inputs, n of them in all: a
// window with one point in it is known.
func shortened(of, inputs, size, n int64) int64 {
	if of == inputs {
		return n
	}
	return min(of/size, n)
}

// leadOfAny returns the lead of what is known where one of the inputs is.
func (x *executor) leadOfAny(inputs []node, n int64) int64 {
	least := n
	for _, in := range inputs {
		if l := x.lead(in); l < in.shared().Values {
			least = min(least, l)
		}
		if least == 0 {
			break
		}
	}
	return least
}

// leadOf returns how many values of a result are not there because they are before
// its first point: none where gaps are to be filled.
func (x *executor) leadOf(of *plan.Node) int64 {
	if x.plan.Compat || x.plan.Fill {
		return 0
	}
	return x.lead(x.nodes[of.ID])
}
