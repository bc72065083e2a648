package exec

import (
	"math"

	"dalmatiner/internal/query/function"
	"dalmatiner/internal/query/stats"
)

// value returns the quantile, or the rank's value, of the column; a rank that
// is not there is beyond all values.
func (g *across) value() float64 {
	switch {
	case g.Fn == function.Quantile:
		return stats.Quantile(g.column, g.Quantile)
	case g.Fn == function.TopK && g.Rank > len(g.column):
		return math.Inf(-1)
	case g.Fn == function.TopK:
		return stats.Ranked(g.column, len(g.column)-g.Rank)
	case g.Rank > len(g.column):
		return math.Inf(1)
	}
	return stats.Ranked(g.column, g.Rank-1)
}

// pick shows the values of its input that are within a threshold, which is the
// second input, and gaps elsewhere.
type pick struct {
	common
	queue
	fn    function.Op
	shown bool // any value
}

func (p *pick) next(x *executor, dst block) (block, error) {
	ready, err := p.queue.fill(x, p.all, p.Confidence)
	if err != nil {
		return dst, err
	}
	in, threshold := p.head(0, ready), p.head(1, ready)
	for j, v := range in.v {
		t := threshold.v[j]
		in := v >= t && p.fn == function.TopK || v <= t && p.fn == function.BottomK
		p.shown = p.shown || in
		if !in {
			v = math.NaN()
		}
		sure := 0.0
		if in && p.Confidence {
			sure = p.pending[0].c[j]
		}
		dst = dst.put(v, sure, p.Confidence)
	}
	p.drop(0, ready)
	p.drop(1, ready)
	return dst, nil
}
