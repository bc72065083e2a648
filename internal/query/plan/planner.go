package plan

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"dalmatiner/internal/query/calendar"
	"dalmatiner/internal/query/dql"
	"dalmatiner/internal/query/function"
	"dalmatiner/internal/query/source"
)

// planner resolves the names of a query and turns its tree into a graph of nodes.
type planner struct {
	graph

	buckets map[string]bucket
	hits    map[string][][]byte // of a pattern in a bucket
	named   []dql.DimVar        // dimensions that name the field being planned
	wanted  []dql.DimVar        // they and those in its metadata
	found   bool                // a selector has a hit
	looked  int                 // names that selectors without one were compared with
}

// tag is a tag of a series that a lookup found.
type tag = source.Tag

// value is a planned expression: series, or a constant.
type value struct {
	typ    function.Type
	pos    int      // of a constant
	series []Series // of TypeMetric and TypeHistogram; hits of a pattern in order of their keys
	number float64
	span   int64 // ms, of TypeTime
	varies bool  // TypeTime of months or years

	calendar *calendar.Step // TypeTime that is a span of the calendar, else nil
	word     string
	events   *dql.Events // of TypeEvents; span is by how much they are shifted
}

// Make plans a query. Errors in the query are *dql.Error; a query that finds no series is
// ErrNoResults. Nothing is read but what says which series there are.
func Make(ctx context.Context, src source.Source, q *dql.Query, opt Options) (*Plan, error) {
	p, err := newPlanner(ctx, src, q, opt)
	if err != nil {
		return nil, err
	}
	if err := p.plan(); err != nil {
		return nil, err
	}
	if len(p.out.Roots) == 0 {
		return nil, ErrNoResults
	}
	if err := p.borrowRest(); err != nil {
		return nil, err
	}
	return p.out, nil
}

func newPlanner(ctx context.Context, src source.Source, q *dql.Query,
	opt Options) (*planner, error) {
	opt.Explain = opt.Explain || q.Explain
	opt.RoundSlots = cmp.Or(opt.RoundSlots, RoundSlots)
	opt.CompatSlots = cmp.Or(opt.CompatSlots, oldReadSlots)
	opt.AloneSlots = cmp.Or(opt.AloneSlots, aloneSlots)
	offers := src.Offers()
	if opt.Older && !offers.Older {
		return nil, fmt.Errorf("%w: older values in place of damaged ones", ErrUnsupported)
	}
	return &planner{
		graph: graph{
			request: request{ctx: ctx, source: src, offers: offers, q: q, opt: opt},
			out:     &Plan{Range: opt.Range, Shown: opt.Shown, Older: opt.Older, Keep: q.Limit},
			nodes:   make(map[name]*Node),
			shapes:  make(map[shape]int),
		},
		buckets: make(map[string]bucket),
		hits:    make(map[string][][]byte),
	}, nil
}

func (p *planner) plan() error {
	if w := p.opt.Width; w > MaxWidth {
		return p.limit(0, "columns per series", int64(w), MaxWidth, "ask for a smaller width")
	}
	for i := range p.q.Fields {
		if err := p.field(&p.q.Fields[i]); err != nil {
			return err
		}
	}
	if err := p.nothingFound(); err != nil {
		return err
	}
	if err := p.nothingJoined(); err != nil {
		return err
	}
	if l := p.q.Limit; l != nil {
		if err := p.top(l); err != nil {
			return err
		}
	}
	for _, r := range p.out.Roots {
		r.Of.needConfidence(p.opt.Confidence, p.opt.Compat)
	}
	for _, n := range p.out.Ranks {
		n.needConfidence(false, p.opt.Compat)
	}
	if len(p.out.Roots) == 0 {
		return nil
	}
	l := &p.graph
	if err := l.lookBack(); err != nil {
		return err
	}
	l.pushDown()
	l.setRounds()
	p.out.Planned = p.bill.planned
	p.out.Series, p.out.Memory = int64(len(p.out.Reads)), l.memory()
	return p.checkMemory(0, p.out.Memory)
}

