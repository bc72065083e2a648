package hole

import (
	"cmp"
	"slices"
)

// Cause says what was lost.
type Cause uint8

// The causes. A number is never used for anything else.
const (
	Block     Cause = iota // chunks of a segment whose bytes are damaged
	Index                  // a part of the index of a segment: which chunks it named is not known
	File                   // a segment that is missing or does not open
	LogRecord              // a record of the log
	Joined                 // several, see Bound
	causes
)

// String is the cause as answers and messages name it.
func (c Cause) String() string {
	if c >= causes {
		return "damage"
	}
	return [causes]string{"damaged block", "damaged index", "lost file", "damaged log record",
		"several damages, joined"}[c]
}

// Hole hides the slots [From, Past) of the series of a bucket with a prefix in [Low,
// High] in every source whose position is lower than At: what lay there is lost.
type Hole struct {
	Bucket     uint64
	Low, High  Prefix
	From, Past int64
	At         Position
	Cause      Cause
	Source     uint64 // number of the segment that was lost; 0 for the log
}

// covers reports whether a hole hides all that another one hides.
func (h *Hole) covers(o *Hole) bool {
	return h.Bucket == o.Bucket && h.Low <= o.Low && h.High >= o.High && h.From <= o.From &&
		h.Past >= o.Past && h.At.Compare(o.At) >= 0
}

func (h *Hole) compare(o *Hole) int {
	return cmp.Or(cmp.Compare(h.Bucket, o.Bucket), cmp.Compare(h.Low, o.Low),
		cmp.Compare(h.High, o.High), h.At.Compare(o.At),
		cmp.Compare(h.Source, o.Source), cmp.Compare(h.Cause, o.Cause), cmp.Compare(h.From, o.From),
		cmp.Compare(h.Past, o.Past))
}

// LossHole is the hole that a lost part of a segment leaves: a mark is chunks, of so many
// slots each.
func (m *Mark) LossHole(slots int64, at Position, cause Cause, source uint64) Hole {
	return Hole{
		Bucket: m.Bucket,
		Low:    m.Low,
		High:   m.High,
		From:   m.First * slots,
		Past:   m.Past * slots,
		At:     at,
		Cause:  cause,
		Source: source,
	}
}

// Join returns the holes in order, with those joined that go on where another one of
// the same series and source ends, and without those that one beside them in the
// order covers. It hides what the list hides, slot by slot.
func Join(list []Hole) []Hole {
	list = slices.Clone(list)
	slices.SortFunc(list, func(a, b Hole) int { return a.compare(&b) })
	var out []Hole
	for _, h := range list {
		if h.From >= h.Past || h.Low > h.High {
			continue
		}
		for n := len(out); n > 0; n = len(out) {
			o := &out[n-1]
			if o.covers(&h) {
				h = *o
			} else if o.sameBut(&h) && o.Past >= h.From {
				h.From, h.Past = min(o.From, h.From), max(o.Past, h.Past)
			} else if !h.covers(o) {
				break
			}
			out = out[:n-1]
		}
		out = append(out, h)
	}
	return out
}

// sameBut reports whether two holes differ in their slots only.
func (h *Hole) sameBut(o *Hole) bool {
	return h.Bucket == o.Bucket && h.Low == o.Low && h.High == o.High && h.At == o.At &&
		h.Cause == o.Cause && h.Source == o.Source
}

// Span is what a hole is for one series.
type Span struct {
	From, Past int64
	At         Position
	Cause      Cause
	Source     uint64
}

// Set is the holes of one bucket. It never changes; nil is the empty one.
type Set struct {
	holes []Hole   // by Low
	high  []Prefix // the highest High of the holes up to each
}

// NewSet returns the set of the holes of a bucket that are in the list, nil where
// there are none.
func NewSet(bucket uint64, list []Hole) *Set {
	s := new(Set)
	for _, h := range list {
		if h.Bucket == bucket {
			s.holes = append(s.holes, h)
		}
	}
	if len(s.holes) == 0 {
		return nil
	}
	s.holes = Join(s.holes)
	s.high = make([]Prefix, len(s.holes))
	for i := range s.holes {
		s.high[i] = s.holes[i].High
		if i > 0 {
			s.high[i] = max(s.high[i], s.high[i-1])
		}
	}
	return s
}

// Holes returns all holes. The slice must not be changed.
func (s *Set) Holes() []Hole {
	if s == nil {
		return nil
	}
	return s.holes
}

// Spans appends what hides slots of [from, past) of a series, cut to them, the lowest
// position first.
func (s *Set) Spans(dst []Span, p Prefix, from, past int64) []Span {
	if s == nil {
		return dst
	}
	begin := len(dst)
	past0, _ := slices.BinarySearchFunc(s.holes, p, func(h Hole, p Prefix) int {
		if h.Low <= p {
			return -1
		}
		return 1
	})
	for i := past0 - 1; i >= 0 && s.high[i] >= p; i-- {
		h := &s.holes[i]
		lo, hi := max(h.From, from), min(h.Past, past)
		if h.High >= p && lo < hi {
			dst = append(dst, Span{lo, hi, h.At, h.Cause, h.Source})
		}
	}
	if len(dst) > begin+1 {
		slices.SortStableFunc(dst[begin:], func(a, b Span) int { return a.At.Compare(b.At) })
	}
	return dst
}
