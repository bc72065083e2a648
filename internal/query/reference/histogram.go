package reference

import (
	"math"
	"slices"

	"dalmatiner/internal/query/dql"
)

// histogram evaluates a number out of a histogram (rule R9): h is the histogram's call.
// A value counts as the range of values that share its significant digits.
func (e *evaluator) histogram(c, h *dql.Call, before lookback) ([]Series, error) {
	a, err := histogramOf(c, h)
	if err != nil {
		return nil, err
	}
	spans := func(resolution int64) (outputs, spans int) {
		size := spanOf(a.span, resolution)
		return size, before(resolution * int64(size))
	}
	asked := func(resolution int64) int {
		size, n := spans(resolution)
		return size * n
	}
	return e.each(h.Args[:1], asked, func(in Series) Series {
		size, n := spans(in.Resolution)
		out := derived(in, n)
		out.Resolution *= int64(size)
		for from := 0; from < len(in.Values); from += size {
			out.add(a.number(c.Name, in.Values[from:min(from+size, len(in.Values))]), 1)
		}
		out.Scale += 1e6
		return out
	})
}

// histogramCompat leaves out a short last span, and a number of nothing is 0.
func (e *evaluator) histogramCompat(c, h *dql.Call) ([]Series, error) {
	a, err := histogramOf(c, h)
	if err != nil {
		return nil, err
	}
	in, err := e.evalCompat(h.Args[0])
	if err != nil {
		return nil, err
	}
	for i, s := range in {
		size := spanOf(a.span, s.Resolution)
		out := s
		out.Resolution, out.Values, out.Confidence, out.restart = s.Resolution*int64(size), nil, nil, 0
		for from := 0; from+size <= len(s.Values); from += size {
			v := a.number(c.Name, s.Values[from:from+size])
			if math.IsNaN(v) {
				v = 0
			}
			out.add(v, 1)
		}
		out.Scale, out.hidden = out.Scale+1e6, false
		in[i] = out
	}
	return in, nil
}

// counts are the arguments of a histogram and of the number that is asked of it.
type counts struct {
	grid
	percentile float64
	span       int64
}

func histogramOf(c, h *dql.Call) (a counts, err error) {
	a = counts{grid: grid{highest: int64(h.Args[1].(*dql.Number).Value), sub: 2}, percentile: 50}
	for a.sub < 2*int64(math.Pow(10, h.Args[2].(*dql.Number).Value)) {
		a.sub *= 2
	}
	if len(c.Args) > 1 {
		a.percentile = c.Args[1].(*dql.Number).Value
	}
	a.span, err = millis(h.Args[3].(*dql.Duration))
	return a, err
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

// number returns what is asked of the values that are counted, NaN without any.
func (g counts) number(name string, values []float64) float64 {
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
		return math.NaN()
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
	rank := int(math.Floor(g.percentile/100*float64(len(list)) + 0.5))
	v := list[min(max(rank, 1), len(list))-1]
	if g.percentile == 0 {
		return float64(v)
	}
	return float64(v + g.width(v) - 1)
}
