package query

import (
	"context"
	"fmt"
	"strings"
	"time"

	"dalmatiner/internal/dql"
)

// planner turns a query's tree into a graph of nodes. Equal expressions
// become one node.
type planner struct {
	ctx        context.Context
	source     Source
	q          *dql.Query
	limits     Limits
	now        int64
	start, end int64 // of the query, unix ms

	buckets map[string]Bucket
	hits    map[string][][]byte // of a pattern in a bucket
	nodes   map[string]node     // by what they compute
	shapes  map[string]int
	leaves  []*leaf
	opt     Options
	buffers int   // series that hold a piece each while a round runs
	slots   int64 // most slots in a round

	roots  []root
	points int64 // to read
	output int64 // in the result
}

// root is a series of the result.
type root struct {
	name string
	meta map[string]any
	of   node

	columns *columns // nil without Options.Width
}

// series is a node with the key of the first metric in it, which names it.
type series struct {
	of  node
	key []byte
}

// value is a planned expression: series, or a constant.
type value struct {
	typ    argType
	series []series // of typeMetric; hits of a pattern in order of their keys
	number float64
	span   int64 // ms, of typeTime
}

func newPlanner(ctx context.Context, e *Engine, q *dql.Query, opt Options, now int64) (*planner, error) {
	zone := e.Zone
	if zone == nil {
		zone = time.UTC
	}
	start, end, err := TimeRange(q, now, zone)
	slots := e.roundSlots
	if slots == 0 {
		slots = roundSlots
	}
	return &planner{
		slots: slots, opt: opt,
		ctx: ctx, source: e.Source, q: q, now: now, start: start, end: end,
		limits:  e.Limits.orDefault().stricter(opt.Limits),
		buckets: make(map[string]Bucket),
		hits:    make(map[string][][]byte),
		nodes:   make(map[string]node),
		shapes:  make(map[string]int),
	}, err
}

func (p *planner) errorAt(pos int, cause error, format string, args ...any) error {
	return dql.NewError(p.q.Text, pos, cause, fmt.Sprintf(format, args...))
}

func (p *planner) unsupported(pos int, what string) error {
	return p.errorAt(pos, ErrUnsupported, "%v: %s", ErrUnsupported, what)
}

func (p *planner) limit(pos int, what string, got, limit int64, remedy string) error {
	err := &LimitError{What: what, Got: got, Limit: limit, Remedy: remedy}
	return p.errorAt(pos, err, "%v", err)
}

func (p *planner) plan() error {
	if w := p.opt.Width; w > MaxWidth {
		return p.limit(0, "columns per series", int64(w), MaxWidth, "ask for a smaller width")
	}
	if l := p.q.Limit; l != nil {
		return p.unsupported(l.Pos, map[bool]string{false: "TOP", true: "BOTTOM"}[l.Bottom])
	}
	for i := range p.q.Fields {
		if err := p.field(&p.q.Fields[i]); err != nil {
			return err
		}
	}
	for _, r := range p.roots {
		r.of.needConfidence(p.opt.Confidence)
	}
	return nil
}

func (p *planner) field(f *dql.Field) error {
	v, err := p.expr(f.Expr)
	if err != nil {
		return err
	}
	if v.typ != typeMetric {
		return p.errorAt(f.Expr.Pos(), nil, "a field must be a series, this is a constant (%v)", v.typ)
	}
	n := namer{p: p, f: f}
	if f.As == nil {
		n.canonical = dql.Name(f.Expr)
	}
	for _, s := range v.series {
		c := s.of.shared()
		c.refs++
		r := root{of: s.of}
		outputs := c.n
		if p.opt.Width > 0 {
			r.columns = newColumns(c.n, int64(p.opt.Width), p.opt.Confidence)
			outputs = 3 * r.columns.count(c.n)
		}
		if p.output += outputs; p.output > p.limits.MaxOutput {
			return p.limit(f.Expr.Pos(), "points in its result", p.output, p.limits.MaxOutput,
				"aggregate over longer spans or ask for a shorter range")
		}
		if r.name, err = n.name(s.key); err != nil {
			return err
		}
		if r.meta, err = n.metadata(s.key); err != nil {
			return err
		}
		p.roots = append(p.roots, r)
	}
	return nil
}

