package query

import (
	"fmt"

	"dalmatiner/internal/query/function"
)

// unary plans a node that gives one output per input, when it comes.
func (p *planner) unary(in node, key string, build func(over) node) node {
	c := in.shared()
	return p.intern(p.name(key).number(int64(c.id)), func() node {
		return build(over{common: common{res: c.res, n: c.n, form: c.form, piece: c.piece}, in: in})
	}, in)
}

func (p *planner) replace(in node, threshold, with float64) node {
	return p.unary(in, fmt.Sprintf("replace %x %x", threshold, with), func(o over) node {
		o.needs = true
		return &replace{over: o, threshold: threshold, with: with}
	})
}

// step plans a node whose first output waits for the second input.
func (p *planner) step(in node, fn function.Op) node {
	return p.unary(in, fmt.Sprintf("step %d", fn), func(o over) node {
		o.form = p.shape(p.name("steps").number(int64(o.form)))
		return &step{over: o, fn: fn, seconds: float64(o.res) / 1000, every: o.piece}
	})
}

// fill plans what stands in gaps. A line waits for its other end, which may be
// as far away as the range is long.
func (p *planner) fill(in node, with string, pos int) (node, error) {
	var err error
	n := p.unary(in, "fill "+with, func(o over) node {
		if with == "linear" {
			err = p.hold(pos, 2*8*o.n)
			o.late = true
			o.form = p.shape(p.name("lines of").number(int64(in.shared().id)))
		}
		o.needs = true
		return &fill{over: o, with: with}
	})
	return n, err
}

// nothing plans a series without values.
func (p *planner) nothing(in node, span int64) node {
	return p.unary(in, "nothing", func(o over) node {
		o.res *= max(1, span/o.res)
		o.n, o.piece, o.form = 0, 0, p.shape(p.name("nothing"))
		return &nothing{o}
	})
}

// gather plans one series from many by a quantile or a rank; none gives none.
func (p *planner) gather(a arguments, q float64, k int) (value, error) {
	v := value{typ: function.TypeMetric}
	if len(a.series) == 0 {
		return v, nil
	}
	l, err := p.listOf(a.pos, a.series)
	if err != nil {
		return v, err
	}
	key := fmt.Sprintf("gather %d %x %d of%s", a.fn.Op, q, k, l.key())
	n := p.intern(p.name(key), func() node {
		g := &gather{fn: a.fn.Op, q: q, k: k}
		g.res, g.n, g.piece, g.form = l.res, l.longest, l.piece, p.shape(p.name("of its own "+key))
		p.enqueue(&g.queue, l.nodes)
		return g
	}, l.nodes...)
	p.describe(n, "%s", a.fn.Name)
	v.series = []series{{of: n, key: a.series[0].key, tags: a.series[0].tags}}
	return v, nil
}

// pick plans the series of topk and bottomk.
func (p *planner) pick(a arguments) (value, error) {
	k := a.consts[0]
	if k.number < 1 {
		return value{}, p.errorAt(k.pos, nil, "%s keeps at least 1 series, not %v", a.fn.Name, k.number)
	}
	threshold, err := p.gather(a, 0, int(min(k.number, 1<<31)))
	if err != nil || len(threshold.series) == 0 {
		return threshold, err
	}
	t := threshold.series[0].of
	return p.each(a.series, function.TypeMetric, func(n node) (node, error) {
		key := fmt.Sprintf("pick %d %d %d", a.fn.Op, t.shared().id, n.shared().id)
		z := p.intern(p.name(key), func() node {
			c := n.shared()
			z := &pick{fn: a.fn.Op}
			z.res, z.n, z.piece, z.form = c.res, c.n, c.piece, p.shape(p.name("of its own "+key))
			p.enqueue(&z.queue, []node{n, t})
			return z
		}, n, t)
		p.describe(z, "within %s", a.fn.Name)
		return z, nil
	})
}

// list is what the inputs of a combination have in common.
type list struct {
	res     int64
	longest int64
	aligned bool  // outputs become complete in step
	piece   int64 // of all of them
	nodes   []node
}

// listOf checks that series can be combined; there is at least one.
func (p *planner) listOf(pos int, inputs []series) (list, error) {
	first := inputs[0].of.shared()
	l := list{res: first.res, aligned: true, piece: first.piece}
	if err := p.grow(seriesSize * int64(len(inputs))); err != nil {
		return l, err
	}
	l.nodes = make([]node, 0, len(inputs))
	for _, in := range inputs {
		c := in.of.shared()
		if c.res != first.res {
			return l, p.errorAt(pos, nil, "Combination functions can't have mix resolutions as children. (%d ms and %d ms)", first.res, c.res)
		}
		l.aligned = l.aligned && c.form == first.form
		l.nodes = append(l.nodes, in.of)
		l.longest = max(l.longest, c.n)
		if c.piece != l.piece {
			l.piece = 0
		}
	}
	return l, nil
}

// key names the nodes in their order.
func (l *list) key() string {
	key := make(naming, 0, 8*len(l.nodes))
	for _, n := range l.nodes {
		key = key.number(int64(n.shared().id))
	}
	return string(key)
}

// enqueue makes inputs the inputs of a queue, each of which holds a piece
// while a round runs.
func (p *planner) enqueue(q *queue, inputs []node) {
	q.in = inputs
	q.pending = make([]block, len(inputs))
	q.came = make([]int64, len(inputs))
	p.buffers += len(inputs)
}

// combine plans one series from many; none gives none.
func (p *planner) combine(pos int, fn function.Op, inputs []series) (value, error) {
	v := value{typ: function.TypeMetric}
	if len(inputs) == 0 {
		return v, nil
	}
	l, err := p.listOf(pos, inputs)
	if err != nil {
		return v, err
	}
	var splits []uint8
	if summary := fn == function.Sum || fn == function.Avg || fn == function.Min || fn == function.Max; summary && !p.opt.Compat {
		splits = joinOrder(l.nodes, inputs)
	}
	key := fmt.Sprintf("combine %d%s", fn, l.key())
	n := p.intern(p.name(key), func() node {
		z := &combine{fn: fn, aligned: l.aligned, splits: splits}
		p.partials += max(min(len(inputs)-1, maxPartials)-1, 0)
		first := inputs[0].of.shared()
		z.res, z.n, z.piece, z.form = l.res, l.longest, l.piece, first.form
		if p.opt.Compat {
			z.weights = oldWeights(fn, len(inputs))
		}
		z.in = l.nodes
		if l.aligned {
			return z
		}
		z.form = p.shape(p.name("of its own " + key))
		p.enqueue(&z.queue, l.nodes)
		return z
	}, l.nodes...)
	p.describe(n, "%s of %d series", function.NameOf(function.KindCombine, fn), len(inputs))
	v.series = []series{{of: n, key: inputs[0].key, tags: inputs[0].tags}}
	return v, nil
}
