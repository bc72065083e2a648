package exec

import (
	"math"

	"dalmatiner/internal/codec/chunk"
	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/codec/sumtree"
	"dalmatiner/internal/query/function"
	"dalmatiner/internal/query/plan"
	"dalmatiner/internal/query/reduce"
)

// window gives one value per size inputs; the last window ends with the range. Its confidence is
// the sum of those of its inputs ÷ their number.
type window struct {
	over
	*plan.Window
	by      reduce.Reducer // nil until the window takes inputs
	ready   block          // of this round, where values come from spans or sums and not from in
	history int64          // inputs still to come that are ahead of the first window

	given  int64          // windows that were closed
	filled int64          // inputs of the open window
	sure   float64        // sum of their confidences
	apart  *sumtree.Total // of the slots of the open window, where aggregates do not tell their sum
}

// open makes the window ready to take inputs.
func (w *window) open(o over, op *plan.Window) {
	w.over, w.Window = o, op
	w.history = op.History(o.in.shared().Resolution)
}

// reducer returns what reduces the inputs. Most windows over spans need none.
func (w *window) reducer() reduce.Reducer {
	if w.by == nil {
		in := w.in.shared()
		w.by = reduce.New(reduce.Over{Fn: w.Fn, Number: w.Number, Most: min(w.Size, in.Values),
			Seconds: float64(in.Resolution) / 1000, Apart: plan.LongestPatience(in.Resolution)})
	}
	return w.by
}

func (w *window) next(x *executor, dst block) (block, error) {
	if w.Sums {
		if err := x.reach(w.in.node); err != nil {
			return dst, err
		}
	}
	if w.Sums || w.Spans {
		return dst.take(&w.ready), nil
	}
	in, err := w.in.pull(x, x.scratch())
	if err != nil {
		return dst, err
	}
	by, v, c := w.reducer(), in.v, in.c
	if n := min(w.history, int64(len(v))); n > 0 {
		by.(*reduce.Growth).Before(v[:n])
		w.history -= n
		if v = v[n:]; len(c) > 0 {
			c = c[n:]
		}
	}
	for len(v) > 0 {
		n := min(w.Length(w.given)-w.filled, int64(len(v)))
		var sure []float64
		if len(c) > 0 {
			sure, c = c[:n], c[n:]
			for _, f := range sure {
				w.sure += f
			}
		}
		by.Add(v[:n], sure)
		w.filled += n
		v = v[n:]
		if w.filled == w.Length(w.given) {
			dst = w.close(dst)
		}
	}
	x.release(in)
	for x.final && (w.filled > 0 || w.given < int64(len(w.Bounds))-1) {
		dst = w.close(dst)
	}
	return dst, nil
}

func (w *window) close(dst block) block {
	// the calendar may have windows without inputs
	v, sure := w.reducer().Close(), w.sure/float64(max(w.filled, 1))
	if v != v {
		sure = 0
	}
	dst = dst.put(v, sure, w.Confidence)
	w.filled, w.sure = 0, 0
	w.given++
	return dst
}

// give gives the value of a window over so many slots of a read that were added up.
func (w *window) give(t *sumtree.Total, slots int64) {
	v := t.Mean()
	if w.Fn == function.Sum && t.Count > 0 {
		v = t.Sum().Float64()
	}
	w.ready = w.ready.put(v, float64(t.Count)/float64(max(slots, 1)), w.Confidence)
}

// spans gives the values of windows by the aggregates of their slots, so many each. It stops at
// the first one whose aggregates do not tell, and returns how many it has given.
func (w *window) spans(list []chunk.Header, slots int64) int {
	dst := w.ready.v
	for i := range list {
		v, ok := w.span(&list[i], slots)
		if !ok {
			w.ready.v = dst
			return i
		}
		dst = append(dst, v)
		if w.Confidence {
			w.ready.c = append(w.ready.c, float64(list[i].Count)/float64(max(slots, 1)))
		}
	}
	w.ready.v = dst
	return len(list)
}

// tells reports whether aggregates of slots are those of their values: with NaN among the slots,
// they are not.
func tells(h *chunk.Header) bool { return h.Sum.Float == h.Sum.Float }

// span returns the value of a window by the aggregates of its slots. ok is false where they do
// not tell: with NaN among the slots, and where a sum of finite numbers is not finite.
func (w *window) span(h *chunk.Header, slots int64) (v float64, ok bool) {
	switch {
	case w.Fn == function.Count || w.Fn == function.Empty:
	case h.Count == 0:
		return math.NaN(), true
	case w.Fn == function.Avg:
		return h.Mean()
	}
	if !tells(h) {
		return 0, false
	}
	switch w.Fn {
	case function.Sum:
		return h.Sum.Float64(), true
	case function.Min:
		return point.Float(h.Min), true
	case function.Max:
		return point.Float(h.Max), true
	case function.First:
		return point.Float(h.First), true
	case function.Last:
		return point.Float(h.Last), true
	case function.Count:
		return float64(h.Count), true
	}
	return float64(slots - int64(h.Count)), true
}

// slots takes slots of the open window.
func (w *window) slots(words []uint64, from int64, last bool) {
	w.filled += int64(len(words))
	if !w.Fn.AddsUp() {
		values, sure := valuesOf(words)
		w.reducer().Add(values, nil)
		for _, c := range sure {
			w.sure += c
		}
		if last {
			w.ready = w.close(w.ready)
		}
		return
	}
	if w.apart == nil {
		w.apart = &sumtree.Total{Means: w.Fn == function.Avg}
	}
	w.apart.Add(words, from)
	if last {
		w.give(w.apart, w.filled)
		w.apart, w.filled = nil, 0
	}
}
