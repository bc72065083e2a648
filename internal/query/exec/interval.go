package exec

import (
	"dalmatiner/internal/query/plan"
)

// interval returns the most common distance in ms between neighbouring points
// of the reads below a node, 0 where no read has two points, and the finest
// resolution that they have.
func (x *executor) interval(of *plan.Node) (every, resolution int64) {
	var most int64
	see := func(l *leaf) {
		if d, k := l.spacing.Most(); k > most || k == most && k > 0 && d*l.Resolution < every {
			every, most = d*l.Resolution, k
		}
		if resolution == 0 || l.Resolution < resolution {
			resolution = l.Resolution
		}
	}
	if len(x.plan.Roots) == 1 && !x.picks { // all reads are below it, and lie side by side
		for _, l := range x.leaves {
			see(l)
		}
		return every, resolution
	}
	x.visit++
	var walk func(n *plan.Node)
	walk = func(n *plan.Node) {
		c := x.nodes[n.ID].shared()
		if c.visited == x.visit {
			return
		}
		c.visited = x.visit
		if l, ok := x.nodes[n.ID].(*leaf); ok {
			see(l)
		}
		inputs := n.Inputs
		if _, ok := n.Op.(*plan.Pick); ok {
			inputs = inputs[:1] // the other is what it is compared with
		}
		for _, in := range inputs {
			walk(in)
		}
	}
	walk(of)
	return every, resolution
}
