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
			r.Columns.align(read.From, r.Of.Values, int64(l.opt.Width))
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
		read.Sums = append(read.Sums, Sum{Size: c.Step, From: read.From, Until: read.From + c.Step - c.Off, Root: root, Fill: l.opt.Fill})
		return
	}
	c.Spans = l.spansOf(n, read, c.Step, c.Off)
	c.Spans.Roots = append(c.Spans.Roots, root)
}

// addWindow lets a window over a read take the aggregates of its slots, or else
// the sums, if it is of a kind that does.
func (l *layout) addWindow(n *Node, w *Window, read *Read) {
	if w.overSpans() && l.pushes(n.Inputs[0]) {
		s := l.spansOf(n.Inputs[0], read, w.Size, 0)
		s.Windows = append(s.Windows, n)
		w.Spans = true
		l.bill.spanWindows++
	} else if w.Fn.AddsUp() {
		read.Sums = append(read.Sums, Sum{Size: w.Size, From: read.From, Until: read.From + w.Size, Window: n, Fill: true})
		w.Sums = true
		if w.Size < minSpan {
			l.bill.buffers++
		} else {
			l.bill.spanWindows++
		}
	}
}

// spansOf returns the spans of a read of that size, of which the first one lacks
// off slots.
func (l *layout) spansOf(n *Node, read *Read, size, off int64) *Spans {
	i := slices.IndexFunc(read.Spans, func(s *Spans) bool { return s.Size == size && s.Off == off })
	if i >= 0 {
		return read.Spans[i]
	}
	s := nextOf(&l.spare.spans, len(l.out.Spans))
	*s = Spans{Read: n, Size: size, Off: off, Counts: len(read.Spans) == 0}
	read.Spans = append(read.Spans, s)
	l.out.Spans = append(l.out.Spans, s)
	return s
}
