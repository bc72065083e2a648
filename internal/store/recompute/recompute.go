// Package recompute makes the aggregates of chunks and the rollups of windows from the points,
// without the code that wrote them: a check compares the two (I4).
package recompute

import (
	"math"

	"dalmatiner/internal/codec/chunk"
	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/disk/segment"
)

// Points returns how many words are set, with a value or a stale marker.
func Points(words *[chunk.Slots]uint64) (n int) {
	for _, w := range words {
		if w != point.Unset {
			n++
		}
	}
	return n
}

// Header returns the aggregates of a chunk as its header defines them, from
// its words alone and without the code that wrote the header.
func Header(words *[chunk.Slots]uint64) chunk.Header {
	last := chunk.Slots - 1
	for last >= 0 && words[last] <= point.Stale {
		last--
	}
	var h chunk.Header
	var sum Sum
	for i, w := range words[:last+1] {
		if i%chunk.Lane == 0 {
			sum.Next()
		}
		if w <= point.Stale {
			continue
		}
		if h.Count == 0 {
			h.FirstOff, h.First, h.Last, h.Rises = i, w, w, true
		}
		h.Rises = h.Rises && finite(w) && !chunk.Less(w, h.Last)
		h.Count++
		h.LastOff, h.Last = i, w
		sum.Add(w)
		Extremes(&h, w)
	}
	h.Sum = sum.Total()
	return h
}

func finite(w uint64) bool { return math.Abs(point.Float(w)) <= math.MaxFloat64 }

// Sum adds words in the order that chunk.Sum defines.
type Sum struct {
	ints        chunk.Sum
	total, lane Float
}

// Float is a sum of floats, and what its additions lost by rounding (Neumaier's way).
type Float struct{ sum, lost float64 }

// Add adds v.
func (f *Float) Add(v float64) {
	sum := f.sum + v
	if math.Abs(f.sum) < math.Abs(v) {
		f.lost += (v - sum) + f.sum
	} else {
		f.lost += (f.sum - sum) + v
	}
	f.sum = sum
}

// Rounded returns the sum as one double; what an infinite one lost is not a number.
func (f *Float) Rounded() float64 {
	if math.IsInf(f.sum, 0) || math.IsNaN(f.sum) {
		return f.sum
	}
	return f.sum + f.lost
}

// Next begins the next lane.
func (s *Sum) Next() {
	s.total.Add(s.lane.Rounded())
	s.lane = Float{}
}

// Add adds a word that is set.
func (s *Sum) Add(w uint64) {
	if point.KindOf(w) == point.KindFloat {
		s.lane.Add(point.Float(w))
	} else {
		s.ints.AddInt(point.Int(w))
	}
}

// Total is the sum of all lanes.
func (s *Sum) Total() chunk.Sum {
	s.Next()
	return chunk.Sum{Hi: s.ints.Hi, Lo: s.ints.Lo, Float: s.total.Rounded()}
}

// Extremes notes a word that is set in the minimum and the maximum of h: it keeps the first of
// equal values and passes over NaN.
func Extremes(h *chunk.Header, w uint64) {
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

// Rollups makes the rollups of a series from the headers and words of its
// chunks, as chunk.Node defines them and without it.
type Rollups struct {
	small   [segment.MaxSpans]node
	large   node
	digests [segment.MaxSpans]uint64
}

// node is a header whose sum of floats is under way.
type node struct {
	chunk.Header
	floats Float
}

// header returns the aggregates of n.
func (n *node) header() *chunk.Header {
	n.Sum.Float = n.floats.Rounded()
	return &n.Header
}

// Add takes the next chunk, the at-th of the window, whose first one has the
// number first.
func (l *Rollups) Add(h *chunk.Header, words *[chunk.Slots]uint64, first, at int64) {
	if at < 0 || at >= segment.LargeChunks {
		return // not of this window: no rollup can be right then
	}
	l.digests[at/segment.SmallChunks] += chunk.NumberedDigest(first+at, chunk.DigestWords(words[:], 0))
	if h.Count > 0 { // else it has stale markers alone
		l.small[at/segment.SmallChunks].join(h, int(at%segment.SmallChunks)*chunk.Slots)
	}
}

// Header returns what the i-th entry of a rollup has to be. The next call may overwrite it.
func (l *Rollups) Header(level segment.Rollup, i int) *chunk.Header {
	if level == segment.Small {
		return l.small[i].header()
	}
	l.large = node{}
	for n := range l.small {
		if l.small[n].Count > 0 {
			l.large.join(l.small[n].header(), n*segment.SmallChunks*chunk.Slots)
		}
	}
	return l.large.header()
}

// Digest returns what the i-th digest of a rollup has to be.
func (l *Rollups) Digest(level segment.Rollup, i int) uint64 {
	if level == segment.Small {
		return l.digests[i]
	}
	var all uint64
	for _, d := range l.digests {
		all += d
	}
	return all
}

// join puts the aggregates of b, whose slot 0 is slot at of n, behind those of n.
func (n *node) join(b *chunk.Header, at int) {
	a := &n.Header
	if a.Count == 0 {
		a.FirstOff, a.First, a.Last, a.Rises = at+b.FirstOff, b.First, b.First, true
	}
	a.Rises = a.Rises && b.Rises && !chunk.Less(b.First, a.Last)
	a.Count += b.Count
	a.LastOff, a.Last = at+b.LastOff, b.Last
	a.Sum.AddInts(b.Sum)
	n.floats.Add(b.Sum.Float)
	for _, w := range []uint64{b.Min, b.Max} {
		if w != point.Unset {
			Extremes(a, w)
		}
	}
}

// Equal compares bit by bit, but one NaN with another.
func Equal(a, b *chunk.Header) bool {
	x, y := *a, *b
	x.Sum, y.Sum = chunk.Sum{}, chunk.Sum{}
	return x == y && sameSum(a.Sum, b.Sum)
}

func sameSum(a, b chunk.Sum) bool {
	sameFloat := math.Float64bits(a.Float) == math.Float64bits(b.Float) || math.IsNaN(a.Float) &&
		math.IsNaN(b.Float)
	return a.Hi == b.Hi && a.Lo == b.Lo && sameFloat
}
