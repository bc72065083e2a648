package reference

import "math"

// transform applies a function that gives as many outputs as it takes.
func (e *evaluator) transform(name string, a arguments, before lookback) ([]Series, error) {
	asked := before
	var f func(in Series, ahead int) Series
	switch name {
	case "abs", "sqrt_scale", "log10_scale":
		f = func(in Series, _ int) Series {
			out := mapped(in, func(v float64) float64 { return scaled(name, v) })
			out.Scale++
			return out
		}
	case "confidence", "replace_below_confidence":
		f = func(in Series, _ int) Series { return byConfidence(name, in, a.numbers) }
	case "derivate", "increase", "rate":
		asked = func(resolution int64) int {
			return before(resolution) + outputs(counterReach(resolution), resolution)
		}
		f = func(in Series, ahead int) Series { return steps(name, in, ahead) }
	case "mavg":
		asked = func(resolution int64) int {
			return before(resolution) + spanOf(a.span, resolution) - 1
		}
		f = func(in Series, ahead int) Series {
			return movingMean(in, spanOf(a.span, in.Resolution), ahead)
		}
	case "ewma":
		// What begins with the range has nothing before it: all outputs there are gaps.
		asked = nothing
		f = func(in Series, ahead int) Series { return weighted(in, a, ahead) }
	case "fill":
		if a.word == "previous" || a.word == "linear" {
			asked = nothing // as for ewma; the others know all they need
		}
		f = func(in Series, ahead int) Series { return filled(in, a.word, ahead) }
	}
	return e.each(a.series, asked, func(in Series) Series {
		out := f(in, before(in.Resolution))
		out.rescale()
		return out
	})
}

func byConfidence(name string, in Series, numbers []float64) Series {
	out := derived(in, in.ahead)
	for i, c := range in.Confidence {
		switch {
		case name == "confidence":
			out.add(c, 1)
		case c <= numbers[0]:
			out.add(numbers[1], c)
		default:
			out.add(in.Values[i], c)
		}
	}
	return out
}

// steps compares each value with the one before it, if that is near enough (rule R4).
func steps(name string, in Series, ahead int) Series {
	out := derived(in, ahead)
	last := -1
	for i, v := range in.Values {
		result, c := math.NaN(), 0.0
		apart := int64(i-last) * in.Resolution
		isValue := !math.IsNaN(v)
		if isValue && last >= 0 && float64(apart) <= counterReach(in.Resolution) {
			seconds := float64(apart) / 1000
			c = (in.Confidence[last] + in.Confidence[i]) / 2
			switch name {
			case "derivate":
				result = (v - in.Values[last]) / seconds
			case "increase":
				result = grown(in.Values[last], v)
			case "rate":
				result = grown(in.Values[last], v) / seconds
			}
		}
		if isValue {
			last = i
		}
		if i >= in.ahead-ahead {
			out.add(result, c)
		}
	}
	out.Scale = 4 * (in.Scale + 1) / math.Min(1, float64(in.Resolution)/1000)
	return out
}

// movingMean is mavg over c outputs (rule R7).
func movingMean(in Series, c, ahead int) Series {
	out := derived(in, ahead)
	for i := in.ahead - ahead; i < len(in.Values); i++ {
		total, sure, n := 0.0, 0.0, 0.0
		for j := i - c + 1; j <= i; j++ {
			if v := in.Values[j]; !math.IsNaN(v) {
				total, sure, n = total+v, sure+in.Confidence[j], n+1
			}
		}
		if math.IsNaN(in.Values[i]) {
			n = 0
		}
		if n == 0 {
			out.add(math.NaN(), 0)
		} else {
			out.add(total/n, sure/float64(c))
		}
	}
	return out
}

// gaps returns a series of gaps before the range.
func gaps(in Series, ahead int) Series {
	out := derived(in, ahead)
	for range ahead - in.ahead {
		out.add(math.NaN(), 0)
	}
	return out
}

// weighted is ewma (rule R7). A span makes the weight depend on the time since the value before.
func weighted(in Series, a arguments, ahead int) Series {
	out := gaps(in, ahead)
	last := -1
	y, s := 0.0, 0.0
	for i, v := range in.Values {
		if math.IsNaN(v) {
			out.add(v, 0)
			continue
		}
		alpha := 0.0
		if len(a.numbers) > 0 {
			alpha = a.numbers[0]
		} else {
			alpha = 1 - math.Exp(-float64(int64(i-last)*in.Resolution)/float64(max(1, a.span)))
		}
		if last < 0 {
			y, s = v, in.Confidence[i]
		} else {
			y += alpha * (v - y)
			s += alpha * (in.Confidence[i] - s)
		}
		out.add(y, s)
		last = i
	}
	return out
}

// filled is fill (rule R8). What it puts in has confidence 0.
func filled(in Series, word string, ahead int) Series {
	out := gaps(in, ahead)
	isGap := func(i int) bool { return math.IsNaN(in.Values[i]) }
	for i, v := range in.Values {
		l, r := i, i
		for l >= 0 && isGap(l) {
			l--
		}
		for r < len(in.Values) && isGap(r) {
			r++
		}
		switch {
		case !isGap(i):
		case word == "zero":
			v = 0
		case word == "previous" && l >= 0:
			v = in.Values[l]
		case word == "linear" && l >= 0 && r < len(in.Values):
			v = in.Values[l] + (in.Values[r]-in.Values[l])*float64(i-l)/float64(r-l)
		}
		out.add(v, in.Confidence[i])
	}
	return out
}
