package plan

import (
	"fmt"

	"dalmatiner/internal/query/function"
)

// across plans one series from many by a quantile or a rank; none gives none.
func (p *planner) across(a arguments, q float64, k int) (value, error) {
	v := value{typ: function.TypeMetric}
	if len(a.series) == 0 {
		return v, nil
	}
	l, err := p.listOf(a.pos, a.series)
	if err != nil {
		return v, err
	}
	key := fmt.Sprintf("across %d %x %d of%s", a.fn.Op, q, k, l.key())
	n := p.intern(p.name(key), func(n *Node) {
		n.Op = &Across{Fn: a.fn.Op, Quantile: q, Rank: k}
		n.Resolution, n.Values, n.Restart, n.Calendar, n.Form = l.res, l.longest, l.restart, l.calendar,
			p.shape("of its own "+key)
		p.bill.buffers += len(l.nodes)
	}, l.nodes...)
	p.describe(n, "%s", a.fn.Name)
	v.series = []Series{{Of: n, Key: a.series[0].Key, tags: a.series[0].tags}}
	return v, nil
}

// pick plans the series of topk and bottomk.
func (p *planner) pick(a arguments) (value, error) {
	k := a.consts[0]
	if k.number < 1 {
		return value{}, p.errorAt(k.pos, nil, "%s keeps at least 1 series, not %v", a.fn.Name, k.number)
	}
	threshold, err := p.across(a, 0, int(min(k.number, 1<<31)))
	if err != nil || len(threshold.series) == 0 {
		return threshold, err
	}
	t := threshold.series[0].Of
	return p.each(a.series, function.TypeMetric, func(in *Node) (*Node, error) {
		key := fmt.Sprintf("pick %d %d %d", a.fn.Op, t.ID, in.ID)
		z := p.intern(p.name(key), func(n *Node) {
			n.Op = &Pick{Fn: a.fn.Op}
			n.Resolution, n.Values, n.Restart, n.Calendar, n.Form = in.Resolution, in.Values, in.Restart,
				in.Calendar, p.shape("of its own "+key)
			p.bill.buffers += 2
		}, in, t)
		p.describe(z, "within %s", a.fn.Name)
		return z, nil
	})
}

// list is what the inputs of a combination have in common.
type list struct {
	res     int64
	longest int64
	aligned bool  // outputs become complete in step
	restart int64 // of all of them
	nodes   []*Node

	calendar *Calendar
}

// listOf checks that series can be combined; there is at least one.
func (p *planner) listOf(pos int, inputs []Series) (list, error) {
	first := inputs[0].Of
	l := list{res: first.Resolution, aligned: true, restart: first.Restart, calendar: first.Calendar}
	if err := p.Grow(seriesSize * int64(len(inputs))); err != nil {
		return l, err
	}
	l.nodes = make([]*Node, 0, len(inputs))
	for _, in := range inputs {
		c := in.Of
		if c.Calendar != first.Calendar {
			return l, p.errorAt(pos, nil, "%s and %s cannot be combined: they begin at different times",
				first.steps(), c.steps())
		}
		if c.Resolution != first.Resolution {
			return l, p.errorAt(pos, nil,
				"Combination functions can't have mix resolutions as children. (%d ms and %d ms)",
				first.Resolution, c.Resolution)
		}
		l.aligned = l.aligned && c.Form == first.Form
		l.nodes = append(l.nodes, c)
		l.longest = max(l.longest, c.Values)
		if c.Restart != l.restart {
			l.restart = 0
		}
	}
	return l, nil
}

// steps says how far apart the outputs of a node are.
func (n *Node) steps() string {
	if n.Calendar != nil {
		return fmt.Sprintf("spans of %v of the calendar", n.Calendar)
	}
	return fmt.Sprintf("steps of %d ms", n.Resolution)
}

// key names the nodes in their order.
func (l *list) key() string {
	key := make(naming, 0, 8*len(l.nodes))
	for _, n := range l.nodes {
		key = key.number(int64(n.ID))
	}
	return string(key)
}

// combine plans one series from many; none gives none.
func (p *planner) combine(pos int, fn function.Op, inputs []Series) (value, error) {
	return p.combineAs(pos, fn, inputs, fn == function.Diff || fn == function.Product ||
		fn == function.Quotient)
}

// combineAs is combine that says whether all inputs have to have a value.
func (p *planner) combineAs(pos int, fn function.Op, inputs []Series, strict bool) (value, error) {
	v := value{typ: function.TypeMetric}
	if len(inputs) == 0 {
		return v, nil
	}
	l, err := p.listOf(pos, inputs)
	if err != nil {
		return v, err
	}
	var splits []uint8
	if summary := fn == function.Sum || fn == function.Avg || fn == function.Min ||
		fn == function.Max; summary && !p.opt.Compat {
		splits = joinOrder(l.nodes, inputs)
	}
	strict = strict && !p.opt.Compat
	key := fmt.Sprintf("combine %d%s", fn, l.key())
	if strict {
		key = "strictly " + key
	}
	n := p.intern(p.name(key), func(n *Node) {
		op := &Combine{Fn: fn, Aligned: l.aligned, Strict: strict, Splits: splits}
		p.bill.partials += max(min(len(inputs)-1, maxPartials)-1, 0)
		n.Op, n.Resolution, n.Values, n.Restart, n.Calendar, n.Form = op, l.res, l.longest, l.restart,
			l.calendar, inputs[0].Of.Form
		if p.opt.Compat {
			op.Weights = oldWeights(fn, len(inputs))
		}
		if !l.aligned {
			n.Form = p.shape("of its own " + key)
			p.bill.buffers += len(l.nodes)
		}
	}, l.nodes...)
	p.describe(n, "%s of %d series", function.NameOf(function.KindCombine, fn), len(inputs))
	v.series = []Series{{Of: n, Key: inputs[0].Key, tags: inputs[0].tags}}
	return v, nil
}
