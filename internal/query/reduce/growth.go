package reduce

import (
	"math"

	"dalmatiner/internal/query/stats"
)

// Growth is what a counter grows by, or its rate. A fall is a reset to 0, after which the counter
// grew by what it shows. A step from one value to the next belongs to the span in which it ends.
// One from another span counts where the values are not too far apart.
type Growth struct {
	rate    bool
	seconds float64 // of an output
	apart   int64

	begun bool // there is a last value
	last  float64
	since int64 // outputs since the last value
	here  int64 // outputs of the open span so far

	steps int64 // outputs that the steps are long together
	sum   stats.Sum
}

// Before takes outputs ahead of the first span.
func (r *Growth) Before(v []float64) {
	for _, f := range v {
		r.since++
		if f == f {
			r.begun, r.last, r.since = true, f, 0
		}
	}
}

// Add implements Reducer.
func (r *Growth) Add(v, _ []float64) {
	for _, f := range v {
		r.since++
		r.here++
		if f != f {
			continue
		}
		if r.begun && (r.since < r.here || r.since <= r.apart) {
			r.sum.Add(stats.Grown(r.last, f))
			r.steps += r.since
		}
		r.begun, r.last, r.since = true, f, 0
	}
}

// Close implements Reducer.
func (r *Growth) Close() float64 {
	v := math.NaN()
	if r.steps > 0 {
		v = r.sum.Value()
		if r.rate {
			v /= float64(r.steps) * r.seconds
		}
	}
	r.sum, r.steps, r.here = stats.Sum{}, 0, 0
	return v
}
