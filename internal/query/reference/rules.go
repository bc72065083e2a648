package reference

import (
	"math"
	"slices"
)

// empty is what is left of a series where the original gives none of its
// values.
func empty(in Series, span int64) Series {
	in.Resolution *= max(1, span/in.Resolution)
	in.Values, in.Confidence, in.Known, in.hidden, in.restart = nil, nil, nil, false, 0
	return in
}

// window applies an aggregate over time, chunk by chunk.
func window(name string, in Series, span int64, numbers []float64) Series {
	c := int(max(1, span/in.Resolution))
	out := in
	out.Resolution = in.Resolution * int64(c)
	out.Values, out.Confidence, out.Known, out.hidden, out.restart = nil, nil, nil, false, 0
	carry := firstWord(in.words)
	out.words = nil
	for i := 0; i < len(in.Values); i += c {
		end := min(i+c, len(in.Values))
		w := chunk{values: in.Values[i:end], sure: in.Confidence[i:end], c: c, seconds: float64(in.Resolution) / 1000}
		w.before = in.Values[:i]
		if len(numbers) > 0 {
			w.number = numbers[0]
		}
		v, sure := w.aggregate(name)
		if in.words != nil {
			var total float64
			total, carry = sumOfSpan(in.words[i:end], in.from+int64(i), carry)
			if missing := c - (end - i); missing > 0 { // none of Inf is not 0
				total += in.Values[end-1] * float64(missing)
			}
			switch name {
			case "sum":
				v = total
			case "avg", "mean":
				v = total / float64(c)
			}
		}
		out.Values = append(out.Values, v)
		out.Confidence = append(out.Confidence, sure)
		out.Known = append(out.Known, name == "count" || name == "empty" || slices.Contains(in.Known[i:end], true))
	}
	out.Scale = float64(c) * in.Scale
	if name == "variance" || name == "stddev" {
		out.Scale *= in.Scale + 1
	}
	if name == "rate" {
		out.Scale /= min(1, float64(in.Resolution)/1000)
	}
	return out
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
func (e *evaluator) combine(name string, in []Series, q float64) ([]Series, error) {
	if len(in) == 0 {
		return nil, nil
	}
	out := Series{Resolution: in[0].Resolution, restart: in[0].restart}
	length := 0
	for _, s := range in {
		if s.Resolution != out.Resolution {
			return nil, ErrMixedResolutions
		}
		length = max(length, len(s.Values))
		if s.restart != out.restart {
			out.restart = 0
		}
		out.Set += s.Set
		out.Slots += s.Slots
		out.Scale += s.Scale
	}
	for i := range length {
		values, sure := column(in, i)
		v, c := 0.0, sum(sure)/float64(len(sure))
		if name == "sum" || name == "avg" || name == "min" || name == "max" {
			v, c = e.join(name, in, values, sure)
		} else {
			v = fold(name, values, q)
		}
		out.Values = append(out.Values, v)
		if e.old.Compat && name != "quantile" { // there everything is in the order it is named in
			v = fold(name, values, q)
			out.Values[i] = v
			c = foldThree(name, sure)
		}
		out.Confidence = append(out.Confidence, c)
		out.Known = append(out.Known, slices.ContainsFunc(in, func(s Series) bool {
			return len(s.Known) > 0 && s.Known[min(i, len(s.Known)-1)]
		}))
	}
	out.rescale()
	return []Series{out}, nil
}

// foldThree is how the original combines confidences.
func foldThree(name string, c []float64) float64 {
	switch {
	case len(c) == 1:
		return c[0]
	case len(c) == 2:
		return (c[0] + c[1]) / 2
	case name == "sum" || name == "avg":
		return foldThree(name, append([]float64{(c[0] + c[1] + c[0]) / 3}, c[3:]...))
	}
	return foldThree(name, append([]float64{(c[0] + c[1] + c[2]) / 3}, c[3:]...))
}

// column returns what all series have at one time.
func column(in []Series, i int) (values, sure []float64) {
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
	return values, sure
}

func fold(name string, values []float64, q float64) float64 {
	switch name {
	case "quantile":
		return sorted(values, q)
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
