package chunk

import (
	"math"

	"dalmatiner/internal/kernel"
	"dalmatiner/internal/point"
)

// Summarize returns the aggregates of words, which stand for the slots from off
// on of a chunk: the header that a chunk with just these slots set would have,
// bit for bit. Without a set slot its Count is 0.
func Summarize(words []uint64, off int) Header {
	var s summary
	for at := 0; at < len(words); {
		n := min(Lane-(off+at)%Lane, len(words)-at)
		s.lane(words[at:at+n], off+at)
		at += n
	}
	s.h.Sum.Float, s.h.Filled.Float = s.plain.sum(), s.filled.sum()
	return s.h
}

// summary adds up lanes.
type summary struct {
	h             Header
	plain, filled laneSum // the float parts
}

// lane takes the slots of one lane, or of a part of it.
func (s *summary) lane(words []uint64, off int) {
	e := kernel.Measure(words)
	switch {
	case e.Or == point.Unset:
	case e.And >= floatMarker:
		s.floats(words, off)
	case e.And>>56 == 1 && e.Or>>56 == 1:
		s.ints(words, &e, off)
	default:
		s.mixed(words, off)
	}
}

// ints takes a lane of integers without gaps.
func (s *summary) ints(words []uint64, e *kernel.Extent, off int) {
	s.reach(words[0], off)
	s.h.Sum.addInt(e.Sum)
	s.h.Filled.addInt(e.Sum)
	s.extremes(intTag|uint64(e.Least)&intPayload, intTag|uint64(e.Most)&intPayload)
	s.leave(words[len(words)-1], off+len(words)-1, len(words))
}

// floats takes a lane of floats without gaps.
func (s *summary) floats(words []uint64, off int) {
	least, most := point.Unset, point.Unset
	low, high, sum := math.NaN(), math.NaN(), 0.0
	for _, w := range words {
		v := math.Float64frombits(w << 1)
		sum += v
		// The first number takes the place of NaN.
		if v < low || low != low && v == v {
			low, least = v, w
		}
		if v > high || high != high && v == v {
			high, most = v, w
		}
	}
	s.reach(words[0], off)
	s.plain.put(off/Lane, sum)
	s.filled.put(off/Lane, sum)
	s.extremes(least, most)
	s.leave(words[len(words)-1], off+len(words)-1, len(words))
}

// mixed takes a lane slot by slot.
func (s *summary) mixed(words []uint64, off int) {
	for i, w := range words {
		if w == point.Unset {
			continue
		}
		s.reach(w, off+i)
		s.fill(w, off+i)
		if point.KindOf(w) == point.KindFloat {
			v := point.Float(w)
			s.plain.add((off+i)/Lane, v)
			if v == v {
				s.extremes(w, w)
			}
		} else {
			s.h.Sum.addInt(point.Int(w))
			s.extremes(w, w)
		}
		s.leave(w, off+i, 1)
	}
}

// reach carries the last word on up to the set slot off, or begins with it.
func (s *summary) reach(w uint64, off int) {
	if s.h.Count == 0 {
		s.h.FirstOff, s.h.First = off, w
		return
	}
	for slot := s.h.LastOff + 1; slot < off; slot++ {
		s.fill(s.h.Last, slot)
	}
}

// fill counts a slot with the word w in the filled sum.
func (s *summary) fill(w uint64, off int) {
	if point.KindOf(w) == point.KindFloat {
		s.filled.add(off/Lane, point.Float(w))
	} else {
		s.h.Filled.addInt(point.Int(w))
	}
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
