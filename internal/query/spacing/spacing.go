// Package spacing finds how far the points of a series are apart.
package spacing

// Spacing finds the most common distance between neighbouring points of a series in slots,
// which are told it in their order. The zero value has seen none. It keeps the counts of a few distances: a new one takes the
// place of one that all others have worn down (Misra and Gries), so what most
// points have stays, however many distances there are.
type Spacing struct {
	counts [spacings]struct{ distance, n int64 }
	last   int64 // slot of the last point
	begun  bool  // there is one
}

const spacings = 8

// Points takes n set slots in a row, the first of which is slot.
func (s *Spacing) Points(slot, n int64) {
	s.link(slot)
	s.add(1, n-1)
	s.last = slot + n - 1
}

// Span takes n set slots from first to last of which only the ends are known:
// they count with their mean distance.
func (s *Spacing) Span(first, last, n int64) {
	s.link(first)
	if n > 1 {
		s.add(meanDistance(first, last, n), n-1)
	}
	s.last = last
}

// meanDistance returns the rounded mean distance of n set slots, at least two.
func meanDistance(first, last, n int64) int64 { return (last - first + (n-1)/2) / (n - 1) }

func (s *Spacing) link(slot int64) {
	if s.begun {
		s.add(slot-s.last, 1)
	}
	s.begun = true
}

func (s *Spacing) add(distance, n int64) {
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

// Most returns the most common distance, the shorter of two that are equally
// common, and how many points have it; 0 with fewer than two points.
func (s *Spacing) Most() (distance, n int64) {
	for _, c := range s.counts {
		if c.n > n || c.n == n && n > 0 && c.distance < distance {
			distance, n = c.distance, c.n
		}
	}
	return distance, n
}

// Run are neighbouring spans of equal length in which as many slots are set, from the same first
// one to the same last one.
type Run struct {
	N                  int32 // spans
	Count, First, Last int32 // set slots, and offsets of the first and the last one; 0 without any
}

// Same reports whether the spans of two runs are alike.
func (r Run) Same(o Run) bool { return r.Count == o.Count && r.First == o.First && r.Last == o.Last }

// AppendRun appends a run of one span, to the last one where that is the same.
func AppendRun(list []Run, r Run) []Run {
	if n := len(list); n > 0 && list[n-1].Same(r) {
		list[n-1].N++
		return list
	}
	return append(list, r)
}

// Runs takes the spans of a run, each of so many slots, the first of which begins at a slot.
func (s *Spacing) Runs(r Run, slot, size int64) {
	if r.Count == 0 {
		return
	}
	for done := range r.N {
		s.Span(slot+int64(r.First), slot+int64(r.Last), int64(r.Count))
		slot += size
		// From the second one on all of them have the same two distances.
		if left := int64(r.N - done - 1); done > 0 && left > 0 && s.repeat(r, size, left) {
			s.last += left * size
			return
		}
	}
}

// repeat takes n more spans like the last two. It reports false, and takes none, where
// their distances are not both counted.
func (s *Spacing) repeat(r Run, size, n int64) bool {
	between := s.at(size - int64(r.Last-r.First))
	inside := between
	if r.Count > 1 {
		inside = s.at(meanDistance(int64(r.First), int64(r.Last), int64(r.Count)))
	}
	if between < 0 || inside < 0 {
		return false
	}
	s.counts[between].n += n
	s.counts[inside].n += n * int64(r.Count-1)
	return true
}

// at returns where a distance is counted, or -1.
func (s *Spacing) at(distance int64) int {
	for i := range s.counts {
		if s.counts[i].distance == distance {
			return i
		}
	}
	return -1
}
