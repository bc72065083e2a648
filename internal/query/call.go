package query

import (
	"fmt"
	"math"
	"slices"

	"dalmatiner/internal/dql"
	"dalmatiner/internal/query/function"
)

// arguments are what a function is applied to.
type arguments struct {
	pos    int // of the call
	fn     *function.Entry
	series []series
	consts []value // in their order
}

func (p *planner) call(c *dql.Call) (value, error) {
	types := make([]function.Type, 0, 4) // as few have more
	a := arguments{pos: c.Pos()}
	for _, e := range c.Args {
		v, err := p.expr(e)
		if err != nil {
			return value{}, err
		}
		types = append(types, v.typ)
		if v.typ == function.TypeMetric || v.typ == function.TypeHistogram {
			if err := p.grow(seriesSize * int64(len(v.series))); err != nil {
				return value{}, err
			}
			if a.series == nil {
				a.series = slices.Clip(v.series)
			} else {
				a.series = append(a.series, v.series...)
			}
		} else {
			a.consts = append(a.consts, v)
		}
	}
	var ok bool
	if a.fn, ok = function.Lookup(c.Name, types); !ok {
		return value{}, p.unrecognised(c.Pos(), c.Name, types, a.consts)
	}
	if err := p.lonely(c, a.fn); err != nil {
		return value{}, err
	}
	return p.apply(a)
}

// apply plans a function.
func (p *planner) apply(a arguments) (value, error) {
	fn := a.fn.Op
	switch a.fn.Kind {
	case function.KindCombine:
		return p.combine(a.pos, fn, a.series)
	case function.KindGather:
		q := a.consts[0]
		if q.number < 0 || q.number > 1 {
			return value{}, p.errorAt(q.pos, nil, "a quantile is between 0 and 1, not %v", q.number)
		}
		return p.gather(a, q.number, 0)
	case function.KindPick:
		return p.pick(a)
	case function.KindWindow:
		return p.windows(a)
	}
	return p.each(a.series, a.fn.Kind.Result(), func(in node) (node, error) {
		n, err := p.one(a, in)
		if err == nil && p.explain {
			p.describe(n, "%s", a.fn.Name)
		}
		return n, err
	})
}

// one plans a function of one series.
func (p *planner) one(a arguments, n node) (node, error) {
	fn := a.fn.Op
	switch a.fn.Kind {
	case function.KindScalar:
		return p.scalar(a.pos, fn, n, a.consts[0].number)
	case function.KindMap:
		return p.unary(n, fmt.Sprintf("map %d", fn), func(o over) node { return &apply{over: o, fn: fn} }), nil
	case function.KindReplace:
		return p.replace(n, a.consts[0].number, a.consts[1].number), nil
	case function.KindStep:
		return p.step(n, fn), nil
	case function.KindMoving:
		return p.moving(a, n)
	case function.KindFill:
		return p.fill(n, a.consts[0].word, a.pos)
	case function.KindConfidence:
		return p.unary(n, "confidence", func(o over) node {
			o.needs = true
			return &confidence{o}
		}), nil
	case function.KindHistogram:
		return p.histogram(a, n)
	}
	return p.statistic(a, n.(*histogram))
}

// each applies a function of one series to every series of a value.
func (p *planner) each(inputs []series, typ function.Type, fn func(node) (node, error)) (value, error) {
	v := value{typ: typ, series: make([]series, len(inputs))}
	for i, s := range inputs {
		n, err := fn(s.of)
		if err == nil {
			err = p.grow(seriesSize)
		}
		if err != nil {
			return v, err
		}
		v.series[i] = s
		v.series[i].of = n
	}
	return v, nil
}

// windows plans an aggregate over time.
func (p *planner) windows(a arguments) (value, error) {
	span := a.consts[len(a.consts)-1].span
	number := a.consts[0].number // unused where there is only the span
	if a.fn.Op == function.Percentile {
		if p.opt.Compat && a.consts[0].typ == function.TypeInteger {
			number *= 0.5
		}
		if number < 0 || number > 1 {
			if p.opt.Compat {
				return p.each(a.series, function.TypeMetric, func(n node) (node, error) { return p.nothing(n, span), nil })
			}
			return value{}, p.errorAt(a.consts[0].pos, nil, "a percentile is between 0 and 1, not %v; percentiles of histograms go to 100", number)
		}
	}
	return p.each(a.series, function.TypeMetric, func(n node) (node, error) { return p.window(a, n, number, span) })
}

