package reference

import (
	"math"
	"slices"
)

// chunk is what one value of an aggregate over time is made of.
type chunk struct {
	values, sure []float64
	before       []float64 // values of the series before it
	c            int       // slots that a whole chunk has
	seconds      float64   // of a slot
	number       float64   // argument
}

// aggregate returns the value and its confidence by the table of section 6.
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
	case "first_above", "first_below", "last_above", "last_below", "count_above", "count_below",
		"first_above_conf", "first_below_conf", "last_above_conf", "last_below_conf", "count_above_conf", "count_below_conf":
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
		return extreme(w.values, func(a, b float64) bool { return a < b })
	case "max":
		return extreme(w.values, func(a, b float64) bool { return a > b })
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

func variance(values []float64) float64 {
	mean := sum(values) / float64(len(values))
	total := 0.0
	for _, v := range values {
		total += (v - mean) * (v - mean)
	}
	return total / float64(len(values))
}

// sorted returns the value at ⌊(n−1)·p⌋ of the numbers among values.
func sorted(values []float64, p float64) float64 {
	list := slices.DeleteFunc(slices.Clone(values), math.IsNaN)
	if len(list) == 0 {
		return math.NaN()
	}
	slices.Sort(list)
	return list[int(math.Floor(float64(len(list)-1)*p))]
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

type nameParts struct{ last, count, below, conf bool }

func splitName(name string) nameParts {
	has := func(part string) bool {
		for i := 0; i+len(part) <= len(name); i++ {
			if name[i:i+len(part)] == part {
				return true
			}
		}
		return false
	}
	return nameParts{last: has("last"), count: has("count"), below: has("below"), conf: has("conf")}
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

func grown(before, now float64) float64 {
	if now < before {
		return math.Max(0, now)
	}
	return now - before
}
