package exec

import (
	"math"
	"math/bits"
	"slices"

	"dalmatiner/internal/query/function"
)

// value returns the quantile, or the rank's value, of the column; a rank that
// is not there is beyond all values.
func (g *across) value() float64 {
	switch {
	case g.Fn == function.Quantile:
		return quantileOf(g.column, g.Quantile)
	case g.Fn == function.TopK && g.Rank > len(g.column):
		return math.Inf(-1)
	case g.Fn == function.TopK:
		return ranked(g.column, len(g.column)-g.Rank)
	case g.Rank > len(g.column):
		return math.Inf(1)
	}
	return ranked(g.column, g.Rank-1)
}

// smallRank is up to how many values sorting is quicker than choosing.
const smallRank = 32

// ranked returns the value that stands at position k of v when it is sorted.
// It reorders v, which holds no NaN. The middle of three values parts v, and
// after as many steps as good parts would need the rest is sorted, so that no
// order of values costs more than that.
func ranked(v []float64, k int) float64 {
	for steps := 2 * bits.Len(uint(len(v))); len(v) > smallRank && steps > 0; steps-- {
		low, high := part(v)
		switch {
		case k < low:
			v = v[:low]
		case k >= high:
			v, k = v[high:], k-high
		default:
			return v[low]
		}
	}
	slices.Sort(v)
	return v[k]
}

// part orders v into values less than one of them, those equal to it, from low
// to high, and those greater.
func part(v []float64) (low, high int) {
	a, b, c := v[0], v[len(v)/2], v[len(v)-1]
	pivot := max(min(a, b), min(max(a, b), c))
	high = len(v)
	for i := 0; i < high; {
		switch {
		case v[i] < pivot:
			v[i], v[low] = v[low], v[i]
			low++
			i++
		case v[i] > pivot:
			high--
			v[i], v[high] = v[high], v[i]
		default:
			i++
		}
	}
	return low, high
}

// pick shows the values of its input that are within a threshold, which is the
// second input, and NaN with confidence 0 elsewhere.
type pick struct {
	common
	queue
	fn    function.Op
	shown bool // any value
}

func (p *pick) coverage() (set, slots int64) { return p.in[0].coverage() }

func (p *pick) next(x *executor, dst block) (block, error) {
	ready, err := p.queue.fill(x, p.Values, p.Confidence)
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
		dst.v = append(dst.v, v)
		if p.Confidence {
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