func (p *planner) expr(e dql.Expr) (value, error) {
	switch n := e.(type) {
	case *dql.Number:
		t := typeFloat
		if n.Whole {
			t = typeInteger
		}
		return value{typ: t, number: n.Value}, nil
	case *dql.Duration:
		return value{typ: typeTime, span: n.Milliseconds()}, nil
	case *dql.Select:
		return p.selectMetrics(n, 0)
	case *dql.Shift:
		if s, ok := n.Of.(*dql.Select); ok {
			return p.selectMetrics(s, n.By.Milliseconds())
		}
		return p.expr(n.Of)
	case *dql.Call:
		return p.call(n)
	case *dql.Binary:
		return p.binary(n)
	case *dql.Lookup:
		return value{}, p.unsupported(n.Pos(), "lookup by dimensions (FROM)")
	case *dql.Events:
		return value{}, p.unsupported(n.Pos(), "EVENTS")
	}
	panic(fmt.Sprintf("query: expression of type %T", e))
}

func (p *planner) call(c *dql.Call) (value, error) {
	var types []argType
	var inputs []series
	var constant value
	for _, a := range c.Args {
		v, err := p.expr(a)
		if err != nil {
			return value{}, err
		}
		types = append(types, v.typ)
		if v.typ == typeMetric {
			inputs = append(inputs, v.series...)
		} else {
			constant = v
		}
	}
	f, ok := lookupFunction(c.Name, types)
	if !ok {
		return value{}, p.unrecognised(c, types)
	}
	switch f.kind {
	case kindWindow:
		return p.each(inputs, func(n node) (node, error) { return p.window(f.fn, n, constant.span), nil })
	case kindScalar:
		return p.each(inputs, func(n node) (node, error) { return p.scalar(c.Pos(), f.fn, n, constant.number) })
	case kindConfidence:
		return p.each(inputs, func(n node) (node, error) { return p.confidence(n), nil })
	case kindCombine:
		return p.combine(c.Pos(), f.fn, inputs)
	}
	return value{}, p.unsupported(c.Pos(), fmt.Sprintf("%s(%s)", f.name, f.args))
}

func (p *planner) unrecognised(c *dql.Call, types []argType) error {
	var args, known []string
	for _, t := range types {
		args = append(args, t.String())
	}
	for _, f := range functions {
		if f.name == c.Name {
			known = append(known, fmt.Sprintf("%s(%s)", f.name, f.args))
		}
	}
	msg := fmt.Sprintf("Not recognized function %s(%s).", c.Name, strings.Join(args, ", "))
	if known != nil {
		msg += " There is " + strings.Join(known, ", ") + "."
	}
	return p.errorAt(c.Pos(), nil, "%s", msg)
}

// each applies a function of one series to every series of a value.
func (p *planner) each(inputs []series, fn func(node) (node, error)) (value, error) {
	v := value{typ: typeMetric, series: make([]series, len(inputs))}
	for i, s := range inputs {
		n, err := fn(s.of)
		if err != nil {
			return v, err
		}
		v.series[i] = series{of: n, key: s.key}
	}
	return v, nil
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
	if l.typ == typeMetric && r.typ == typeMetric {
		fn := map[byte]opFunc{'+': fnSum, '-': fnDiff, '*': fnProduct, '/': fnQuotient}[b.Op]
		return p.combine(b.Pos(), fn, append(l.series[:len(l.series):len(l.series)], r.series...))
	}
	fn := map[byte]opFunc{'+': fnAdd, '-': fnSub, '*': fnMul, '/': fnDivide}[b.Op]
	in, constant := l.series, r.number
	if r.typ == typeMetric {
		in, constant = r.series, l.number
		switch b.Op {
		case '-':
			fn = fnSubFrom
		case '/':
			fn = fnDivideInto
		}
	}
	return p.each(in, func(n node) (node, error) { return p.scalar(b.Pos(), fn, n, constant) })
}
