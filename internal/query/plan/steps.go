package plan

// Step returns the length in ms of the steps that a result can be put together from: the
// values of a step depend on the slots in it and on those less than Before ahead of it. It is 0
// where a value depends on more.
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

// stepwise reports whether the outputs of a node in a step depend on nothing but the outputs
// of its inputs in that step, and on some before it.
func (n *Node) stepwise() bool {
	switch op := n.Op.(type) {
	case *Window:
		return op.Bounds == nil
	case *Read, *Scalar, *Map, *Replace, *Confidence, *Step, *MovingAvg, *Across:
		return true
	case *Fill:
		return op.With == "null" || op.With == "zero"
	case *Combine:
		return op.Aligned
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
