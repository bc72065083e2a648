package query

import (
	"slices"

	"dalmatiner/internal/chunk"
	"dalmatiner/internal/point"
)

// pushDown finds the leaves of which nothing but spans is wanted, and lets the source
// add them up. Sums of others are added up as their slots are read, in the same order
// (chunk.Tree): the bits of a float sum depend on the slots alone.
func (p *planner) pushDown() {
	if p.opt.Compat {
		return // a read of the original begins anew every 100,000 points
	}
	p.adder = p.aggregator()
	p.markSlotwise()
	for _, r := range p.roots {
		if l, ok := r.of.(*leaf); ok && r.columns != nil {
			r.columns.align(l.pos, l.n, int64(p.opt.Width))
			p.addColumns(l, r.columns)
		}
	}
	for _, n := range p.order {
		if w, ok := n.(*window); ok {
			if l, ok := w.in.(*leaf); ok {
				p.addWindow(l, w)
			}
		}
	}
}

// markSlotwise marks what is wanted by others than windows over spans, and columns.
func (p *planner) markSlotwise() {
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
}

// pushes reports whether the source is to add up a leaf.
func (p *planner) pushes(l *leaf) bool { return p.adder != nil && !l.slotwise }

// addColumns lets the columns of a leaf take the aggregates of its slots, or else
// the sums.
func (p *planner) addColumns(l *leaf, c *columns) {
	if !p.pushes(l) {
		s := sums{size: c.step, from: l.pos, until: l.pos + c.step - c.off, column: c, fill: p.opt.Fill}
		s.total.Numbers = true
		l.sums = append(l.sums, s)
		return
	}
	c.from = p.spansOf(l, c.step, c.off)
	c.from.columns = append(c.from.columns, c)
}

// addWindow lets a window over a leaf take the aggregates of its slots, or else
// the sums, if it is of a kind that does.
func (p *planner) addWindow(l *leaf, w *window) {
	if _, by := spanOf(w); by != nil && p.pushes(l) {
		s := p.spansOf(l, w.size, 0)
		s.windows = append(s.windows, w)
		p.spanWindows++
		w.pushed = by
	} else if by, ok := w.by.(*total); ok {
		w.summed = true
		l.sums = append(l.sums, sums{size: w.size, from: l.pos, until: l.pos + w.size, window: w, by: by, fill: true})
		if w.size < minSpan {
			p.buffers++
		} else {
			p.spanWindows++
		}
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

// units are the slots of what the store keeps aggregates of, the largest first:
// 120, 10 and single chunks.
var units = [...]int64{120 * chunkSlots, 10 * chunkSlots, chunkSlots}

// align makes columns of slots begin at multiples of their length where that is
// at least two of a unit, so that they are whole units whose aggregates need no
// reading of what is below. There are fewer of them by it, by a third at most. A
// range that begins before 1970 is left as it is: two columns would have to meet there.
func (c *columns) align(first, n, width int64) {
	if first < 0 {
		return
	}
	for _, u := range units {
		if c.step < 2*u {
			continue
		}
		c.unit, c.step = u, (c.step+u-1)/u*u
		for c.off = first % c.step; c.count(n) > width; c.off = first % c.step {
			c.step += u
		}
		c.first = first - c.off
		return
	}
}

// slotwise reads the slots of a column one by one: aggregates do not say what
// NaN among them does to its average.
func (s *spans) slotwise(x *reader, c *columns, from, slots int64) error {
	l := s.of
	total := chunk.Total{Numbers: true}
	word, start := s.carry, from
	if c.left > 0 {
		word = point.Unset // what is before the first point does not count
	}
	carry := point.Float(s.carry)
	for past := from + slots; from < past; {
		n := min(past-from, MaxRead)
		words, values, sure := make([]uint64, n), make([]float64, n), make([]float64, n)
		if skip := min(max(l.oldest-from, 0), n); skip < n {
			cost, err := x.readWords(l, from+skip, words[skip:])
			if err != nil {
				return l.failed(err)
			}
			s.cost.Add(cost)
		}
		total.Add(words, from)
		for i, w := range words {
			if w != point.Unset {
				carry, sure[i] = point.Float(w), 1
			}
			values[i] = carry
		}
		if from += n; from == past {
			sum, _ := total.End(word, start, past)
			c.sums = append(c.sums, sum.Float64())
		}
		c.add(values, sure)
	}
	return nil
}
