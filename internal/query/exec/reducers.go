package exec

import (
	"math"

	"dalmatiner/internal/query/stats"
)

// total is a window's sum, or its mean. Inputs that a short window lacks count
// as copies of its last one.
type total struct {
	mean      bool
	sum, last float64
}

func (r *total) add(v, _ []float64) {
	sum := r.sum
	for _, f := range v {
		sum += f
	}
	r.sum, r.last = sum, v[len(v)-1]
}

func (r *total) close(w *taken) (float64, float64) {
	v := r.sum
	if missing := w.size - w.filled; missing > 0 {
		v += float64(r.last * float64(missing)) // not fused: it would round otherwise on some processors
	}
	if r.mean {
		v /= float64(w.size)
	}
	r.sum = 0
	return v, w.share()
}

// extreme is a window's least or greatest value.
type extreme struct {
	least bool
	begun bool
	v     float64
}

func (r *extreme) add(v, _ []float64) {
	if !r.begun {
		r.begun, r.v, v = true, v[0], v[1:]
	}
	if r.least {
		r.v = minOf(r.v, v)
	} else {
		r.v = maxOf(r.v, v)
	}
}

func (r *extreme) close(w *taken) (float64, float64) {
	r.begun = false
	return r.v, w.share()
}

// counted counts the inputs with a confidence above 0, or all others and those
// that a short window lacks.
type counted struct {
	others bool
	set    int64
}

func (r *counted) add(_, c []float64) {
	for _, f := range c {
		if f > 0 {
			r.set++
		}
	}
}

func (r *counted) close(w *taken) (float64, float64) {
	n := r.set
	if r.others {
		n = w.size - n
	}
	r.set = 0
	return float64(n), w.share()
}

// minOf returns the least of acc and v. NaN counts only if there is nothing
// else; of equal values the first stays.
func minOf(acc float64, v []float64) float64 {
	for _, f := range v {
		if f < acc || acc != acc {
			acc = f
		}
	}
	return acc
}

// maxOf returns the greatest of acc and v, by the same rules as minOf.
func maxOf(acc float64, v []float64) float64 {
	for _, f := range v {
		if f > acc || acc != acc {
			acc = f
		}
	}
	return acc
}

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

func (r *percentile) close(w *taken) (float64, float64) {
	v := stats.Quantile(r.held, r.p)
	r.held = r.held[:0]
	return v, w.mean()
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

func (r *variance) close(w *taken) (float64, float64) {
	if missing := w.size - w.filled; missing > 0 {
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

func (r *ends) close(*taken) (float64, float64) {
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
	odd     bool // NaN was among the inputs
}

func (r *growth) add(v, _ []float64) {
	for _, f := range v {
		if f != f {
			r.odd = true
			continue
		}
		if r.begun {
			r.sum += stats.Grown(r.last, f)
			r.steps++
		}
		r.begun, r.last = true, f
	}
}

func (r *growth) close(w *taken) (float64, float64) {
	v := r.sum
	if r.seconds > 0 && r.steps > 0 {
		v /= r.steps * r.seconds
	}
	r.sum, r.steps = 0, 0
	return v, w.share()
}
