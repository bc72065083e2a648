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
	// results that share the read add to them
	h.Ranges, h.Why = slices.Clone(h.Ranges), slices.Clone(h.Why)
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
	all := func(n *plan.Node) []*plan.Node { return n.Inputs }
	holed := slices.DeleteFunc(x.readsOf(of, all), func(l *leaf) bool { return l.holes.Slots == 0 })
	// In the order of the query, whatever order they are combined in.
	slices.SortFunc(holed, func(a, b *leaf) int { return cmp.Compare(a.ID, b.ID) })
	if len(holed) == 0 {
		return nil
	}
	list := holed[0].unknown()
	for _, l := range holed[1:] {
		list.Join(l.unknown())
	}
	return list
}
