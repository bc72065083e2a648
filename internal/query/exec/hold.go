package exec

import (
	"math"
	"slices"

	"dalmatiner/internal/query/plan"
)

// gap is what a series is that takes no part: no computation gives these bits.
var gap = math.NaN()

func isGap(v float64) bool { return math.Float64bits(v) == math.Float64bits(gap) }

// hold gives a series a value at the steps between its own: its last one, as long as the
// distances between its last values say that the next one may still come.
type hold struct {
	begun     bool
	last      float64
	sure      float64                 // confidence of last
	since     int64                   // outputs since then
	known     int                     // distances
	distances [plan.ChainLength]int64 // the last ones, in outputs
	patience  int64                   // outputs that last is held for; 0 = not yet known
}

// fill puts held values into the gaps of a block, and their confidences where conf is set. It
// returns how many gaps there were, and how many are left.
func (h *hold) fill(b *block, from, fromC int, resolution int64, conf bool) (were, left int) {
	v := b.v[from:]
	for i, f := range v {
		h.since++
		if f == f {
			h.point(resolution)
			h.last = f
			if conf {
				h.sure = b.c[fromC+i]
			}
			continue
		}
		were++
		if h.patience == 0 {
			h.patience = patience(h.distances[:h.known], resolution) / resolution
		}
		if !h.begun || h.since > h.patience {
			left++
			v[i] = gap
			if conf {
				b.c[fromC+i] = 0
			}
			continue
		}
		v[i] = h.last
		if conf {
			b.c[fromC+i] = h.sure
		}
	}
	return were, left
}

// point takes in that there is a value now.
func (h *hold) point(resolution int64) {
	switch {
	case !h.begun || h.since*resolution > plan.Chain:
		h.known = 0
	case h.known < len(h.distances):
		h.distances[h.known] = h.since
		h.known++
	case h.distances != [plan.ChainLength]int64{h.since, h.since, h.since}:
		copy(h.distances[:], h.distances[1:])
		h.distances[h.known-1] = h.since
	}
	h.begun, h.since, h.patience = true, 0, 0
}

// patience returns for how many ms the last value of a series stands for it, by the distances
// between its last values in outputs: 2.5 times the largest one, at least 2.5 outputs and at
// most five minutes, which also is what counts where fewer than three values are known.
func patience(distances []int64, resolution int64) int64 {
	longest := plan.Patience
	if len(distances) >= 2 {
		longest = min(longest, 5*slices.Max(distances)*resolution/2)
	}
	return max(longest, 5*resolution/2)
}
