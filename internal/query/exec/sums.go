package exec

import (
	"dalmatiner/internal/codec/kernel"
	"dalmatiner/internal/codec/sumtree"
	"dalmatiner/internal/query/function"
	"dalmatiner/internal/query/plan"
	"dalmatiner/internal/query/reduce"
)

// sums adds up a leaf step by step as its slots are read, for a window or for columns right above
// it, a counter by its growth. Values would not do: a float sum depends on where in its chunk a
// slot lies, and which values are integers, whose sums are exact.
type sums struct {
	*plan.Sum
	window *window
	column *columns

	given       int64 // steps that have ended
	from, until int64 // of the step under way
	total       sumtree.Total
	growth      *reduce.Growth // in place of total, of a counter
}

// openSums makes the sums of a leaf, and tells who takes them.
func (x *executor) openSums(l *leaf) {
	for i := range l.Sums {
		of := &l.Sums[i]
		s := sums{Sum: of, from: l.begin - of.Before}
		s.until = s.from + of.Length(0) - of.Off
		if of.Window != nil {
			s.window = x.nodes[of.Window.ID].(*window)
			if s.total.Means = s.window.Fn == function.Avg; s.window.LooksBack() {
				s.growth = s.window.growth()
			}
		} else {
			s.column = x.columns[of.Root]
			s.total.Means = true
		}
		l.sums = append(l.sums, s)
	}
}

// take takes the words of the slots from at on.
func (s *sums) take(words []uint64, at int64) {
	if skip := min(max(s.from-at, 0), int64(len(words))); skip > 0 && at < s.from {
		if s.growth != nil {
			s.growth.BeforeWords(words[:skip], at)
		}
		words, at = words[skip:], at+skip
	}
	for len(words) > 0 {
		k := min(s.until-at, int64(len(words)))
		switch {
		case s.growth != nil:
			s.growth.Words(words[:k], at)
		case k > 0 && (k < s.until-s.from || !s.whole(words[:k])):
			s.total.Add(words[:k], at)
		}
		words, at = words[k:], at+k
		if at == s.until {
			s.end(at)
		}
	}
}

// whole takes a step of integers without gaps, whose sum has no order, and reports
// whether it is one. Most are.
func (s *sums) whole(words []uint64) bool {
	if words[0]>>56 != 1 || len(words) > mostMeasured {
		return false
	}
	e := kernel.Measure(words)
	if !e.Ints() {
		return false
	}
	s.total.AddInts(&e, len(words))
	return true
}

// mostMeasured is up to how many words the kernel adds up at once.
const mostMeasured = 256

// finish ends the steps that are left at the end of the leaf: a short one, or of the calendar those
// without slots.
func (s *sums) finish(at int64) {
	for s.from < at || s.given < int64(len(s.Bounds))-1 {
		s.end(at)
	}
}

// end ends the step under way and begins the next.
func (s *sums) end(at int64) {
	switch {
	case s.growth != nil:
		s.window.giveGrowth(at - s.from)
	case s.column != nil:
		s.column.means = append(s.column.means, s.total.Mean())
	default:
		s.window.give(&s.total, at-s.from)
	}
	s.total.Reset()
	s.given++
	s.from, s.until = at, at+s.Length(s.given)
}

// reach has a node complete what it has in this round, for one that does not want
// its values.
func (x *executor) reach(n node) error {
	c := n.shared()
	if c.Uses == 1 {
		b, err := x.advance(n, x.scratch())
		x.release(b)
		return err
	}
	return x.complete(n)
}
