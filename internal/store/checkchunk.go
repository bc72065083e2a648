package store

import (
	"math"

	"dalmatiner/internal/chunk"
	"dalmatiner/internal/point"
	"dalmatiner/internal/segment"
)

// recompute returns the aggregates of a chunk as its header defines them, from
// its words alone and without the code that wrote the header.
func recompute(words *[chunk.Slots]uint64) chunk.Header {
	last := chunk.Slots - 1
	for last >= 0 && words[last] == point.Unset {
		last--
	}
	var h chunk.Header
	var plain, filled laneSum
	for i, w := range words[:last+1] {
		if i%chunk.Lane == 0 {
			plain.next()
			filled.next()
		}
		if w != point.Unset {
			if h.Count == 0 {
				h.FirstOff, h.First = i, w
			}
			h.Count++
			h.LastOff, h.Last = i, w
			plain.add(w)
			extremes(&h, w)
		}
		if h.Count > 0 {
			filled.add(h.Last)
		}
	}
	h.Sum, h.Filled = plain.sum(), filled.sum()
	return h
}

// laneSum adds words in the order that chunk.Sum defines.
type laneSum struct {
	ints        chunk.Sum
	total, lane float64
}

func (s *laneSum) next() { s.total, s.lane = s.total+s.lane, 0 }

func (s *laneSum) add(w uint64) {
	if point.KindOf(w) == point.KindFloat {
		s.lane += point.Float(w)
	} else {
		s.ints = s.ints.Plus(chunk.Repeat(w, 1))
	}
}

func (s *laneSum) sum() chunk.Sum {
	s.next()
	return chunk.Sum{Hi: s.ints.Hi, Lo: s.ints.Lo, Float: s.total}
}

// extremes keeps the first of equal values and passes over NaN.
func extremes(h *chunk.Header, w uint64) {
	if point.KindOf(w) == point.KindFloat && math.IsNaN(point.Float(w)) {
		return
	}
	if h.Min == point.Unset || chunk.Less(w, h.Min) {
		h.Min = w
	}
	if h.Max == point.Unset || chunk.Less(h.Max, w) {
		h.Max = w
	}
}

// rollupCheck makes the levels of a series from the headers and words of its
// chunks, as chunk.Header.Append defines them and without it.
type rollupCheck struct {
	small   [segment.MaxSpans]chunk.Header
	large   chunk.Header
	digests [segment.MaxSpans]uint64
}

// add takes the next chunk, the at-th of the window, whose first one has the
// number first.
func (l *rollupCheck) add(h *chunk.Header, words *[chunk.Slots]uint64, first, at int64) {
	if at < 0 || at >= segment.LargeChunks {
		return // not of this window: no level can be right then
	}
	l.digests[at/segment.SmallChunks] += chunk.NumberedDigest(first+at, chunk.DigestWords(words[:], 0))
	join(&l.small[at/segment.SmallChunks], h, int(at%segment.SmallChunks)*chunk.Slots)
}

// header returns what the i-th entry of a level has to be.
func (l *rollupCheck) header(level segment.Rollup, i int) *chunk.Header {
	if level == segment.Small {
		return &l.small[i]
	}
	l.large = chunk.Header{}
	for n := range l.small {
		if l.small[n].Count > 0 {
			join(&l.large, &l.small[n], n*segment.SmallChunks*chunk.Slots)
		}
	}
	return &l.large
}

// digest returns what the i-th digest of a level has to be.
func (l *rollupCheck) digest(level segment.Rollup, i int) uint64 {
	if level == segment.Small {
		return l.digests[i]
	}
	var all uint64
	for _, d := range l.digests {
		all += d
	}
	return all
}

// join puts the aggregates of b, whose slot 0 is slot at of a, behind those of a.
func join(a, b *chunk.Header, at int) {
	if a.Count == 0 {
		a.FirstOff, a.First = at+b.FirstOff, b.First
	} else {
		// The order of the float part is that of these additions.
		a.Filled = a.Filled.Plus(chunk.Repeat(a.Last, at+b.FirstOff-a.LastOff-1))
	}
	a.Count += b.Count
	a.LastOff, a.Last = at+b.LastOff, b.Last
	a.Sum, a.Filled = a.Sum.Plus(b.Sum), a.Filled.Plus(b.Filled)
	for _, w := range []uint64{b.Min, b.Max} {
		if w != point.Unset {
			extremes(a, w)
		}
	}
}

// sameHeader compares bit by bit, but one NaN with another.
func sameHeader(a, b *chunk.Header) bool {
	x, y := *a, *b
	x.Sum, y.Sum, x.Filled, y.Filled = chunk.Sum{}, chunk.Sum{}, chunk.Sum{}, chunk.Sum{}
	return x == y && sameSum(a.Sum, b.Sum) && sameSum(a.Filled, b.Filled)
}

func sameSum(a, b chunk.Sum) bool {
	sameFloat := math.Float64bits(a.Float) == math.Float64bits(b.Float) || math.IsNaN(a.Float) && math.IsNaN(b.Float)
	return a.Hi == b.Hi && a.Lo == b.Lo && sameFloat
}
