package exec

import (
	"slices"

	"dalmatiner/internal/kernel"
	"dalmatiner/internal/point"
	"dalmatiner/internal/sumtree"
)

// sums adds up a leaf step by step as its slots are read, for a window or for columns
// right above it. Values would not do: a float sum depends on where in its chunk a
// slot lies, and which values are integers, whose sums are exact.
type sums struct {
	size   int64
	window *window
	by     *total // of the window
	column *columns
	fill   bool // slots before the first point count as it

	from, until int64 // of the step under way
	begun       bool
	carry       uint64 // word behind the step before
	total       sumtree.Total
}

// openSums makes the sums of a leaf, and tells who takes them.
func (x *executor) openSums(l *leaf) {
	for _, of := range l.Sums {
		s := sums{size: of.Size, from: of.From, until: of.Until, fill: of.Fill}
		if of.Window != nil {
			s.window = x.nodes[of.Window.ID].(*window)
			s.by = s.window.by.(*total)
		} else {
			s.column = x.columns[of.Root]
			s.total.Numbers = true
		}
		l.sums = append(l.sums, s)
	}
}

// sumUp takes n slots from from on to all sums of the leaf. Without words all of them
// are unset.
func (l *leaf) sumUp(words []uint64, from, n int64) {
	for i := range l.sums {
		l.sums[i].take(l, words, from, n)
	}
}

// endSums ends what is left of the sums. As all windows do, a short last one becomes
// complete in the last round.
func (l *leaf) endSums() {
	for i := range l.sums {
		if s := &l.sums[i]; s.from < l.Past {
			s.close(l.Past)
		}
	}
}

func (s *sums) take(l *leaf, words []uint64, at, n int64) {
	if !s.begun {
		s.begun = true
		if s.fill {
			s.carry = l.word
		}
	}
	if s.window != nil {
		s.window.ready.v = slices.Grow(s.window.ready.v, int(n/s.size)+1)
	}
	for past := at + n; at < past; {
		k := min(s.until, past) - at
		if k == s.size && words != nil && s.whole(words[:k]) {
			words, at = words[k:], at+k
			continue
		}
		if words != nil {
			s.total.Add(words[:k], at)
			words = words[k:]
		}
		if at += k; at == s.until {
			s.close(at)
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
	s.give(float64(e.Sum), words[len(words)-1], s.until, int64(len(words)))
	return true
}

// mostMeasured is up to how many words the kernel adds up at once.
const mostMeasured = 256

// close ends the step under way, of which the last one may be short.
func (s *sums) close(at int64) {
	set := s.total.Count
	sum, last := s.total.End(s.carry, s.from, at)
	s.give(sum.Float64(), last, at, set)
}

// give hands on the sum of the step up to at, which has so many set slots, and
// begins the next.
func (s *sums) give(sum float64, last uint64, at, set int64) {
	slots := at - s.from
	s.carry, s.from, s.until = last, at, at+s.size
	if s.column != nil {
		s.column.sums = append(s.column.sums, sum)
		return
	}
	s.by.sum, s.by.last = sum, point.Float(last)
	s.window.give(slots, set, s.by)
}

// give closes the window over so many slots, some of them set, that its reducer
// has taken.
func (w *window) give(slots, set int64, by reducer) {
	w.filled, w.sure = slots, float64(set)
	v, c := by.close(&w.taken)
	w.ready.v = append(w.ready.v, v)
	if w.Confidence {
		w.ready.c = append(w.ready.c, c)
	}
	w.filled, w.sure = 0, 0
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