func (p *planner) window(a arguments, in node, number float64, span int64) (node, error) {
	c := in.shared()
	size := max(1, span/c.res)
	name := p.name("window").number(int64(a.fn.Op), size, int64(c.id))
	if len(a.consts) > 1 {
		name = name.number(int64(math.Float64bits(number)))
	}
	var err error
	n := p.intern(name, func() node {
		if a.fn.Op == function.Percentile || a.fn.Op == function.Median {
			err = p.hold(a.pos, 8*min(size, c.n))
		}
		w := &window{over: over{in: in}, size: size}
		w.by, w.needs = newReducer(a.fn.Op, number, min(size, c.n), c.res)
		w.res, w.n = c.res*size, (c.n+size-1)/size
		w.form = p.shape(p.name("window").number(size, int64(c.form)))
		return w
	}, in)
	if p.explain {
		p.describe(n, "%s of %d", function.NameOf(function.KindWindow, a.fn.Op), size)
	}
	return n, err
}

// newReducer returns the reducer of a function for windows of up to most
// inputs, and whether it needs confidences. A step of its inputs is res ms.
func newReducer(fn function.Op, number float64, most, res int64) (r reducer, needs bool) {
	switch fn {
	case function.Sum, function.Avg:
		return &total{mean: fn == function.Avg}, false
	case function.Min, function.Max:
		return &extreme{least: fn == function.Min}, false
	case function.Count, function.Empty:
		return &counted{others: fn == function.Empty}, true
	case function.First, function.Last:
		return &ends{last: fn == function.Last}, false
	case function.Percentile:
		return &percentile{p: number, most: most}, false
	case function.Median:
		return &percentile{p: 0.5, most: most}, false
	case function.Variance, function.Stddev:
		return &variance{root: fn == function.Stddev}, false
	case function.Increase:
		return &growth{}, false
	case function.Rate:
		return &growth{seconds: float64(res) / 1000}, false
	}
	f, ok := finders[fn]
	if !ok {
		panic(fmt.Sprintf("query: reducing function %d", fn))
	}
	f.threshold = number
	return &f, f.byConf
}

// moving plans a moving or weighted average.
func (p *planner) moving(a arguments, in node) (node, error) {
	c, by := in.shared(), a.consts[0]
	if a.fn.Op == function.MovingAvg {
		size := max(1, by.span/c.res)
		var err error
		n := p.unary(in, fmt.Sprintf("mavg %d", size), func(o over) node {
			err = p.hold(a.pos, 4*8*min(size, o.n))
			return &moving{over: o, size: size}
		})
		return n, err
	}
	alpha := by.number
	if by.typ == function.TypeTime {
		alpha = -math.Expm1(-float64(c.res) / float64(max(1, by.span)))
	}
	if !(alpha > 0 && alpha <= 1) {
		return nil, p.errorAt(by.pos, nil, "the weight of an exponentially weighted mean is above 0 and at most 1, not %v", alpha)
	}
	return p.unary(in, fmt.Sprintf("ewma %x", alpha), func(o over) node { return &ewma{over: o, alpha: alpha} }), nil
}

// histogram plans the counting; what is asked of it comes later.
func (p *planner) histogram(a arguments, in node) (node, error) {
	highest, digits := a.consts[0], a.consts[1]
	if highest.number < 2 {
		return nil, p.errorAt(highest.pos, nil, "the greatest value of a histogram is at least 2, not %v", highest.number)
	}
	if digits.number < 1 || digits.number > 5 {
		return nil, p.errorAt(digits.pos, nil, "a histogram has 1 to 5 significant digits, not %v", digits.number)
	}
	c := in.shared()
	size := max(1, a.consts[2].span/c.res)
	h := &histogram{over: over{in: in}, highest: int64(highest.number), digits: int(digits.number), size: size}
	var err error
	n := p.intern(p.name("histogram").number(h.highest, int64(h.digits), size, int64(c.id)), func() node {
		err = p.hold(a.pos, histogramBytes(h.highest, h.digits))
		h.res, h.n = c.res*size, c.n/size
		h.form = p.shape(p.name("whole windows").number(size, int64(c.form)))
		return h
	}, in)
	p.describe(n, "histogram of %d up to %d with %d digits", size, h.highest, h.digits)
	return n, err
}

func (p *planner) statistic(a arguments, h *histogram) (node, error) {
	s := statisticOf{fn: a.fn.Op}
	switch s.fn {
	case function.Median:
		s.p = 50
	case function.Percentile:
		if s.p = a.consts[0].number; s.p < 0 || s.p > 100 {
			return nil, p.errorAt(a.consts[0].pos, nil, "a percentile of a histogram is between 0 and 100, not %v", s.p)
		}
	}
	return p.unary(h, fmt.Sprintf("statistic %d %x", s.fn, s.p), func(o over) node {
		h.asked = append(h.asked, s)
		return &statistic{over: o, of: h, index: len(h.asked) - 1}
	}), nil
}
