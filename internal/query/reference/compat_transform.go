package reference

import (
	"math"
	"slices"
)

// transformCompat applies a function that gives as many values as it takes.
func transformCompat(name string, in Series, a arguments) Series {
	out := in
	out.hidden = false
	out.Values, out.Confidence = slices.Clone(in.Values), slices.Clone(in.Confidence)
	v, c := out.Values, out.Confidence
	switch name {
	case "confidence":
		copy(v, in.Confidence)
		for i := range c {
			c[i] = 1
		}
	case "abs", "sqrt_scale", "log10_scale":
		for i := range v {
			v[i] = scaled(name, v[i])
		}
		out.Scale++
	case "derivate", "increase", "rate":
		stepsCompat(name, in, v, c)
		out.Scale = 4 * (in.Scale + 1) / math.Min(1, float64(in.Resolution)/1000)
	case "mavg":
		k := int(max(1, a.span/in.Resolution))
		for i := range v {
			from := max(0, i-k+1)
			v[i] = sum(in.Values[from:i+1]) / float64(i+1-from)
			c[i] = sum(in.Confidence[from:i+1]) / float64(i+1-from)
		}
	case "ewma":
		alpha := 1 - math.Exp(-float64(in.Resolution)/float64(max(1, a.span)))
		if len(a.numbers) > 0 {
			alpha = a.numbers[0]
		}
		weightedCompat(in, v, c, alpha)
	case "fill":
		fillCompat(in, v, a.word)
	case "replace_below_confidence":
		for i := range v {
			if in.Confidence[i] <= a.numbers[0] {
				v[i] = a.numbers[1]
			}
		}
	}
	out.rescale()
	return out
}

func stepsCompat(name string, in Series, v, c []float64) {
	for i := len(v) - 1; i > 0; i-- {
		v[i] = in.Values[i] - in.Values[i-1]
		if name != "derivate" {
			v[i] = grown(in.Values[i-1], in.Values[i])
		}
		if name == "rate" {
			v[i] /= float64(in.Resolution) / 1000
		}
		c[i] = (in.Confidence[i] + in.Confidence[i-1]) / 2
	}
	for i := 0; i < len(v); i += max(1, in.restart) {
		if i > 0 && in.restart == 0 {
			break
		}
		v[i], c[i] = 0, 0
		if i+1 < len(v) && in.restart != 1 {
			v[i] = v[i+1]
		}
	}
}

func weightedCompat(in Series, v, c []float64, alpha float64) {
	begun := false
	y, s := 0.0, 0.0
	for i := range v {
		if !math.IsNaN(in.Values[i]) {
			if !begun {
				y, s, begun = in.Values[i], in.Confidence[i], true
			} else {
				y = (1-alpha)*y + alpha*in.Values[i]
				s = (1-alpha)*s + alpha*in.Confidence[i]
			}
		}
		if begun {
			v[i] = y
		}
		c[i] = s
	}
}

func fillCompat(in Series, v []float64, word string) {
	before := func(i int) int {
		for ; i >= 0 && in.Confidence[i] == 0; i-- {
		}
		return i
	}
	after := func(i int) int {
		for ; i < len(v) && in.Confidence[i] == 0; i++ {
		}
		return i
	}
	for i := range v {
		if in.Confidence[i] > 0 {
			continue
		}
		l, r := before(i), after(i)
		switch {
		case word == "null":
			v[i] = math.NaN()
		case word == "zero":
			v[i] = 0
		case l < 0:
		case word == "previous" || r == len(v):
			v[i] = in.Values[l]
		default:
			v[i] = in.Values[l] + (in.Values[r]-in.Values[l])*float64(i-l)/float64(r-l)
		}
	}
}
