package reference

import (
	"math"
	"slices"

	"dalmatiner/internal/dql"
)

// histogram evaluates a number out of a histogram: h is the histogram's call.
// A value counts as the range of values that share its significant digits.
func (e *evaluator) histogram(c, h *dql.Call) ([]Series, error) {
	in, err := e.eval(h.Args[0])
	if err != nil {
		return nil, err
	}
	g := grid{highest: int64(h.Args[1].(*dql.Number).Value), sub: 2}
	for g.sub < 2*int64(math.Pow(10, h.Args[2].(*dql.Number).Value)) {
		g.sub *= 2
	}
	p := 50.0
	if len(c.Args) > 1 {
		p = c.Args[1].(*dql.Number).Value
	}
	length, err := millis(h.Args[3].(*dql.Duration))
	if err != nil {
		return nil, err
	}
	for i, s := range in {
		size := int(max(1, length/s.Resolution))
		out := s
		out.words = nil
		out.Resolution, out.Values, out.Confidence, out.Known, out.restart = s.Resolution*int64(size), nil, nil, nil, 0
		for from := 0; from+size <= len(s.Values); from += size {
			out.Values = append(out.Values, g.number(c.Name, s.Values[from:from+size], p))
			out.Confidence = append(out.Confidence, 1)
			out.Known = append(out.Known, slices.Contains(s.Known[from:from+size], true))
		}
		out.Scale, out.hidden = out.Scale+1e6, false
		in[i] = out
	}
	return in, nil
}

type grid struct{ highest, sub int64 }

// width returns how many values are not told from v.
func (g grid) width(v int64) int64 {
	w := int64(1)
	for v/w >= g.sub {
		w *= 2
	}
	return w
}

// number returns what is asked of the values that are counted.
func (g grid) number(name string, values []float64, p float64) float64 {
	largest := g.sub
	for largest <= g.highest {
		largest *= 2
	}
	var list []int64
	for _, f := range values {
		if v := math.Round(f); v >= 0 && v < float64(largest) {
			list = append(list, int64(v)/g.width(int64(v))*g.width(int64(v)))
		}
	}
	if len(list) == 0 {
		return 0
	}
	slices.Sort(list)
	var middle []float64
	for _, v := range list {
		middle = append(middle, float64(v+g.width(v)/2))
	}
	switch name {
	case "min":
		return float64(list[0])
	case "max":
		v := list[len(list)-1]
		return float64(v + g.width(v) - 1)
	case "mean":
		return sum(middle) / float64(len(middle))
	case "stddev":
		return math.Sqrt(variance(middle))
	}
	rank := int(math.Floor(p/100*float64(len(list)) + 0.5))
	v := list[min(max(rank, 1), len(list))-1]
	if p == 0 {
		return float64(v)
	}
	return float64(v + g.width(v) - 1)
}