func (p *planner) field(f *dql.Field) error {
	p.named, p.at = dimensions(f.As), f.Expr.Pos()
	p.wanted = slices.Concat(p.named, inMetadata(f.Meta), inJoins(f.Expr))
	v, err := p.expr(f.Expr)
	if err != nil {
		return err
	}
	switch v.typ {
	case function.TypeMetric:
	case function.TypeEvents:
		return p.unsupported(v.pos, "EVENTS")
	case function.TypeHistogram:
		if p.opt.Compat {
			return nil
		}
		return p.errorAt(f.Expr.Pos(), nil,
			"a histogram cannot be a result: ask for a number of it, as with percentile(…, 99.0)")
	default:
		return p.errorAt(f.Expr.Pos(), nil, "a field must be a series, this is a constant (%v)", v.typ)
	}
	n := namer{p: p, f: f}
	if f.As == nil {
		if n.canonical = dql.Name(f.Expr, maxName); len(n.canonical) > maxName {
			return p.limit(p.at, "bytes of name", int64(len(n.canonical)), maxName, "give it a name with AS")
		}
		if err := p.Grow(int64(len(n.canonical))); err != nil {
			return err
		}
	}
	p.out.Roots = slices.Grow(p.out.Roots, len(v.series))
	for _, s := range v.series {
		s.Of.Uses++
		r := Root{Series: s}
		outputs := s.Of.Values
		if p.opt.Width > 0 {
			r.Columns = newColumns(s.Of.Values, int64(p.opt.Width))
			if p.opt.Asked > 0 {
				r.Columns = alignedColumns(p.opt.Asked, s.Of.Resolution, int64(p.opt.Width))
			}
			if s.Of.Calendar != nil {
				if r.Columns, err = p.calendarColumns(f.Expr.Pos(), s.Of); err != nil {
					return err
				}
			}
			outputs = 3 * r.Columns.Count(s.Of.Values)
		}
		if p.out.Output += outputs; p.out.Output > p.opt.Limits.MaxOutput {
			return p.limit(f.Expr.Pos(), "points in its result", p.out.Output, p.opt.Limits.MaxOutput,
				"aggregate over longer spans or ask for a shorter range")
		}
		if r.Name, err = n.name(s); err != nil {
			return err
		}
		if r.Meta, err = n.metadata(s); err != nil {
			return err
		}
		if err := p.Grow(sizeOf(&r, f)); err != nil {
			return err
		}
		p.out.Roots = append(p.out.Roots, r)
	}
	return nil
}

func (p *planner) expr(e dql.Expr) (value, error) {
	switch n := e.(type) {
	case *dql.Number:
		t := function.TypeFloat
		if n.Whole {
			t = function.TypeInteger
		}
		return value{typ: t, number: n.Value, pos: n.Pos()}, nil
	case *dql.Duration:
		return p.duration(n), nil
	case *dql.Word:
		return value{typ: function.TypeWord, word: n.Text, pos: n.Pos()}, nil
	case *dql.Select:
		return p.selectMetrics(n, 0)
	case *dql.Shift:
		switch of := n.Of.(type) {
		case *dql.Select:
			return p.selectMetrics(of, n.By.Milliseconds())
		case *dql.Events:
			return value{typ: function.TypeEvents, events: of, span: n.By.Milliseconds(), pos: of.Pos()}, nil
		}
		return p.lookup(n.Of.(*dql.Lookup), n.By.Milliseconds())
	case *dql.Call:
		return p.call(n)
	case *dql.Binary:
		return p.binary(n)
	case *dql.Lookup:
		return p.lookup(n, 0)
	case *dql.Events:
		return value{typ: function.TypeEvents, events: n, pos: n.Pos()}, nil
	}
	panic(fmt.Sprintf("query: expression of type %T", e))
}

func (p *planner) binary(b *dql.Binary) (value, error) {
	l, err := p.expr(b.L)
	if err != nil {
		return value{}, err
	}
	r, err := p.expr(b.R)
	if err != nil {
		return value{}, err
	}
	if l.typ == function.TypeMetric && r.typ == function.TypeMetric {
		fn := map[byte]function.Op{'+': function.Sum, '-': function.Diff, '*': function.Product,
			'/': function.Quotient}[b.Op]
		if p.opt.Compat {
			return p.combine(b.Pos(), fn, append(l.series[:len(l.series):len(l.series)], r.series...))
		}
		j := pairing{planner: p, of: b, fn: fn, left: side{b.L, l.series}, right: side{b.R, r.series}}
		return j.plan()
	}
	for _, v := range []value{l, r} {
		if !function.TypeNumber.Takes(v.typ) && v.typ != function.TypeMetric {
			return value{}, p.unrecognised(b.Pos(), b.Function(), []function.Type{l.typ, r.typ}, nil)
		}
	}
	fn := map[byte]function.Op{'+': function.Add, '-': function.Sub, '*': function.Mul,
		'/': function.Divide}[b.Op]
	in, constant := l.series, r.number
	if r.typ == function.TypeMetric {
		in, constant = r.series, l.number
		switch b.Op {
		case '-':
			fn = function.SubFrom
		case '/':
			fn = function.DivideInto
		}
	}
	return p.each(in, function.TypeMetric, func(n *Node) (*Node, error) {
		return p.scalar(b.Pos(), fn, n, constant)
	})
}
