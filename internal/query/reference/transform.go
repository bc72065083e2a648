package reference

import (
	"math"
	"slices"

	"dalmatiner/internal/dql"
)

// transforms are the functions that give as many values as they take.
var transforms = map[string]bool{
	"confidence": true, "abs": true, "sqrt_scale": true, "log10_scale": true, "derivate": true, "increase": true, "rate": true,
	"mavg": true, "ewma": true, "fill": true, "replace_below_confidence": true,
}

// moving are those of them that take a span.
var moving = map[string]bool{"mavg": true, "ewma": true}

func transform(name string, in Series, numbers []float64, span int64, word string) Series {
	out := in
	out.hidden, out.words = false, nil
	out.Values, out.Confidence = slices.Clone(in.Values), slices.Clone(in.Confidence)
	v, c := out.Values, out.Confidence
	if name == "confidence" || name == "replace_below_confidence" || name == "fill" && word != "null" {
		out.Known = slices.Repeat([]bool{true}, len(v))
	}
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
		steps(name, in, v, c)
		out.Scale = 4 * (in.Scale + 1) / math.Min(1, float64(in.Resolution)/1000)
	case "mavg":
		k := int(max(1, span/in.Resolution))
		for i := range v {
			from := max(0, i-k+1)
			v[i] = sum(in.Values[from:i+1]) / float64(i+1-from)
			c[i] = sum(in.Confidence[from:i+1]) / float64(i+1-from)
		}
	case "ewma":
		alpha := 1 - math.Exp(-float64(in.Resolution)/float64(max(1, span)))
		if len(numbers) > 0 {
			alpha = numbers[0]
		}
		weighted(in, v, c, alpha)
	case "fill":
		fill(in, v, word)
	case "replace_below_confidence":
		for i := range v {
			if in.Confidence[i] <= numbers[0] {
				v[i] = numbers[1]
			}
		}
	}
	out.rescale()
	return out
}

func scaled(name string, v float64) float64 {
	size := math.Abs(v)
	switch {
	case name == "abs" || v == 0:
		return size
	case name == "sqrt_scale":
		size = math.Sqrt(size)
	default:
		size = math.Log10(size)
	}
	if v < 0 {
		return -size
	}
	return size
}

func steps(name string, in Series, v, c []float64) {
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

func weighted(in Series, v, c []float64, alpha float64) {
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

func fill(in Series, v []float64, word string) {
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

// topk shows each value that at most k-1 others of its time are beyond.
func topk(name string, in []Series, k int) ([]Series, error) {
	length := 0
	for _, s := range in {
		if s.Resolution != in[0].Resolution {
			return nil, ErrMixedResolutions
		}
		length = max(length, len(s.Values))
	}
	out := make([]Series, len(in))
	for i, s := range in {
		out[i] = s
		out[i].Values, out[i].Confidence = slices.Clone(s.Values), slices.Clone(s.Confidence)
		out[i].hidden = true
		for j, v := range s.Values {
			values, _ := column(in, j)
			beyond := 0
			for _, other := range values {
				if name == "topk" && other > v || name == "bottomk" && other < v {
					beyond++
				}
			}
			if beyond >= k || math.IsNaN(v) {
				out[i].Values[j], out[i].Confidence[j] = math.NaN(), 0
			} else {
				out[i].hidden = false
			}
		}
	}
	return out, nil
}

// limit is TOP and BOTTOM.
func limit(list []Series, l *dql.Limit) []Series {
	if int64(len(list)) <= l.N {
		return list
	}
	rank := func(s Series) float64 {
		if len(s.Values) == 0 {
			return math.NaN()
		}
		var numbers []float64
		for _, a := range l.By.Args {
			numbers = append(numbers, a.(*dql.Number).Value)
		}
		return window(l.By.Name, s, s.Resolution*int64(len(s.Values)), numbers).Values[0]
	}
	slices.SortStableFunc(list, func(a, b Series) int {
		va, vb := rank(a), rank(b)
		switch {
		case math.IsNaN(va) && math.IsNaN(vb) || va == vb:
			return 0
		case math.IsNaN(vb) || l.Bottom && va < vb || !l.Bottom && va > vb:
			return -1
		}
		return 1
	})
	return list[:l.N]
}
