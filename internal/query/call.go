package query

import (
	"fmt"
	"math"
	"slices"

	"dalmatiner/internal/dql"
)

// arguments are what a function is applied to.
type arguments struct {
	pos    int // of the call
	fn     *function
	series []series
	consts []value // in their order
}

func (p *planner) call(c *dql.Call) (value, error) {
	types := make([]argType, 0, 4) // as few have more
	a := arguments{pos: c.Pos()}
	for _, e := range c.Args {
		v, err := p.expr(e)
		if err != nil {
			return value{}, err
		}
		types = append(types, v.typ)
		if v.typ == typeMetric || v.typ == typeHistogram {
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
	if a.fn, ok = lookupFunction(c.Name, types); !ok {
		return value{}, p.unrecognised(c.Pos(), c.Name, types, a.consts)
	}
	if err := p.lonely(c, a.fn); err != nil {
		return value{}, err
	}
	return p.apply(a)
}

// apply plans a function.
func (p *planner) apply(a arguments) (value, error) {
	fn := a.fn.fn
	switch a.fn.kind {
	case kindCombine:
		return p.combine(a.pos, fn, a.series)
	case kindGather:
		q := a.consts[0]
		if q.number < 0 || q.number > 1 {
			return value{}, p.errorAt(q.pos, nil, "a quantile is between 0 and 1, not %v", q.number)
		}
		return p.gather(a, q.number, 0)
	case kindPick:
		return p.pick(a)
	case kindWindow:
		return p.windows(a)
	}
	return p.each(a.series, a.fn.kind.result(), func(in node) (node, error) {
		n, err := p.one(a, in)
		if err == nil && p.explain {
			p.describe(n, "%s", a.fn.name)
		}
		return n, err
	})
}

// one plans a function of one series.
func (p *planner) one(a arguments, n node) (node, error) {
	fn := a.fn.fn
	switch a.fn.kind {
	case kindScalar:
		return p.scalar(a.pos, fn, n, a.consts[0].number)
	case kindMap:
		return p.unary(n, fmt.Sprintf("map %d", fn), func(o over) node { return &apply{over: o, fn: fn} }), nil
	case kindReplace:
		return p.replace(n, a.consts[0].number, a.consts[1].number), nil
	case kindStep:
		return p.step(n, fn), nil
	case kindMoving:
		return p.moving(a, n)
	case kindFill:
		return p.fill(n, a.consts[0].word, a.pos)
	case kindConfidence:
		return p.unary(n, "confidence", func(o over) node {
			o.needs = true
			return &confidence{o}
		}), nil
	case kindHistogram:
		return p.histogram(a, n)
	}
	return p.statistic(a, n.(*histogram))
}

// each applies a function of one series to every series of a value.
func (p *planner) each(inputs []series, typ argType, fn func(node) (node, error)) (value, error) {
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
	if a.fn.fn == fnPercentile {
		if p.opt.Compat && a.consts[0].typ == typeInteger {
			number *= 0.5
		}
		if number < 0 || number > 1 {
			if p.opt.Compat {
				return p.each(a.series, typeMetric, func(n node) (node, error) { return p.nothing(n, span), nil })
			}
			return value{}, p.errorAt(a.consts[0].pos, nil, "a percentile is between 0 and 1, not %v; percentiles of histograms go to 100", number)
		}
	}
	return p.each(a.series, typeMetric, func(n node) (node, error) { return p.window(a, n, number, span) })
}

func (p *planner) window(a arguments, in node, number float64, span int64) (node, error) {
	c := in.shared()
	size := max(1, span/c.res)
	name := p.name("window").number(int64(a.fn.fn), size, int64(c.id))
	if len(a.consts) > 1 {
		name = name.number(int64(math.Float64bits(number)))
	}
	var err error
	n := p.intern(name, func() node {
		if a.fn.fn == fnPercentile || a.fn.fn == fnMedian {
			err = p.hold(a.pos, 8*min(size, c.n))
		}
		w := &window{over: over{in: in}, size: size}
		w.by, w.needs = newReducer(a.fn.fn, number, min(size, c.n), c.res)
		w.res, w.n = c.res*size, (c.n+size-1)/size
		w.form = p.shape(p.name("window").number(size, int64(c.form)))
		return w
	}, in)
	if p.explain {
		p.describe(n, "%s of %d", nameOf(kindWindow, a.fn.fn), size)
	}
	return n, err
}

// newReducer returns the reducer of a function for windows of up to most
// inputs, and whether it needs confidences. A step of its inputs is res ms.
func newReducer(fn opFunc, number float64, most, res int64) (r reducer, needs bool) {
	switch fn {
	case fnSum, fnAvg:
		return &total{mean: fn == fnAvg}, false
	case fnMin, fnMax:
		return &extreme{least: fn == fnMin}, false
	case fnCount, fnEmpty:
		return &counted{others: fn == fnEmpty}, true
	case fnFirst, fnLast:
		return &ends{last: fn == fnLast}, false
	case fnPercentile:
		return &percentile{p: number, most: most}, false
	case fnMedian:
		return &percentile{p: 0.5, most: most}, false
	case fnVariance, fnStddev:
		return &variance{root: fn == fnStddev}, false
	case fnIncrease:
		return &growth{}, false
	case fnRate:
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
	if a.fn.fn == fnMovingAvg {
		size := max(1, by.span/c.res)
		var err error
		n := p.unary(in, fmt.Sprintf("mavg %d", size), func(o over) node {
			err = p.hold(a.pos, 4*8*min(size, o.n))
			return &moving{over: o, size: size}
		})
		return n, err
	}
	alpha := by.number
	if by.typ == typeTime {
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
	s := statisticOf{fn: a.fn.fn}
	switch s.fn {
	case fnMedian:
		s.p = 50
	case fnPercentile:
		if s.p = a.consts[0].number; s.p < 0 || s.p > 100 {
			return nil, p.errorAt(a.consts[0].pos, nil, "a percentile of a histogram is between 0 and 100, not %v", s.p)
		}
	}
	return p.unary(h, fmt.Sprintf("statistic %d %x", s.fn, s.p), func(o over) node {
		h.asked = append(h.asked, s)
		return &statistic{over: o, of: h, index: len(h.asked) - 1}
	}), nil
}
