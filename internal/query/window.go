package query

// window gives one value per size inputs. A short last window counts its
// missing inputs as copies of its last one for sum and avg, and with
// confidence 0 (DQL page, section 6).
type window struct {
	common
	in   node
	fn   opFunc
	size int64

	pushed bool  // values come from spans, not from in
	ready  block // those of this round

	filled int64 // inputs in the open window
	acc    float64
	last   float64
	sure   float64 // sum of the confidences
}

func (w *window) needConfidence(want bool) {
	if w.enter(want) {
		w.in.needConfidence(want || w.fn == fnCount)
	}
}

func (w *window) coverage() (set, slots int64) { return w.in.coverage() }

func (w *window) next(x *executor, dst block) (block, error) {
	if w.pushed {
		return dst.take(&w.ready), nil
	}
	in, err := x.pull(w.in, x.scratch())
	if err != nil {
		return dst, err
	}
	counting := w.conf || w.fn == fnCount
	for v, c := in.v, in.c; len(v) > 0; {
		n := min(w.size-w.filled, int64(len(v)))
		w.add(v[:n])
		if counting {
			w.addConfidence(c[:n])
			c = c[n:]
		}
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

// add takes inputs of one window; v is not empty.
func (w *window) add(v []float64) {
	w.last = v[len(v)-1]
	first := w.filled == 0
	w.filled += int64(len(v))
	switch w.fn {
	case fnSum, fnAvg:
		acc := w.acc
		for _, f := range v {
			acc += f
		}
		w.acc = acc
	case fnMin, fnMax:
		if first {
			w.acc, v = v[0], v[1:]
		}
		if w.fn == fnMin {
			w.acc = minOf(w.acc, v)
		} else {
			w.acc = maxOf(w.acc, v)
		}
	}
}

func (w *window) addConfidence(c []float64) {
	for _, f := range c {
		w.sure += f
		if w.fn == fnCount && f > 0 {
			w.acc++
		}
	}
}

// close gives out the open window and opens the next.
func (w *window) close(dst block) block {
	v := w.acc
	switch w.fn {
	case fnSum, fnAvg:
		if missing := w.size - w.filled; missing > 0 {
			v += w.last * float64(missing)
		}
		if w.fn == fnAvg {
			v /= float64(w.size)
		}
	}
	dst.v = append(dst.v, v)
	if w.conf {
		dst.c = append(dst.c, w.sure/float64(w.size))
	}
	w.filled, w.acc, w.sure = 0, 0, 0
	return dst
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
