package exec

import (
	"slices"

	"dalmatiner/internal/query/holes"
	"dalmatiner/internal/query/plan"
)

// unknown returns the unknown slots of a read in the times of the result, nil without.
func (l *leaf) unknown() *holes.List {
	if l.holes.Slots == 0 {
		return nil
	}
	h := l.holes.List
	h.Ranges = slices.Clone(h.Ranges)
	for i := range h.Ranges {
		for side := range h.Ranges[i] {
			h.Ranges[i][side] = h.Ranges[i][side]*l.Resolution + l.Shift
		}
	}
	return &h
}

// unknown returns those of all reads that a node is computed from, nil without.
func (x *executor) unknown(of *plan.Node) *holes.List {
	if !slices.ContainsFunc(x.leaves, func(l *leaf) bool { return l.holes.Slots > 0 }) {
		return nil
	}
	x.visit++
	var walk func(n *plan.Node)
	walk = func(n *plan.Node) {
		c := x.nodes[n.ID].shared()
		if c.visited == x.visit {
			return
		}
		c.visited = x.visit
		for _, in := range n.Inputs {
			walk(in)
		}
	}
	walk(of)
	var all *holes.List
	for _, l := range x.leaves { // in the order of the query, whatever order they are combined in
		if l.visited != x.visit {
			continue
		}
		switch h := l.unknown(); {
		case all == nil:
			all = h
		case h != nil:
			all.Join(h)
		}
	}
	return all
}
