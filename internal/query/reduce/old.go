package reduce

import (
	"math"

	"dalmatiner/internal/query/function"
	"dalmatiner/internal/query/stats"
)

// The reducers of the original, for compat: all inputs are values, and what a short last span
// lacks counts.

// Old computes one value from the inputs of a window. All of them are values.
type Old interface {
	// Add takes inputs of the open window, at least one. c is their confidences
	// where the plan has them, else nil.
	Add(v, c []float64)

	// Close returns the window's value and its confidence, and opens the next.
	Close(w *Taken) (value, confidence float64)
}

// Taken is what a window has taken of its inputs.
type Taken struct {
	Size   int64   // inputs of a whole window
	Filled int64   // inputs so far
	Sure   float64 // sum of their confidences
}

// share returns the confidence of most aggregates: missing inputs count 0.
func (w *Taken) share() float64 { return w.Sure / float64(w.Size) }

// mean returns the mean confidence of the inputs that are there.
func (w *Taken) mean() float64 { return w.Sure / float64(w.Filled) }

// NewOld returns the original's reducer of a function.
func NewOld(of Over) Old {
	switch fn := of.Fn; fn {
	case function.Sum, function.Avg:
		return &oldTotal{mean: fn == function.Avg}
	case function.Min, function.Max:
		return &oldShare{of: NewExtreme(fn)}
	case function.Count, function.Empty:
		return &oldCounted{others: fn == function.Empty}
	case function.First, function.Last:
		return &oldEnds{last: fn == function.Last}
	case function.Percentile:
		return &oldShare{of: NewPercentile(of.Number, of.Most), mean: true}
	case function.Median:
		return &oldShare{of: NewPercentile(0.5, of.Most), mean: true}
	case function.Variance, function.Stddev:
		return &oldVariance{root: fn == function.Stddev}
	case function.Increase:
		return &oldGrowth{}
	case function.Rate:
		return &oldGrowth{seconds: of.Seconds}
	}
	test := tests[of.Fn]
	return &oldFinder{Test: test, threshold: of.Number}
}

// oldShare is a reducer that is ours, with the confidence of the original's.
type oldShare struct {
	of   Reducer
	mean bool // of the inputs that are there
}

func (r *oldShare) Add(v, c []float64) { r.of.Add(v, c) }

func (r *oldShare) Close(w *Taken) (float64, float64) {
	if r.mean {
		return r.of.Close(), w.mean()
	}
	return r.of.Close(), w.share()
}

// oldTotal is a window's sum, or its mean.
type oldTotal struct {
	mean      bool
	sum, last float64
}

func (r *oldTotal) Add(v, _ []float64) {
	sum := r.sum
	for _, f := range v {
		sum += f
	}
	r.sum, r.last = sum, v[len(v)-1]
}

func (r *oldTotal) Close(w *Taken) (float64, float64) {
	v := r.sum
	if missing := w.Size - w.Filled; missing > 0 {
		v += float64(r.last * float64(missing)) // not fused: it would round otherwise on some processors
	}
	if r.mean {
		v /= float64(w.Size)
	}
	r.sum = 0
	return v, w.share()
}

// oldCounted counts the inputs with a confidence above 0, or all others and those
// that a short window lacks.
type oldCounted struct {
	others bool
	set    int64
}

func (r *oldCounted) Add(_, c []float64) {
	for _, f := range c {
		if f > 0 {
			r.set++
		}
	}
}

func (r *oldCounted) Close(w *Taken) (float64, float64) {
	n := r.set
	if r.others {
		n = w.Size - n
	}
	r.set = 0
	return float64(n), w.share()
}

// oldVariance is the population variance.
type oldVariance struct {
	root         bool // of it: the standard deviation
	n, mean, dev float64
	last         float64
}

func (r *oldVariance) Add(v, _ []float64) {
	n, mean, dev := r.n, r.mean, r.dev
	for _, f := range v {
		n++
		delta := f - mean
		mean += delta / n
		dev += delta * (f - mean)
	}
	r.n, r.mean, r.dev, r.last = n, mean, dev, v[len(v)-1]
}

func (r *oldVariance) Close(w *Taken) (float64, float64) {
	if missing := w.Size - w.Filled; missing > 0 {
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

// oldEnds is a window's first or last value, with the confidence of that value.
type oldEnds struct {
	last  bool
	begun bool
	v, c  float64
}

func (r *oldEnds) Add(v, c []float64) {
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

func (r *oldEnds) Close(*Taken) (float64, float64) {
	r.begun = false
	return r.v, r.c
}

// oldGrowth is what a counter grows by. The step between two windows belongs to the
// later one.
type oldGrowth struct {
	seconds float64 // of a step, to have a rate; 0 = the growth itself
	begun   bool
	last    float64
	sum     float64
	steps   float64
}

func (r *oldGrowth) Add(v, _ []float64) {
	for _, f := range v {
		if f != f {
			continue
		}
		if r.begun {
			r.sum += stats.Grown(r.last, f)
			r.steps++
		}
		r.begun, r.last = true, f
	}
}

func (r *oldGrowth) Close(w *Taken) (float64, float64) {
	v := r.sum
	if r.seconds > 0 && r.steps > 0 {
		v /= r.steps * r.seconds
	}
	r.sum, r.steps = 0, 0
	return v, w.share()
}

// oldFinder looks for the inputs above or below a threshold.
type oldFinder struct {
	Test
	threshold float64

	value  float64
	own    float64 // confidence of the value
	found  int64   // matches in the window
	passed float64 // sum of the confidences before the match, in scan direction
	steps  float64 // inputs before it
}

func (r *oldFinder) Add(v, c []float64) {
	for i, f := range v {
		sure := 0.0
		if c != nil {
			sure = c[i]
		}
		if r.Of(f, sure, r.threshold) {
			r.match(f, sure)
		} else if r.found == 0 || r.What == function.Last {
			r.passed += sure
			r.steps++
		}
	}
}

// match takes an input that was looked for. What is passed before the first
// one was passed already; what is passed before the last one, coming from the
// end, is still to come.
func (r *oldFinder) match(v, sure float64) {
	r.found++
	switch {
	case r.What == function.Last:
		r.value, r.own, r.passed, r.steps = v, sure, 0, 0
	case r.What == function.First && r.found == 1:
		r.value, r.own = v, sure
	}
}

// close returns the value found; its confidence is its own if confidences are
// compared, else that of what was passed before it.
func (r *oldFinder) Close(w *Taken) (v, c float64) {
	switch {
	case r.found == 0:
	case r.What == function.Count:
		v, c = float64(r.found), w.mean()
	case r.Test.Confidence:
		v, c = r.value, r.own
	default:
		v, c = r.value, r.passed/(r.steps+1)
	}
	*r = oldFinder{Test: r.Test, threshold: r.threshold}
	return v, c
}
