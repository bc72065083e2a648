package query

// lead returns how many outputs of a node stand for times before the first
// point of all that it is computed from: n where there is no point. A function
// whose value is known without a point has none: the confidence, counts of
// slots, and what is asked to take the place of gaps. It is valid once the node
// has given an output.
func lead(n node) int64 {
	c := n.shared()
	switch n := n.(type) {
	case *leaf:
		first := n.firstSet()
		if first == unknown {
			return 0
		}
		return min(first, n.end) - (n.end - n.n)
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
		return shortened(lead(n.in), n.in.shared().n, n.size, c.n)
	case *histogram:
		return shortened(lead(n.in), n.in.shared().n, n.size, c.n)
	case *combine:
		return leadOfAny(n.in, c.n)
	case *gather:
		return leadOfAny(n.in, c.n)
	}
	if len(c.inputs) == 0 {
		return 0
	}
	return lead(c.inputs[0]) // of pick, the other is what it is compared with
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
func leadOfAny(inputs []node, n int64) int64 {
	least := n
	for _, in := range inputs {
		if l := lead(in); l < in.shared().n {
			least = min(least, l)
		}
	}
	return least
}

// lead returns how many values of a result are not there because they are before
// its first point: none where gaps are to be filled.
func (p *planner) lead(of node) int64 {
	if p.opt.Compat || p.opt.Fill {
		return 0
	}
	return lead(of)
}
