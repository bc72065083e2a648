package exec

import (
	"cmp"
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
	h.Ranges, h.Why = slices.Clone(h.Ranges), slices.Clone(h.Why) // results that share the read add to them
	for i := range h.Ranges {
		for side := range h.Ranges[i] {
			h.Ranges[i][side] = h.Ranges[i][side]*l.Resolution + l.Shift
		}
	}
	return &h
}

// unknown returns those of all reads that a node is computed from, nil without. It looks at these
// reads only, not at all of the query: there is a call for each of its series.
func (x *executor) unknown(of *plan.Node) *holes.List {
	x.visit++
	var holed []*leaf
	var walk func(n *plan.Node)
	walk = func(n *plan.Node) {
		c := x.nodes[n.ID].shared()
		if c.visited == x.visit {
			return
		}
		c.visited = x.visit
		if l, ok := x.nodes[n.ID].(*leaf); ok && l.holes.Slots > 0 {
			holed = append(holed, l)
		}
		for _, in := range n.Inputs {
			walk(in)
		}
	}
	walk(of)
	// In the order of the query, whatever order they are combined in.
	slices.SortFunc(holed, func(a, b *leaf) int { return cmp.Compare(a.ID, b.ID) })
	if len(holed) == 0 {
		return nil
	}
	all := holed[0].unknown()
	for _, l := range holed[1:] {
		all.Join(l.unknown())
	}
	return all
}
