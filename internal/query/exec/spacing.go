package exec

import (
	"dalmatiner/internal/query/plan"
)

// spacing finds the most common distance between neighbouring points of a
// series in slots. It keeps the counts of a few distances: a new one takes the
// place of one that all others have worn down (Misra and Gries), so what most
// points have stays, however many distances there are.
type spacing struct {
	counts [spacings]struct{ distance, n int64 }
	last   int64 // slot of the last point, -1 before the first
}

const spacings = 8

// points takes n set slots in a row, the first of which is slot.
func (s *spacing) points(slot, n int64) {
	s.link(slot)
	s.add(1, n-1)
	s.last = slot + n - 1
}

// span takes n set slots from first to last of which only the ends are known:
// they count with their mean distance.
func (s *spacing) span(first, last, n int64) {
	s.link(first)
	if n > 1 {
		s.add((last-first+(n-1)/2)/(n-1), n-1)
	}
	s.last = last
}

func (s *spacing) link(slot int64) {
	if s.last >= 0 {
		s.add(slot-s.last, 1)
	}
}

func (s *spacing) add(distance, n int64) {
	if n <= 0 {
		return
	}
	least := 0
	for i := range s.counts {
		switch c := &s.counts[i]; {
		case c.distance == distance:
			c.n += n
			return
		case c.n < s.counts[least].n:
			least = i
		}
	}
	worn := min(n, s.counts[least].n)
	if worn > 0 {
		for i := range s.counts {
			s.counts[i].n -= worn
		}
		n -= worn
	}
	if n > 0 {
		s.counts[least].distance, s.counts[least].n = distance, n
	}
}

// most returns the most common distance, the shorter of two that are equally
// common, and how many points have it; 0 with fewer than two points.
func (s *spacing) most() (distance, n int64) {
	for _, c := range s.counts {
		if c.n > n || c.n == n && n > 0 && c.distance < distance {
			distance, n = c.distance, c.n
		}
	}
	return distance, n
}

// interval returns the most common distance in ms between neighbouring points
// of the reads below a node, 0 where no read has two points, and the finest
// resolution that they have.
func (x *executor) interval(of *plan.Node) (every, resolution int64) {
	x.visit++
	var most int64
	var walk func(n *plan.Node)
	walk = func(n *plan.Node) {
		c := x.nodes[n.ID].shared()
		if c.visited == x.visit {
			return
		}
		c.visited = x.visit
		if l, ok := x.nodes[n.ID].(*leaf); ok {
			if d, k := l.spacing.most(); k > most || k == most && k > 0 && d*l.Resolution < every {
				every, most = d*l.Resolution, k
			}
			if resolution == 0 || l.Resolution < resolution {
				resolution = l.Resolution
			}
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
