package plan

import (
	"slices"
)

// minSpan is the fewest slots of a span for which aggregates are asked for:
// they take 13 times the memory of a word, and per span the time of several.
const minSpan = 16

// pushDown finds the reads of which nothing but spans is wanted, and lets the source
// add them up. Sums of others are added up as their slots are read, in the same order
// (sumtree.Tree): the bits of a float sum depend on the slots alone.
func (g *graph) pushDown() {
	if g.opt.Compat {
		return // a read of the original begins anew every 100,000 points
	}
	g.markSlotwise()
	for i, r := range g.out.Roots {
		if read, ok := r.Of.Op.(*Read); ok && r.Columns != nil {
			r.Columns.align(read.From, r.Of.Values-r.Of.Before, int64(g.opt.Width))
			g.addColumns(i, read)
		}
	}
	for _, n := range g.out.Nodes {
		if w, ok := n.Op.(*Window); ok {
			if read, ok := n.Inputs[0].Op.(*Read); ok {
				g.addWindow(n, w, read)
			}
		}
	}
	for !g.spareTogether() {
	}
}

// spareTogether has the inputs of a combination give their spans before the range alike: with the
// first ones in the range, or each when it is complete. It reports whether they do.
func (g *graph) spareTogether() bool {
	for _, n := range g.out.Nodes {
		if !n.holds() {
			continue
		}
		spared := 0
		for _, in := range n.Inputs {
			if s := in.spans(); s != nil && s.Spared {
				spared++
			}
		}
		if spared == 0 || spared == len(n.Inputs) {
			continue
		}
		for _, in := range n.Inputs {
			if s := in.spans(); s != nil {
				s.Spared = false
			}
		}
		return false
	}
	return true
}

// spans returns the spans that a window takes, nil where it takes none.
func (n *Node) spans() *Spans {
	w, ok := n.Op.(*Window)
	if !ok || !w.Spans {
		return nil
	}
	for _, s := range n.Inputs[0].Op.(*Read).Spans {
		if slices.Contains(s.Windows, n) {
			return s
		}
	}
	return nil
}

// markSlotwise marks what is wanted by others than windows over spans, and columns.
func (g *graph) markSlotwise() {
	for _, r := range g.out.Roots {
		if _, ok := r.Of.Op.(*Read); !ok || r.Columns == nil || r.Columns.Step < minSpan {
			r.Of.slotwise = true
		}
	}
	for _, n := range g.out.Ranks {
		n.slotwise = true
	}
	for _, n := range g.out.Nodes {
		if w, ok := n.Op.(*Window); !ok || !w.overSpans() {
			for _, in := range n.Inputs {
				in.slotwise = true
			}
		}
	}
}

// overSpans reports whether aggregates are asked for where the window stands over a read.
func (w *Window) overSpans() bool { return w.Size >= minSpan && w.Fn.OverSpans() }

// pushes reports whether the source is to add up a read.
func (g *graph) pushes(n *Node) bool {
	return g.offers.Aggregates && !g.opt.NoAggregates && !g.opt.Older && !n.slotwise
}

// addColumns lets the columns of a read take the aggregates of its slots, or else
// the sums.
func (g *graph) addColumns(root int, read *Read) {
	n, c := g.out.Roots[root].Of, g.out.Roots[root].Columns
	if !g.pushes(n) {
		read.Sums = append(read.Sums, Sum{Size: c.Step, Off: c.Off, Root: root})
		return
	}
	c.Spans = g.spansOf(n, read, Spans{Size: c.Step, Off: c.Off})
	c.Spans.Roots = append(c.Spans.Roots, root)
}

// addWindow lets a window over a read take the aggregates of its slots, or else
// the sums, if it is of a kind that does.
func (g *graph) addWindow(n *Node, w *Window, read *Read) {
	if w.overSpans() && g.pushes(n.Inputs[0]) {
		s := g.spansOf(n.Inputs[0], read, Spans{
			Size:   w.Size,
			Bounds: w.Bounds,
			Before: n.Before * w.Size,
			Spared: true,
		})
		s.Spared = s.Spared && !n.firm && !w.LooksBack() // whose span may have a point and no value
		s.Windows = append(s.Windows, n)
		w.Spans = true
		g.bill.spanWindows++
	} else if w.Fn.AddsUp() || w.LooksBack() {
		read.Sums = append(read.Sums, Sum{
			Size:   w.Size,
			Bounds: w.Bounds,
			Before: n.Before * w.Size,
			Window: n,
		})
		w.Sums = true
		if w.Size < minSpan {
			g.bill.buffers++
		} else {
			g.bill.spanWindows++
		}
	}
}

// spansOf returns the spans of a read of that size, which begin where the ones asked for do.
func (g *graph) spansOf(n *Node, read *Read, of Spans) *Spans {
	i := slices.IndexFunc(read.Spans, func(s *Spans) bool {
		return s.Size == of.Size && s.Before == of.Before && s.Off == of.Off &&
			sameBounds(s.Bounds, of.Bounds)
	})
	if i >= 0 {
		return read.Spans[i]
	}
	s := nextOf(&g.spare.spans, len(g.out.Spans))
	of.Read, of.Counts = n, len(read.Spans) == 0
	*s = of
	read.Spans = append(read.Spans, s)
	g.out.Spans = append(g.out.Spans, s)
	return s
}
