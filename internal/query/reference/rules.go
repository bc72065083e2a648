package reference

import (
	"math"
	"slices"
)

// window applies an aggregate over time, chunk by chunk.
func window(name string, in Series, span int64) Series {
	c := int(max(1, span/in.Resolution))
	out := in
	out.Resolution = in.Resolution * int64(c)
	out.Values, out.Confidence = nil, nil
	for i := 0; i < len(in.Values); i += c {
		end := min(i+c, len(in.Values))
		values, sure := in.Values[i:end], in.Confidence[i:end]
		out.Values = append(out.Values, aggregate(name, values, sure, c))
		out.Confidence = append(out.Confidence, sum(sure)/float64(c))
		out.Scale = max(out.Scale, float64(c)*in.Scale)
	}
	return out
}

func aggregate(name string, values, sure []float64, c int) float64 {
	switch name {
	case "sum", "avg":
		full := slices.Clone(values)
		for len(full) < c {
			full = append(full, full[len(full)-1])
		}
		if name == "sum" {
			return sum(full)
		}
		return sum(full) / float64(c)
	case "min":
		return extreme(values, func(a, b float64) bool { return a < b })
	case "max":
		return extreme(values, func(a, b float64) bool { return a > b })
	}
	n := 0.0
	for _, s := range sure {
		if s > 0 {
			n++
		}
	}
	return n
}

func sum(values []float64) float64 {
	total := 0.0
	for _, v := range values {
		total += v
	}
	return total
}

// extreme returns the first value that none of the others is better than.
// NaN is better than nothing.
func extreme(values []float64, better func(a, b float64) bool) float64 {
	best := math.NaN()
	for _, v := range values {
		if math.IsNaN(best) || better(v, best) {
			best = v
		}
	}
	return best
}

// combine applies a combinator. A shorter series repeats its last value with
// confidence 0.
func combine(name string, in []Series) ([]Series, error) {
	if len(in) == 0 {
		return nil, nil
	}
	out := Series{Resolution: in[0].Resolution}
	length := 0
	for _, s := range in {
		if s.Resolution != out.Resolution {
			return nil, ErrMixedResolutions
		}
		length = max(length, len(s.Values))
		out.Set += s.Set
		out.Slots += s.Slots
		out.Scale += s.Scale
	}
	for i := range length {
		var values, sure []float64
		for _, s := range in {
			switch {
			case i < len(s.Values):
				values, sure = append(values, s.Values[i]), append(sure, s.Confidence[i])
			case len(s.Values) > 0:
				values, sure = append(values, s.Values[len(s.Values)-1]), append(sure, 0)
			default:
				values, sure = append(values, 0), append(sure, 0)
			}
		}
		out.Values = append(out.Values, fold(name, values))
		out.Confidence = append(out.Confidence, sum(sure)/float64(len(sure)))
	}
	out.rescale()
	return []Series{out}, nil
}

func fold(name string, values []float64) float64 {
	switch name {
	case "avg":
		return sum(values) / float64(len(values))
	case "min":
		return extreme(values, func(a, b float64) bool { return a < b })
	case "max":
		return extreme(values, func(a, b float64) bool { return a > b })
	}
	op := map[string]byte{"sum": '+', "diff": '-', "product": '*', "quotient": '/'}[name]
	acc := values[0]
	for _, v := range values[1:] {
		acc = operate(op, acc, v)
	}
	return acc
}
