package reference

import (
	"math"
	"math/big"
	"slices"
	"strings"
)

// spanOf returns how many outputs at a resolution a span has.
func spanOf(ms, resolution int64) int { return int(max(1, ms/resolution)) }

// aggregate applies a function over time (rules R2 and R3). Before the range it has whole spans.
func (e *evaluator) aggregate(name string, a arguments, before lookback) ([]Series, error) {
	spans := func(resolution int64) (outputs, spans int) {
		c := spanOf(a.span, resolution)
		return c, before(resolution * int64(c))
	}
	asked := func(resolution int64) int {
		c, n := spans(resolution)
		if name == "increase" || name == "rate" {
			return c*n + outputs(counterReach(resolution), resolution)
		}
		return c * n
	}
	return e.each(a.series, asked, func(in Series) Series {
		c, n := spans(in.Resolution)
		return windows(name, in, c, n, a.numbers)
	})
}

// windows applies an aggregate to spans of c outputs, the first of which begins before spans before
// the range.
func windows(name string, in Series, c, before int, numbers []float64) Series {
	out := derived(in, before)
	out.Resolution = in.Resolution * int64(c)
	for from := in.ahead - before*c; from < len(in.Values); from += c {
		w := window{in: in, from: from, to: min(from+c, len(in.Values))}
		for i := w.from; i < w.to; i++ {
			if v := in.Values[i]; !math.IsNaN(v) {
				w.values = append(w.values, v)
				w.sure = append(w.sure, in.Confidence[i])
			}
		}
		if len(numbers) > 0 {
			w.number = numbers[0]
		}
		out.add(w.aggregate(name), sum(w.sure)/float64(w.to-w.from))
	}
	out.Scale = windowScale(name, in, c)
	return out
}

func windowScale(name string, in Series, c int) float64 {
	scale := float64(c) * in.Scale
	if name == "variance" || name == "stddev" {
		scale *= in.Scale + 1
	}
	if name == "rate" {
		scale /= min(1, float64(in.Resolution)/1000)
	}
	return scale
}

// window is a span of a series: the outputs [from, to), and the values among them.
type window struct {
	in           Series
	from, to     int
	values, sure []float64
	number       float64 // argument
}

// aggregate returns the value of a span, NaN for a gap.
func (w window) aggregate(name string) float64 {
	switch name {
	case "count":
		return float64(len(w.values))
	case "empty":
		return float64(w.to - w.from - len(w.values))
	}
	if strings.HasPrefix(name, "count_") {
		return w.find(splitName(name))
	}
	if len(w.values) == 0 {
		return math.NaN()
	}
	switch name {
	case "sum":
		return w.sum()
	case "avg", "mean":
		return mean(w.sum(), w.values)
	case "min":
		return extreme(w.values, less)
	case "max":
		return extreme(w.values, more)
	case "first":
		return w.values[0]
	case "last":
		return w.values[len(w.values)-1]
	case "median":
		return sorted(w.values, 0.5)
	case "percentile":
		return sorted(w.values, w.number)
	case "variance":
		return variance(w.values)
	case "stddev":
		return math.Sqrt(variance(w.values))
	case "increase", "rate":
		return w.growth(name)
	}
	return w.find(splitName(name))
}

// sum adds up the words of a read in their own order, and other values one after the other.
func (w window) sum() float64 {
	if w.in.words == nil {
		return sum(w.values)
	}
	return sumOfSpan(w.in.words[w.from:w.to], w.in.from+int64(w.from))
}

// mean returns the mean of values with a sum. A sum can be beyond the greatest float where the mean
// is not; and a rounded mean of equal values can differ from them.
func mean(total float64, values []float64) float64 {
	n := float64(len(values))
	v := total / n
	finite := func(v float64) bool { return math.Abs(v) <= math.MaxFloat64 }
	if !finite(v) && !slices.ContainsFunc(values, func(v float64) bool { return !finite(v) }) {
		v = 0
		for _, x := range values {
			v += x / n
		}
	}
	switch least, greatest := extreme(values, less), extreme(values, more); {
	case v < least:
		return least
	case v > greatest:
		return greatest
	}
	return v
}

// find returns the first or last match, or how many there are.
func (w window) find(parts nameParts) float64 {
	var matches []float64
	for i, v := range w.values {
		tested := v
		if parts.conf {
			tested = w.sure[i]
		}
		if parts.below && tested < w.number || !parts.below && tested > w.number {
			matches = append(matches, v)
		}
	}
	switch {
	case parts.count:
		return float64(len(matches))
	case len(matches) == 0:
		return math.NaN()
	case parts.last:
		return matches[len(matches)-1]
	}
	return matches[0]
}

// exactGrowth is the growth of a counter that is read, without rounding.
type exactGrowth struct{ big.Rat }

// add adds the growth from one word to the next, which is finite.
func (g *exactGrowth) add(before, now uint64) {
	a, b := exact(before), exact(now)
	switch {
	case b == nil: // less than everything
	case a != nil && b.Cmp(a) >= 0:
		g.Add(&g.Rat, b.Sub(b, a))
	case b.Sign() > 0:
		g.Add(&g.Rat, b)
	}
}

func (g *exactGrowth) float64() float64 {
	v, _ := g.Float64()
	return v
}

// exact returns the value of a word, nil where it is not finite.
func exact(w uint64) *big.Rat {
	if isFloat(w) {
		return new(big.Rat).SetFloat64(number(w))
	}
	return new(big.Rat).SetInt64(whole(w))
}

// growth is the increase of a counter, or its rate, over the pairs of neighbouring values whose
// second one lies in the span (rule R3).
func (w window) growth(name string) float64 {
	total, seconds, pairs := 0.0, 0.0, 0
	var exactly exactGrowth
	last := -1
	for i, v := range w.in.Values[:w.to] {
		if math.IsNaN(v) {
			continue
		}
		apart := int64(i-last) * w.in.Resolution
		near := last >= w.from || float64(apart) <= counterReach(w.in.Resolution)
		if i >= w.from && last >= 0 && near {
			total += grown(w.in.Values[last], v)
			if w.in.words != nil {
				exactly.add(w.in.words[last], w.in.words[i])
			}
			seconds += float64(apart) / 1000
			pairs++
		}
		last = i
	}
	if w.in.words != nil && !math.IsInf(total, 0) && !math.IsNaN(total) {
		total = exactly.float64()
	}
	switch {
	case pairs == 0:
		return math.NaN()
	case name == "rate":
		return total / seconds
	}
	return total
}
