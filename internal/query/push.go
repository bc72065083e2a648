package query

import (
	"slices"

	"dalmatiner/internal/point"
)

// pushDown finds the leaves of which nothing but spans is wanted. Where the source
// is not to add up slots, spans do it by reads in the same order (chunk.Tree):
// float sums have the same bits.
func (p *planner) pushDown() {
	if _, ok := p.source.(Aggregator); !ok || p.opt.Compat {
		return // a read of the original begins anew every 100,000 points
	}
	for _, r := range p.roots {
		if _, ok := r.of.(*leaf); !ok || r.columns == nil || r.columns.step < minSpan {
			r.of.shared().slotwise = true
		}
	}
	for _, n := range p.ranks {
		n.shared().slotwise = true
	}
	for _, n := range p.order {
		if _, by := spanOf(n); by == nil {
			for _, in := range n.shared().inputs {
				in.shared().slotwise = true
			}
		}
	}
	p.pushColumns()
	for _, n := range p.order {
		w, by := spanOf(n)
		if by == nil {
			continue
		}
		l, ok := w.in.(*leaf)
		if !ok || l.slotwise || l.pos < 0 {
			continue
		}
		s := p.spansOf(l, w.size, 0)
		s.windows = append(s.windows, w)
		p.spanWindows++
		w.pushed = by
	}
}

// aggregator returns the source as one that adds up slots itself, or nil where it
// does not or is not to.
func (p *planner) aggregator() Aggregator {
	if p.opt.NoAggregates || p.older != nil {
		return nil
	}
	a, _ := p.source.(Aggregator)
	return a
}

// spansOf returns the spans of a leaf of that size, of which the first one lacks
// off slots.
func (p *planner) spansOf(l *leaf, size, off int64) *spans {
	i := slices.IndexFunc(l.spans, func(s *spans) bool { return s.size == size && s.off == off })
	if i >= 0 {
		return l.spans[i]
	}
	s := &spans{of: l, size: size, off: off, counts: len(l.spans) == 0}
	l.spans = append(l.spans, s)
	p.spans = append(p.spans, s)
	return s
}

// pushColumns lets the columns of series that are nothing but a read take the
// aggregates of their slots.
func (p *planner) pushColumns() {
	for _, r := range p.roots {
		l, ok := r.of.(*leaf)
		if !ok || r.columns == nil || r.columns.step < minSpan {
			continue
		}
		if l.slotwise || l.pos < 0 {
			l.slotwise = true // for the windows over it, too
			continue
		}
		r.columns.align(l.pos, l.n, int64(p.opt.Width))
		r.columns.from = p.spansOf(l, r.columns.step, r.columns.off)
		r.columns.from.columns = append(r.columns.from.columns, r.columns)
	}
}

// units are the slots of what the store keeps aggregates of, the largest first:
// 120, 10 and single chunks.
var units = [...]int64{120 * chunkSlots, 10 * chunkSlots, chunkSlots}

// align makes columns of slots begin at multiples of their length where that is
// at least two of a unit, so that they are whole units whose aggregates need no
// reading of what is below. There are fewer of them by it, by a third at most.
func (c *columns) align(first, n, width int64) {
	for _, u := range units {
		if c.step < 2*u {
			continue
		}
		c.unit, c.step = u, (c.step+u-1)/u*u
		for c.off = first % c.step; c.count(n) > width; c.off = first % c.step {
			c.step += u
		}
		return
	}
}

// start returns when the first of columns of so many slots begins, in unix ms
// of the query.
func (s *spans) start() int64 { return (s.of.pos-s.off)*s.of.res + s.of.shift }

// slotwise reads the slots of a column one by one: aggregates do not say what
// NaN among them does to its average.
func (s *spans) slotwise(x *reader, c *columns, from, slots int64) error {
	l := s.of
	carry := point.Float(s.carry)
	for slots > 0 {
		n := min(slots, MaxRead)
		words, values, sure := make([]uint64, n), make([]float64, n), make([]float64, n)
		cost, err := x.readWords(l, from, words)
		if err != nil {
			return l.failed(err)
		}
		s.cost.add(cost)
		for i, w := range words {
			if w != point.Unset {
				carry, sure[i] = point.Float(w), 1
			}
			values[i] = carry
		}
		c.add(values, sure)
		from, slots = from+n, slots-n
	}
	return nil
}
