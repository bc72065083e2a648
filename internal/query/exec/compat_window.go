package exec

import (
	"dalmatiner/internal/query/plan"
	"dalmatiner/internal/query/reduce"
)

// oldWindow gives one value per size inputs, as the original does: inputs that a short last
// window lacks count as copies of its last one in sums and variances, and its confidence is
// that of a whole window.
type oldWindow struct {
	over
	*plan.Window
	by           reduce.Old
	reduce.Taken // of the open window
}

func newOldWindow(o over, op *plan.Window) *oldWindow {
	in := o.in.shared()
	by := reduce.NewOld(reduce.Over{
		Fn:      op.Fn,
		Number:  op.Number,
		Most:    min(op.Size, in.Values),
		Seconds: float64(in.Resolution) / 1000,
	})
	return &oldWindow{over: o, Window: op, Taken: reduce.Taken{Size: op.Size}, by: by}
}

func (w *oldWindow) next(x *executor, dst block) (block, error) {
	in, err := w.in.pull(x, x.scratch())
	if err != nil {
		return dst, err
	}
	for v, c := in.v, in.c; len(v) > 0; {
		n := min(w.Taken.Size-w.Filled, int64(len(v)))
		var sure []float64
		if len(c) > 0 {
			sure, c = c[:n], c[n:]
			for _, f := range sure {
				w.Sure += f
			}
		}
		w.by.Add(v[:n], sure)
		w.Filled += n
		v = v[n:]
		if w.Filled == w.Taken.Size {
			dst = w.close(dst)
		}
	}
	x.release(in)
	if x.final && w.Filled > 0 {
		dst = w.close(dst)
	}
	return dst, nil
}

func (w *oldWindow) close(dst block) block {
	v, c := w.by.Close(&w.Taken)
	w.Filled, w.Sure = 0, 0
	return dst.put(v, c, w.Confidence)
}
