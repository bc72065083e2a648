package reduce

import (
	"math"

	"dalmatiner/internal/codec/chunk"
	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/query/stats"
)

// Growth is what a counter grows by, or its rate. A fall is a reset to 0, after which the counter
// grew by what it shows. A step from one value to the next belongs to the span in which it ends.
// One from another span counts where the values are not too far apart.
//
// The values of a span are runs that rise, with falls between them. The growth is the last value
// of each run less its first one, and the new value at each fall, added up in their order:
// integers exactly. So it does not depend on the pieces that the values come in.
type Growth struct {
	rate    bool
	seconds float64 // of an output
	apart   int64

	begun  bool   // there is a last value
	last   uint64 // its word
	at     int64  // its output
	inside bool   // it lies in the open span
	low    uint64 // word that its run begins with
	next   int64  // output that Add takes next

	values int64 // of the open span
	steps  int64 // outputs that the steps are long together
	whole  chunk.Sum
	sum    stats.Sum
	lost   bool // a step is not a number
}

// Before takes outputs ahead of the first span.
func (r *Growth) Before(v []float64) {
	for _, f := range v {
		if f == f {
			r.Begin(point.FromFloat(f), r.next)
		}
		r.next++
	}
}

// BeforeWords takes slots ahead of the first span.
func (r *Growth) BeforeWords(words []uint64, from int64) {
	for i, w := range words {
		if v := point.Float(w); w>>56 != 0 && v == v {
			r.Begin(w, from+int64(i))
		}
	}
}

// Begin takes the last value ahead of the first span.
func (r *Growth) Begin(w uint64, at int64) { r.begun, r.last, r.at = true, w, at }

// Add implements Reducer.
func (r *Growth) Add(v, _ []float64) {
	for _, f := range v {
		if f == f {
			w := point.FromFloat(f)
			r.Rising(w, w, r.next, r.next, 1)
		}
		r.next++
	}
}

// Words takes slots of the open span.
func (r *Growth) Words(words []uint64, from int64) {
	for i := 0; i < len(words); {
		w, n := words[i], 1
		switch point.KindOf(w) {
		case point.KindInt:
			if r.inside && r.at == from+int64(i)-1 && point.KindOf(r.last) == point.KindInt {
				i += r.falls(words[i:])
				continue
			}
			n = risingInts(words[i:])
		case point.KindFloat:
			n = risingFloats(words[i:])
		default:
			i++
			continue
		}
		if v := point.Float(w); v == v {
			r.Rising(w, words[i+n-1], from+int64(i), from+int64(i+n-1), int64(n))
		}
		i += n
	}
}

// risingInts returns how many of words, which begin with an integer, are integers that rise.
func risingInts(words []uint64) int {
	before := words[0] << 8
	for i, w := range words[1:] {
		if point.KindOf(w) != point.KindInt || int64(w<<8) < int64(before) {
			return i + 1
		}
		before = w << 8
	}
	return len(words)
}

// falls takes integers right behind another one, and returns how many: up to so many that their
// growth fits into 64 bits. What is between two falls is of integers alone, so that the sum of its
// steps is exact.
func (r *Growth) falls(words []uint64) (n int) {
	const most = 64
	a, all, settled := point.Int(r.last), int64(0), int64(0)
	low := -1
	for ; n < min(len(words), most) && point.KindOf(words[n]) == point.KindInt; n++ {
		b := point.Int(words[n])
		if b >= a {
			all += b - a
		} else {
			if low < 0 {
				r.grow(r.low, point.FromInt(a))
				all = 0
			}
			all += max(0, b)
			settled, low = all, n
		}
		a = b
	}
	if low >= 0 {
		r.whole.AddInt(settled)
		r.low = words[low]
	}
	r.values += int64(n)
	r.steps += int64(n)
	r.Begin(words[n-1], r.at+int64(n))
	return n
}

// risingFloats returns how many of words, which begin with a float, are finite floats that rise;
// 1 where the first is not finite.
func risingFloats(words []uint64) int {
	before := point.Float(words[0])
	for i, w := range words[1:] {
		if point.KindOf(w) != point.KindFloat || before-before != 0 {
			return i + 1
		}
		v := point.Double(w)
		if !(v >= before) || v-v != 0 {
			return i + 1
		}
		before = v
	}
	return len(words)
}

// Rising takes n values of the open span of which none is below the one before it, from output
// from to output to. More than one are finite.
func (r *Growth) Rising(first, last uint64, from, to, n int64) {
	if r.begun && (r.inside || from-r.at <= r.apart) {
		r.step(first, from)
	} else {
		r.low = first
	}
	r.values += n
	r.steps += to - from
	r.inside = true
	r.Begin(last, to)
}

// step takes the step from the last value to the next one.
func (r *Growth) step(w uint64, at int64) {
	if !r.inside {
		r.low = r.last
	}
	r.steps += at - r.at
	switch v := point.Float(w); {
	case w == r.last:
		r.lost = r.lost || v-v != 0
	case chunk.Less(w, r.last):
		r.grow(r.low, r.last)
		if r.low = w; v > 0 {
			r.grow(point.FromInt(0), w)
		}
	}
}

// grow adds the growth from one word to another.
func (r *Growth) grow(from, to uint64) {
	switch {
	case from == to:
	case point.KindOf(from) == point.KindInt && point.KindOf(to) == point.KindInt:
		r.whole.AddInt(point.Int(to) - point.Int(from))
	default:
		r.sum.Add(point.Float(to) - point.Float(from))
	}
}

// Values returns how many values the open span has.
func (r *Growth) Values() int64 { return r.values }

// Close implements Reducer.
func (r *Growth) Close() float64 {
	v := math.NaN()
	if r.steps > 0 && !r.lost {
		r.grow(r.low, r.last)
		v = r.whole.Float64() + r.sum.Value()
		if r.rate {
			v /= float64(r.steps) * r.seconds
		}
	}
	r.inside, r.lost, r.values, r.steps = false, false, 0, 0
	r.whole, r.sum = chunk.Sum{}, stats.Sum{}
	return v
}
