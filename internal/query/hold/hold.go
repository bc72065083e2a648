// Package hold says which value a series has between its own. It is the last one, as long as the
// next one may still come by the distances between the last values (docs/dql.md, "Series that
// count").
package hold

import (
	"math"
	"slices"

	"dalmatiner/internal/query/plan"
)

// gap is what stands where a series takes no part: no computation gives these bits.
var gap = math.NaN()

// IsGap reports whether a value stands for a series that takes no part.
func IsGap(v float64) bool { return math.Float64bits(v) == math.Float64bits(gap) }

// Series is what is known of a series up to a step. The zero value has seen nothing.
type Series struct {
	begun     bool
	last      float64
	sure      float64                 // confidence of last
	since     int64                   // outputs since then
	known     int                     // distances
	distances [plan.ChainLength]int64 // the last ones, in outputs
	held      int64                   // outputs that last is held for; 0 = not yet known
}

// Fill takes in the next outputs of a series, a value every resolution ms or NaN, with their
// confidences or none. It puts held values, with the confidence of the value held, in place of NaN,
// and gaps where nothing is held. It returns how many gaps are left.
func (s *Series) Fill(v, c []float64, resolution int64) (left int) {
	for i := 0; i < len(v); i++ {
		if n := values(v[i:]); n > 0 {
			s.run(n, resolution)
			i += n - 1
			s.last = v[i]
			if len(c) > 0 {
				s.sure = c[i]
			}
			continue
		}
		s.Pass()
		if s.held == 0 {
			s.held = s.Patience(resolution) / resolution
		}
		sure := s.sure
		if v[i] = s.last; !s.begun || s.since > s.held {
			left++
			v[i], sure = gap, 0
		}
		if len(c) > 0 {
			c[i] = sure
		}
	}
	return left
}

// values returns how many values there are before the first gap.
func values(v []float64) int {
	for i, f := range v {
		if f != f {
			return i
		}
	}
	return len(v)
}

// run takes in n outputs with values. Of a long run the first ones tell nothing: the distances
// that are kept are those between the last.
func (s *Series) run(n int, resolution int64) {
	for range min(n, plan.ChainLength+1) {
		s.Value(resolution)
	}
}

// Pass takes in an output without a value.
func (s *Series) Pass() { s.since++ }

// Value takes in an output with a value.
func (s *Series) Value(resolution int64) {
	switch s.since++; {
	case !s.begun || s.since*resolution > plan.Chain:
		s.known = 0
	case s.known < len(s.distances):
		s.distances[s.known] = s.since
		s.known++
	case s.distances != [plan.ChainLength]int64{s.since, s.since, s.since}:
		copy(s.distances[:], s.distances[1:])
		s.distances[s.known-1] = s.since
	}
	s.begun, s.since, s.held = true, 0, 0
}

// Patience returns for how many ms the last value of the series stands for it, by the distances
// between its last values: 2.5 times the largest one, at least 2.5 outputs and at most five
// minutes, which also is what counts where fewer than three values are known.
func (s *Series) Patience(resolution int64) int64 {
	longest := plan.Patience
	if s.known >= 2 {
		longest = min(longest, 5*slices.Max(s.distances[:s.known])*resolution/2)
	}
	return max(longest, 5*resolution/2)
}
