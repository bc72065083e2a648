package plan

import (
	"fmt"
	"math"
	"slices"

	"dalmatiner/internal/query/dql"
	"dalmatiner/internal/query/function"
	"dalmatiner/internal/query/stats"
)

// arguments are what a function is applied to.
type arguments struct {
	pos    int // of the call
	fn     *function.Entry
	series []Series
	consts []value // in their order
	whole  bool    // the span is all there is
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
			if err := p.Grow(seriesSize * int64(len(v.series))); err != nil {
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
	if err := p.checkCalendar(a); err != nil {
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
	case function.KindAcross:
		q := a.consts[0]
		if q.number < 0 || q.number > 1 {
			return value{}, p.errorAt(q.pos, nil, "a quantile is between 0 and 1, not %v", q.number)
		}
		return p.across(a, q.number, 0)
	case function.KindPick:
		return p.pick(a)
	case function.KindWindow:
		return p.windows(a)
	case function.KindEvents:
		return p.countEvents(a)
	}
	return p.each(a.series, a.fn.Kind.Result(), func(in *Node) (*Node, error) {
		n, err := p.one(a, in)
		if err == nil && p.opt.Explain {
			p.describe(n, "%s", a.fn.Name)
		}
		return n, err
	})
}

// one plans a function of one series.
func (p *planner) one(a arguments, n *Node) (*Node, error) {
	if err := p.checkUneven(a, n); err != nil {
		return nil, err
	}
	fn := a.fn.Op
	switch a.fn.Kind {
	case function.KindScalar:
		return p.scalar(a.pos, fn, n, a.consts[0].number)
	case function.KindMap:
		return p.unary(n, fmt.Sprintf("map %d", fn), &Map{Fn: fn}), nil
	case function.KindReplace:
		return p.replace(n, a.consts[0].number, a.consts[1].number), nil
	case function.KindStep:
		return p.step(n, fn), nil
	case function.KindMoving:
		return p.moving(a, n)
	case function.KindFill:
		return p.fill(n, a.consts[0].word, a.pos)
	case function.KindConfidence:
		return p.unary(n, "confidence", &Confidence{}), nil
	case function.KindHistogram:
		return p.histogram(a, n)
	}
	return p.statistic(a, n)
}

// each applies a function of one series to every series of a value.
func (p *planner) each(inputs []Series, typ function.Type,
	fn func(*Node) (*Node, error)) (value, error) {
	v := value{typ: typ, series: make([]Series, len(inputs))}
	for i, s := range inputs {
		n, err := fn(s.Of)
		if err == nil {
			err = p.Grow(seriesSize)
		}
		if err != nil {
			return v, err
		}
		v.series[i] = s
		v.series[i].Of = n
	}
	return v, nil
}

// windows plans an aggregate over time.
func (p *planner) windows(a arguments) (value, error) {
	span := a.consts[len(a.consts)-1]
	number := a.consts[0].number // unused where there is only the span
	if a.fn.Op == function.Percentile {
		if p.opt.Compat && a.consts[0].typ == function.TypeInteger {
			number *= 0.5
		}
		if number < 0 || number > 1 {
			if p.opt.Compat {
				return p.each(a.series, function.TypeMetric, func(n *Node) (*Node, error) {
					return p.nothing(n, span.span), nil
				})
			}
			return value{}, p.errorAt(a.consts[0].pos, nil,
				"a percentile is between 0 and 1, not %v; percentiles of histograms go to 100", number)
		}
	}
	return p.each(a.series, function.TypeMetric, func(n *Node) (*Node, error) {
		return p.window(a, n, number, span)
	})
}

// windowName begins the name of an aggregate over time.
func (g *graph) windowName(what string, a arguments, number float64) naming {
	name := g.name(what).number(int64(a.fn.Op))
	if len(a.consts) > 1 {
		name = name.number(int64(math.Float64bits(number)))
	}
	return name
}

func (p *planner) window(a arguments, in *Node, number float64, span value) (*Node, error) {
	if err := p.checkUneven(a, in); err != nil {
		return nil, err
	}
	if span.calendar != nil {
		return p.calendarWindow(a, in, number, span)
	}
	if in.Calendar != nil && !a.whole {
		return nil, p.errorAt(span.pos, nil,
			"spans of %v are aggregated over spans of the calendar, such as 1mo or 1y", in.Calendar)
	}
	size := max(1, span.span/in.Resolution)
	var err error
	n := p.internOver(in, p.windowName("window", a, number).number(size), func(n *Node) {
		if a.fn.Op == function.Percentile || a.fn.Op == function.Median {
			err = p.hold(a.pos, 8*min(size, in.Values))
		}
		op := nextOf(&p.spare.windows, len(p.out.Nodes))
		*op = Window{Fn: a.fn.Op, Number: number, Size: size}
		n.Op = op
		n.Resolution, n.Values = in.Resolution*size, (in.Values+size-1)/size
		n.Form = p.shape("window", size, int64(in.Form))
	})
	if p.opt.Explain {
		p.describe(n, "%s of %d", function.NameOf(function.KindWindow, a.fn.Op), size)
	}
	return n, err
}

// moving plans a moving or weighted average.
func (p *planner) moving(a arguments, in *Node) (*Node, error) {
	by := a.consts[0]
	if a.fn.Op == function.MovingAvg {
		size := max(1, by.span/in.Resolution)
		var err error
		n := p.unaryWith(in, fmt.Sprintf("mavg %d", size), func(n *Node) {
			err = p.hold(a.pos, 2*stats.SlidingBytes*min(size, n.Values))
			n.Op = &MovingAvg{Size: size}
		})
		return n, err
	}
	alpha, span := by.number, int64(0)
	if by.typ == function.TypeTime {
		alpha = -math.Expm1(-float64(in.Resolution) / float64(max(1, by.span)))
		if !p.opt.Compat {
			span = max(1, by.span)
		}
	}
	if !(alpha > 0 && alpha <= 1) {
		return nil, p.errorAt(by.pos, nil,
			"the weight of an exponentially weighted mean is above 0 and at most 1, not %v", alpha)
	}
	return p.unary(in, fmt.Sprintf("ewma %x %d", alpha, span), &Ewma{alpha, span}), nil
}

// histogram plans the counting; what is asked of it comes later.
func (p *planner) histogram(a arguments, in *Node) (*Node, error) {
	highest, digits := a.consts[0], a.consts[1]
	if highest.number < 2 {
		return nil, p.errorAt(highest.pos, nil, "the greatest value of a histogram is at least 2, not %v",
			highest.number)
	}
	if digits.number < 1 || digits.number > 5 {
		return nil, p.errorAt(digits.pos, nil, "a histogram has 1 to 5 significant digits, not %v",
			digits.number)
	}
	size := max(1, a.consts[2].span/in.Resolution)
	h := &Histogram{Highest: int64(highest.number), Digits: int(digits.number), Size: size}
	var err error
	n := p.internOver(in, p.name("histogram").number(h.Highest, int64(h.Digits), size), func(n *Node) {
		err = p.hold(a.pos, histogramBytes(h.Highest, h.Digits))
		n.Op, n.Resolution, n.Values = h, in.Resolution*size, (in.Values+size-1)/size
		if p.opt.Compat {
			n.Values = in.Values / size
		}
		n.Form = p.shape("whole windows", size, int64(in.Form))
	})
	p.describe(n, "histogram of %d up to %d with %d digits", size, h.Highest, h.Digits)
	return n, err
}

func (p *planner) statistic(a arguments, in *Node) (*Node, error) {
	h, s := in.Op.(*Histogram), Statistic{Fn: a.fn.Op}
	switch s.Fn {
	case function.Median:
		s.Percentile = 50
	case function.Percentile:
		if s.Percentile = a.consts[0].number; s.Percentile < 0 || s.Percentile > 100 {
			return nil, p.errorAt(a.consts[0].pos, nil,
				"a percentile of a histogram is between 0 and 100, not %v", s.Percentile)
		}
	}
	return p.unaryWith(in, fmt.Sprintf("statistic %d %x", s.Fn, s.Percentile), func(n *Node) {
		h.Asked = append(h.Asked, s)
		n.Op = &PickStatistic{Index: len(h.Asked) - 1}
	}), nil
}
