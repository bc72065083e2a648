package plan

import (
	"slices"
)

// minSpan is the fewest slots of a span for which aggregates are asked for:
// they take 13 times the memory of a word, and per span the time of several.
const minSpan = 16

// layout decides how a whole graph is run: what is read by spans, and in which rounds.
type layout struct{ *graph }

// pushDown finds the reads of which nothing but spans is wanted, and lets the source
// add them up. Sums of others are added up as their slots are read, in the same order
// (sumtree.Tree): the bits of a float sum depend on the slots alone.
func (l *layout) pushDown() {
	if l.opt.Compat {
		return // a read of the original begins anew every 100,000 points
	}
	l.markSlotwise()
	for i, r := range l.out.Roots {
		if read, ok := r.Of.Op.(*Read); ok && r.Columns != nil {
			r.Columns.align(read.From, r.Of.Values-r.Of.Before, int64(l.opt.Width))
			l.addColumns(i, read)
		}
	}
	for _, n := range l.out.Nodes {
		if w, ok := n.Op.(*Window); ok {
			if read, ok := n.Inputs[0].Op.(*Read); ok {
				l.addWindow(n, w, read)
			}
		}
	}
	for !l.spareTogether() {
	}
}

// spareTogether has the inputs of a combination give their spans before the range alike: with the
// first ones in the range, or each when it is complete. It reports whether they do.
func (l *layout) spareTogether() bool {
	for _, n := range l.out.Nodes {
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
func (l *layout) markSlotwise() {
	for _, r := range l.out.Roots {
		if _, ok := r.Of.Op.(*Read); !ok || r.Columns == nil || r.Columns.Step < minSpan {
			r.Of.slotwise = true
		}
	}
	for _, n := range l.out.Ranks {
		n.slotwise = true
	}
	for _, n := range l.out.Nodes {
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
func (l *layout) pushes(n *Node) bool {
	return l.offers.Aggregates && !l.opt.NoAggregates && !l.opt.Older && !n.slotwise
}

// addColumns lets the columns of a read take the aggregates of its slots, or else
// the sums.
func (l *layout) addColumns(root int, read *Read) {
	n, c := l.out.Roots[root].Of, l.out.Roots[root].Columns
	if !l.pushes(n) {
		read.Sums = append(read.Sums, Sum{Size: c.Step, Off: c.Off, Root: root})
		return
	}
	c.Spans = l.spansOf(n, read, Spans{Size: c.Step, Off: c.Off})
	c.Spans.Roots = append(c.Spans.Roots, root)
}

// addWindow lets a window over a read take the aggregates of its slots, or else
// the sums, if it is of a kind that does.
func (l *layout) addWindow(n *Node, w *Window, read *Read) {
	if w.overSpans() && l.pushes(n.Inputs[0]) {
		s := l.spansOf(n.Inputs[0], read, Spans{
			Size:   w.Size,
			Bounds: w.Bounds,
			Before: n.Before * w.Size,
			Spared: true,
		})
		s.Spared = s.Spared && !n.firm && !w.LooksBack() // whose span may have a point and no value
		s.Windows = append(s.Windows, n)
		w.Spans = true
		l.bill.spanWindows++
	} else if w.Fn.AddsUp() || w.LooksBack() {
		read.Sums = append(read.Sums, Sum{
			Size:   w.Size,
			Bounds: w.Bounds,
			Before: n.Before * w.Size,
			Window: n,
		})
		w.Sums = true
		if w.Size < minSpan {
			l.bill.buffers++
		} else {
			l.bill.spanWindows++
		}
	}
}

// spansOf returns the spans of a read of that size, which begin where the ones asked for do.
func (l *layout) spansOf(n *Node, read *Read, of Spans) *Spans {
	i := slices.IndexFunc(read.Spans, func(s *Spans) bool {
		return s.Size == of.Size && s.Before == of.Before && s.Off == of.Off &&
			sameBounds(s.Bounds, of.Bounds)
	})
	if i >= 0 {
		return read.Spans[i]
	}
	s := nextOf(&l.spare.spans, len(l.out.Spans))
	of.Read, of.Counts = n, len(read.Spans) == 0
	*s = of
	read.Spans = append(read.Spans, s)
	l.out.Spans = append(l.out.Spans, s)
	return s
}
