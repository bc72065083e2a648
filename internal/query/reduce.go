package query

import "math"

// reduce gives one value per size inputs, computed by a reducer.
type reduce struct {
	common
	in     node
	by     reducer
	size   int64
	needs  bool    // by needs confidences
	pushed bool    // values come from spans, not from in
	ready  block   // those of this round
	filled int64   // inputs in the open window
	sure   float64 // sum of their confidences
}

// reducer computes one value from the inputs of a window.
type reducer interface {
	// add takes inputs of the open window. c is their confidences where the
	// plan has them, else nil.
	add(v, c []float64)

	// close returns the window's value and its confidence, and opens the next.
	close(w *reduce) (value, confidence float64)
}

func (w *reduce) needConfidence(want bool) {
	if w.enter(want) {
		w.in.needConfidence(want || w.needs)
	}
}

func (w *reduce) coverage() (set, slots int64) { return w.in.coverage() }

func (w *reduce) next(x *executor, dst block) (block, error) {
	if w.pushed {
		return dst.take(&w.ready), nil
	}
	in, err := x.pull(w.in, x.scratch())
	if err != nil {
		return dst, err
	}
	for v, c := in.v, in.c; len(v) > 0; {
		n := min(w.size-w.filled, int64(len(v)))
		var sure []float64
		if len(c) > 0 {
			sure, c = c[:n], c[n:]
			for _, f := range sure {
				w.sure += f
			}
		}
		w.by.add(v[:n], sure)
		w.filled += n
		v = v[n:]
		if w.filled == w.size {
			dst = w.close(dst)
		}
	}
	x.release(in)
	if x.final && w.filled > 0 {
		dst = w.close(dst)
	}
	return dst, nil
}

func (w *reduce) close(dst block) block {
	v, c := w.by.close(w)
	dst.v = append(dst.v, v)
	if w.conf {
		dst.c = append(dst.c, c)
	}
	w.filled, w.sure = 0, 0
	return dst
}

// share returns the confidence of most aggregates: missing inputs count 0.
func (w *reduce) share() float64 { return w.sure / float64(w.size) }

// mean returns the mean confidence of the inputs that are there.
func (w *reduce) mean() float64 { return w.sure / float64(w.filled) }

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

func (r *percentile) close(w *reduce) (float64, float64) {
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

func (r *variance) close(w *reduce) (float64, float64) {
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

func (r *ends) close(*reduce) (float64, float64) {
	r.begun = false
	return r.v, r.c
}

// empty counts the inputs with confidence 0 and those that a short window
// lacks.
type empty struct{ set int64 }

func (r *empty) add(_, c []float64) {
	for _, f := range c {
		if f > 0 {
			r.set++
		}
	}
}

func (r *empty) close(w *reduce) (float64, float64) {
	v := float64(w.size - r.set)
	r.set = 0
	return v, w.share()
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

func (r *growth) close(w *reduce) (float64, float64) {
	v := r.sum
	if r.seconds > 0 && r.steps > 0 {
		v /= r.steps * r.seconds
	}
	r.sum, r.steps = 0, 0
	return v, w.share()
}
