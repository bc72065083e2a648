package reference

import (
	"math"
	"slices"
	"strings"
)

// windowCompat applies an aggregate over time, chunk by chunk.
func windowCompat(name string, in Series, span int64, numbers []float64) Series {
	c := int(max(1, span/in.Resolution))
	out := in
	out.Resolution = in.Resolution * int64(c)
	out.Values, out.Confidence, out.hidden, out.restart = nil, nil, false, 0
	for i := 0; i < len(in.Values); i += c {
		end := min(i+c, len(in.Values))
		w := chunk{values: in.Values[i:end], sure: in.Confidence[i:end], before: in.Values[:i], c: c,
			seconds: float64(in.Resolution) / 1000}
		if len(numbers) > 0 {
			w.number = numbers[0]
		}
		v, sure := w.aggregate(name)
		out.Values = append(out.Values, v)
		out.Confidence = append(out.Confidence, sure)
	}
	out.Scale = windowScale(name, in, c)
	return out
}

// chunk is what one value of an aggregate over time is made of.
type chunk struct {
	values, sure []float64
	before       []float64 // values of the series before it
	c            int       // slots that a whole chunk has
	seconds      float64   // of a slot
	number       float64   // argument
}

// aggregate returns the value of the chunk and its confidence.
func (w chunk) aggregate(name string) (v, sure float64) {
	share, mean := sum(w.sure)/float64(w.c), sum(w.sure)/float64(len(w.sure))
	switch name {
	case "median":
		return sorted(w.values, 0.5), mean
	case "percentile":
		return sorted(w.values, w.number), mean
	case "first":
		return w.values[0], w.sure[0]
	case "last":
		return w.values[len(w.values)-1], w.sure[len(w.sure)-1]
	}
	if strings.Contains(name, "_above") || strings.Contains(name, "_below") {
		return w.find(name, mean)
	}
	return w.number0(name), share
}

// number0 computes the aggregates whose confidence is the share of the chunk.
func (w chunk) number0(name string) float64 {
	full := slices.Clone(w.values)
	for len(full) < w.c {
		full = append(full, full[len(full)-1])
	}
	set := 0.0
	for _, s := range w.sure {
		if s > 0 {
			set++
		}
	}
	switch name {
	case "sum":
		return sum(full)
	case "avg", "mean":
		return sum(full) / float64(w.c)
	case "min":
		return extreme(w.values, less)
	case "max":
		return extreme(w.values, more)
	case "variance":
		return variance(full)
	case "stddev":
		return math.Sqrt(variance(full))
	case "count":
		return set
	case "empty":
		return float64(w.c) - set
	}
	return w.growth(name)
}

// find returns the first or last match, or the number of them.
func (w chunk) find(name string, mean float64) (v, sure float64) {
	parts := splitName(name)
	values, conf := slices.Clone(w.values), slices.Clone(w.sure)
	if parts.last {
		slices.Reverse(values)
		slices.Reverse(conf)
	}
	matches := 0.0
	for i, f := range values {
		tested := f
		if parts.conf {
			tested = conf[i]
		}
		if parts.below && !(tested < w.number) || !parts.below && !(tested > w.number) {
			continue
		}
		matches++
		switch {
		case parts.count:
		case parts.conf:
			return f, conf[i]
		default:
			return f, sum(conf[:i]) / float64(i+1)
		}
	}
	if matches == 0 {
		return 0, 0
	}
	return matches, mean
}

// growth is the increase of a counter or its rate: all steps that end in the
// chunk.
func (w chunk) growth(name string) float64 {
	total, steps := 0.0, 0.0
	all := slices.Concat(w.before, w.values)
	last := math.NaN()
	for i, v := range all {
		if math.IsNaN(v) {
			continue
		}
		if i >= len(w.before) && !math.IsNaN(last) {
			total += grown(last, v)
			steps++
		}
		last = v
	}
	if name == "rate" && steps > 0 {
		return total / (steps * w.seconds)
	}
	return total
}
