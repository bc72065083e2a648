package chunk

import (
	"math"

	"dalmatiner/internal/codec/floatsum"
	"dalmatiner/internal/codec/kernel"
	"dalmatiner/internal/codec/point"
)

// Summarize returns the aggregates of words, which are the slots [off, off+len(words)) of a
// chunk. It is the Header that ParseHeader gives for a chunk with just these slots set, bit
// for bit. Without a value its Count is 0.
func Summarize(words []uint64, off int) Header {
	var s summary
	for at := 0; at < len(words); {
		n := min(Lane-(off+at)%Lane, len(words)-at)
		s.lane(words[at:at+n], off+at)
		at += n
	}
	return s.header()
}

// summary adds up lanes.
type summary struct {
	h   Header
	sum laneSum // the float part
}

// header returns the aggregates.
func (s *summary) header() Header {
	s.h.Sum.Float = s.sum.sum()
	return s.h
}

// stretch is n slots without gaps from off on, by their words. Least and most are
// point.Unset where there is only NaN.
type stretch struct {
	off, n                   int
	first, last, least, most uint64
	rises                    bool
}

// lane takes the slots of one lane, or of a part of it.
func (s *summary) lane(words []uint64, off int) {
	e := kernel.Measure(words)
	switch {
	case e.Unset():
	case e.Floats():
		s.floatLane(words, off)
	case e.Ints():
		n := len(words)
		w := stretch{off: off, n: n, first: words[0], last: words[n-1],
			least: intTag | uint64(e.Least)&intPayload, most: intTag | uint64(e.Most)&intPayload}
		w.rises = w.least == w.most || s.mayRise(&w) && riseInts(words)
		s.ints(w, product(e.Sum, 1))
	default:
		s.addMixed(words, off)
	}
}

// ints takes integers, whose sum is sum.
func (s *summary) ints(w stretch, sum Sum) {
	s.reach(w.first, w.off, w.rises)
	s.h.Sum.AddInts(sum)
	s.extremes(w.least, w.most)
	s.leave(w.last, w.off+w.n-1, w.n)
}

// floats takes floats of one lane, whose sum in their order is sum.
func (s *summary) floats(w stretch, sum float64) {
	s.reach(w.first, w.off, w.rises)
	s.sum.put(w.off/Lane, sum)
	s.extremes(w.least, w.most)
	s.leave(w.last, w.off+w.n-1, w.n)
}

// floatLane takes a lane of floats without gaps.
func (s *summary) floatLane(words []uint64, off int) {
	n := len(words)
	w := stretch{off: off, n: n, first: words[0], last: words[n-1]}
	low, high := math.NaN(), math.NaN()
	var sum floatsum.Sum
	before, falls := -math.MaxFloat64, false
	for _, x := range words {
		v := point.Double(x)
		sum.Add(v)
		if !(v >= before) {
			falls = true
		}
		before = v
		// The first number takes the place of NaN.
		if v < low || low != low && v == v {
			low, w.least = v, x
		}
		if v > high || high != high && v == v {
			high, w.most = v, x
		}
	}
	w.rises = !falls && before <= math.MaxFloat64
	s.floats(w, sum.Value())
}

// mayRise reports whether integers begin with the least and end with the greatest one, and whether
// that matters.
func (s *summary) mayRise(w *stretch) bool {
	return w.first == w.least && w.last == w.most && (s.h.Rises || s.h.Count == 0)
}

// riseInts reports whether none of integers is below the one before it.
func riseInts(words []uint64) bool {
	before := int64(words[0] << 8)
	for _, w := range words {
		v := int64(w << 8)
		if v < before {
			return false
		}
		before = v
	}
	return true
}

// addMixed takes a lane slot by slot.
func (s *summary) addMixed(words []uint64, off int) {
	for i, w := range words {
		if w <= point.Stale {
			continue
		}
		s.reach(w, off+i, finite(w))
		if point.KindOf(w) == point.KindFloat {
			v := point.Float(w)
			s.sum.add((off+i)/Lane, v)
			if v == v {
				s.extremes(w, w)
			}
		} else {
			s.h.Sum.AddInt(point.Int(w))
			s.extremes(w, w)
		}
		s.leave(w, off+i, 1)
	}
}

// reach takes in that slots from off on are next, that the first has the word w, and whether
// they rise.
func (s *summary) reach(w uint64, off int, rise bool) {
	if s.h.Count == 0 {
		s.h.FirstOff, s.h.First, s.h.Rises = off, w, rise
		return
	}
	s.h.Rises = s.h.Rises && rise && !Less(w, s.h.Last)
}

// leave notes the last set slot so far and how many came.
func (s *summary) leave(w uint64, off, n int) {
	s.h.LastOff, s.h.Last = off, w
	s.h.Count += n
}

// extremes takes in the least and the greatest word of some slots; both are
// point.Unset where there are only NaN.
func (s *summary) extremes(least, most uint64) {
	h := &s.h
	if least == point.Unset {
		return
	}
	if h.Min == point.Unset || Less(least, h.Min) {
		h.Min = least
	}
	if h.Max == point.Unset || Less(h.Max, most) {
		h.Max = most
	}
}
