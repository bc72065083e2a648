package plan

import "dalmatiner/internal/query/function"

// Step returns the length in ms of the steps that a result can be put together from: the
// values of a step depend on the slots in it, and on the value that each read carries into it.
// It is 0 where a value depends on more, or where something else than aggregates is read.
func (p *Plan) Step() int64 {
	if p.Compat || p.Older || p.Indexed || len(p.Ranks) > 0 || len(p.Missing) > 0 || p.Slotwise {
		return 0
	}
	for _, n := range p.Nodes {
		if !n.stepwise() {
			return 0
		}
	}
	step := int64(1)
	for _, r := range p.Roots {
		if r.Columns != nil {
			return 0
		}
		if step = commonMultiple(step, r.Of.Resolution); step > p.End-p.Start {
			return 0
		}
	}
	return step
}

// stepwise reports whether the outputs of a node in a step depend on nothing but the outputs
// of its inputs in that step.
func (n *Node) stepwise() bool {
	switch op := n.Op.(type) {
	case *Read:
		return op.Pushed()
	case *Scalar, *Map, *Replace, *Confidence:
		return true
	case *Combine:
		return op.Aligned
	case *Window:
		return op.Fn != function.Increase && op.Fn != function.Rate
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
