package exec

import (
	"dalmatiner/internal/query/plan"
)

// window gives one value per size inputs, computed by a reducer. A short last
// window lacks inputs: what they count as is the reducer's to say.
type window struct {
	over
	*plan.Window
	by     reducer
	pushed spanReducer // by, where values come from spans and not from in
	ready  block       // those of this round
	filled int64       // inputs in the open window
	sure   float64     // sum of their confidences
}

func openWindow(o over, op *plan.Window) *window {
	in := o.in.shared()
	w := &window{over: o, Window: op, by: newReducer(op, min(op.Size, in.Values), in.Resolution)}
	if op.Spans {
		w.pushed = w.by.(spanReducer)
	}
	return w
}

// reducer computes one value from the inputs of a window.
type reducer interface {
	// add takes inputs of the open window, at least one. c is their confidences
	// where the plan has them, else nil.
	add(v, c []float64)

	// close returns the window's value and its confidence, and opens the next.
	close(w *window) (value, confidence float64)
}

func (w *window) next(x *executor, dst block) (block, error) {
	if w.Sums {
		if err := x.reach(w.in); err != nil {
			return dst, err
		}
	}
	if w.Sums || w.pushed != nil {
		return dst.take(&w.ready), nil
	}
	in, err := x.pull(w.in, x.scratch())
	if err != nil {
		return dst, err
	}
	for v, c := in.v, in.c; len(v) > 0; {
		n := min(w.Size-w.filled, int64(len(v)))
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
		if w.filled == w.Size {
			dst = w.close(dst)
		}
	}
	x.release(in)
	if x.final && w.filled > 0 {
		dst = w.close(dst)
	}
	return dst, nil
}

func (w *window) close(dst block) block {
	v, c := w.by.close(w)
	dst.v = append(dst.v, v)
	if w.Confidence {
		dst.c = append(dst.c, c)
	}
	w.filled, w.sure = 0, 0
	return dst
}

// share returns the confidence of most aggregates: missing inputs count 0.
func (w *window) share() float64 { return w.sure / float64(w.Size) }

// mean returns the mean confidence of the inputs that are there.
func (w *window) mean() float64 { return w.sure / float64(w.filled) }

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

func (r *total) close(w *window) (float64, float64) {
	v := r.sum
	if missing := w.Size - w.filled; missing > 0 {
		v += float64(r.last * float64(missing)) // not fused: it would round otherwise on some processors
	}
	if r.mean {
		v /= float64(w.Size)
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

func (r *extreme) close(w *window) (float64, float64) {
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

func (r *counted) close(w *window) (float64, float64) {
	n := r.set
	if r.others {
		n = w.Size - n
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
