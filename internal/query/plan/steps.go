package plan

import "dalmatiner/internal/query/function"

// Step returns the length in ms of the steps that a result can be put together from: the
// values of a step depend on the slots in it and Reach before it, and on the value that each
// read carries into these. It is 0 where a value depends on more.
func (p *Plan) Step() int64 {
	if p.Compat || p.Older || p.Indexed || len(p.Ranks) > 0 || len(p.Missing) > 0 {
		return 0
	}
	for _, n := range p.Nodes {
		if !n.stepwise() {
			return 0
		}
	}
	step := int64(1)
	for _, r := range p.Roots {
		long := r.Of.Resolution
		if c := r.Columns; c != nil {
			if c.Unit > 0 {
				return 0 // they do not begin with the range
			}
			long *= c.Step
		}
		if step = commonMultiple(step, long); step > p.End-p.Start {
			return 0
		}
	}
	return step
}

// Reach returns how many ms of the begin of a range have values that later ranges do not have
// there: functions that look back find nothing before the range.
func (p *Plan) Reach() int64 {
	most, reach := int64(0), make([]int64, len(p.Nodes))
	for _, n := range p.Nodes { // inputs come first
		for _, in := range n.Inputs {
			reach[n.ID] = max(reach[n.ID], reach[in.ID])
		}
		switch op := n.Op.(type) {
		case *Step:
			reach[n.ID] += 2 * n.Resolution // the first value waits for the second one
		case *Window:
			if op.LooksBack() {
				reach[n.ID] += n.Resolution
			}
		}
		most = max(most, reach[n.ID])
	}
	return most
}

// LooksBack reports whether the value of a window depends on the last one before it.
func (w *Window) LooksBack() bool { return w.Fn == function.Increase || w.Fn == function.Rate }

// stepwise reports whether the outputs of a node in a step depend on nothing but the outputs
// of its inputs in that step, and on the last one before it.
func (n *Node) stepwise() bool {
	switch op := n.Op.(type) {
	case *Read, *Scalar, *Map, *Replace, *Confidence, *Window, *Step:
		return n.Restart == 0
	case *Fill:
		return op.With == "null" || op.With == "zero"
	case *Combine:
		return op.Aligned
	case *Across:
		for _, in := range n.Inputs {
			if in.Form != n.Inputs[0].Form {
				return false
			}
		}
		return true
	}
	return false
}

// commonMultiple returns the least one of two.
func commonMultiple(a, b int64) int64 {
	x, y := a, b
	for y != 0 {
		x, y = y, x%y
	}
	return a / x * b
}
