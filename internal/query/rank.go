package query

import (
	"math"
	"slices"
)

// value returns the quantile, or the rank's value, of the column; a rank that
// is not there is beyond all values.
func (g *gather) value() float64 {
	switch {
	case g.fn == fnQuantile:
		return quantileOf(g.column, g.q)
	case g.fn == fnTopK && g.k > len(g.column):
		return math.Inf(-1)
	case g.fn == fnTopK:
		slices.Sort(g.column)
		return g.column[len(g.column)-g.k]
	case g.k > len(g.column):
		return math.Inf(1)
	}
	slices.Sort(g.column)
	return g.column[g.k-1]
}

// pick shows the values of its input that are within a threshold, which is the
// second input, and NaN with confidence 0 elsewhere.
type pick struct {
	common
	queue
	fn    opFunc
	shown bool // any value
}

func (p *pick) needConfidence(want bool) {
	if p.enter(want) {
		p.in[0].needConfidence(want)
		p.in[1].needConfidence(false)
	}
}

func (p *pick) coverage() (set, slots int64) { return p.in[0].coverage() }

func (p *pick) next(x *executor, dst block) (block, error) {
	ready, err := p.queue.fill(x, p.n, p.conf)
	if err != nil {
		return dst, err
	}
	in, threshold := p.head(0, ready), p.head(1, ready)
	for j, v := range in.v {
		t := threshold.v[j]
		in := v >= t && p.fn == fnTopK || v <= t && p.fn == fnBottomK
		p.shown = p.shown || in
		if !in {
			v = math.NaN()
		}
		dst.v = append(dst.v, v)
		if p.conf {
			sure := 0.0
			if in {
				sure = p.pending[0].c[j]
			}
			dst.c = append(dst.c, sure)
		}
	}
	p.drop(0, ready)
	p.drop(1, ready)
	return dst, nil
}
