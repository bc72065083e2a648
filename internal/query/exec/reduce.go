package exec

import (
	"fmt"
	"math"

	"dalmatiner/internal/query/function"
	"dalmatiner/internal/query/plan"
)

// percentile holds a window's values and takes the one at ⌊(n−1)·p⌋ of n
// sorted ones. NaN counts only if there is nothing else.
type percentile struct {
	p    float64
	most int64 // values in a window
	held []float64
}

func (r *percentile) add(v, _ []float64) {
	if r.held == nil {
		r.held = make([]float64, 0, r.most)
	}
	for _, f := range v {
		if f == f {
			r.held = append(r.held, f)
		}
	}
}

func (r *percentile) close(w *window) (float64, float64) {
	v := quantileOf(r.held, r.p)
	r.held = r.held[:0]
	return v, w.mean()
}

// quantileOf returns the quantile q of v, which holds no NaN, and reorders it;
// NaN for no values.
func quantileOf(v []float64, q float64) float64 {
	if len(v) == 0 {
		return math.NaN()
	}
	return ranked(v, int(float64(len(v)-1)*q))
}

// variance is the population variance; inputs that a short window lacks count
// as copies of its last one. It is carried value by value (Welford), which does
// not cancel as a sum of squares does, and does not depend on the rounds.
type variance struct {
	root         bool // of it: the standard deviation
	n, mean, dev float64
	last         float64
}

func (r *variance) add(v, _ []float64) {
	n, mean, dev := r.n, r.mean, r.dev
	for _, f := range v {
		n++
		delta := f - mean
		mean += delta / n
		dev += delta * (f - mean)
	}
	r.n, r.mean, r.dev, r.last = n, mean, dev, v[len(v)-1]
}

func (r *variance) close(w *window) (float64, float64) {
	if missing := w.Size - w.filled; missing > 0 {
		n, delta := float64(missing), r.last-r.mean
		r.dev += delta * delta * r.n * n / (r.n + n)
		r.n += n
	}
	v := r.dev / r.n
	if r.root {
		v = math.Sqrt(v)
	}
	r.n, r.mean, r.dev = 0, 0, 0
	return v, w.share()
}

// ends is a window's first or last value, with the confidence of that value.
type ends struct {
	last  bool
	begun bool
	v, c  float64
}

func (r *ends) add(v, c []float64) {
	i := 0
	if r.last {
		i = len(v) - 1
	} else if r.begun {
		return
	}
	r.begun, r.v = true, v[i]
	if c != nil {
		r.c = c[i]
	}
}

func (r *ends) close(*window) (float64, float64) {
	r.begun = false
	return r.v, r.c
}

// growth is what a counter grows by. A fall is a reset to 0, after which the
// counter grew by what it shows. The step between two windows belongs to the
// later one, so that windows add up.
type growth struct {
	seconds float64 // of a step, to have a rate; 0 = the growth itself
	begun   bool
	last    float64
	sum     float64
	steps   float64
}

func (r *growth) add(v, _ []float64) {
	for _, f := range v {
		if f != f {
			continue
		}
		if r.begun {
			r.sum += grown(r.last, f)
			r.steps++
		}
		r.begun, r.last = true, f
	}
}

func grown(before, now float64) float64 {
	if now < before {
		return max(0, now)
	}
	return now - before
}

func (r *growth) close(w *window) (float64, float64) {
	v := r.sum
	if r.seconds > 0 && r.steps > 0 {
		v /= r.steps * r.seconds
	}
	r.sum, r.steps = 0, 0
	return v, w.share()
}

// newReducer returns the reducer of windows of up to most inputs, of which a step is res
// ms.
func newReducer(op *plan.Window, most, res int64) reducer {
	fn := op.Fn
	switch fn {
	case function.Sum, function.Avg:
		return &total{mean: fn == function.Avg}
	case function.Min, function.Max:
		return &extreme{least: fn == function.Min}
	case function.Count, function.Empty:
		return &counted{others: fn == function.Empty}
	case function.First, function.Last:
		return &ends{last: fn == function.Last}
	case function.Percentile:
		return &percentile{p: op.Number, most: most}
	case function.Median:
		return &percentile{p: 0.5, most: most}
	case function.Variance, function.Stddev:
		return &variance{root: fn == function.Stddev}
	case function.Increase:
		return &growth{}
	case function.Rate:
		return &growth{seconds: float64(res) / 1000}
	}
	f, ok := finders[fn]
	if !ok {
		panic(fmt.Sprintf("query: reducing function %d", fn))
	}
	f.threshold = op.Number
	return &f
}
