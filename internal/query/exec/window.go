package exec

import (
	"dalmatiner/internal/query/function"
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
	taken              // of the open window
	total  total       // by, of those that add up
}

// open makes the window ready to take inputs.
func (w *window) open(o over, op *plan.Window) {
	in := o.in.shared()
	w.over, w.Window, w.size = o, op, op.Size
	if op.Fn.AddsUp() {
		w.total.mean = op.Fn == function.Avg
		w.by = &w.total
	} else {
		w.by = newReducer(op, min(op.Size, in.Values), in.Resolution)
	}
	if op.Spans {
		w.pushed = w.by.(spanReducer)
	}
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

func (w *window) close(dst block) block {
	v, c := w.by.close(&w.taken)
	dst.v = append(dst.v, v)
	if w.Confidence {
		dst.c = append(dst.c, c)
	}
	w.filled, w.sure = 0, 0
	return dst
}
