package query

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"dalmatiner/internal/dql"
	"dalmatiner/internal/query/function"
)

// planner turns a query's tree into a graph of nodes. Equal expressions
// become one node.
type planner struct {
	ctx        context.Context
	source     Source
	older      Elder // the source, where older values are asked for; else nil
	shared     *Readers
	q          *dql.Query
	limits     Limits
	now        int64
	start, end int64 // of the query, unix ms

	buckets map[string]Bucket
	hits    map[string][][]byte // of a pattern in a bucket
	nodes   map[string]node     // by what they compute
	order   []node              // all of them, by their ids
	naming  naming              // memory for names
	shapes  map[string]int
	leaves  []*leaf
	spans   []*spans
	adder   Aggregator // the source, where it is to add up slots; else nil

	spanWindows int // nodes that read spans
	opt         Options
	explain     bool
	named       []dql.DimVar // dimensions that name the field being planned
	buffers     int          // series that hold a piece each while a round runs
	partials    int          // pieces that combinations hold beside the two of a plain one
	slots       int64        // most slots in a round
	pieces      int64        // slots of the original's reads, for compat
	alone       int64        // slots that no reader beside the query's own helps with

	roots   []root
	ranks   []node // of TOP and BOTTOM, one per root
	held    int64  // bytes that functions hold
	planned int64  // bytes of the plan
	lent    int64  // bytes borrowed for it
	at      int    // position of the field being planned

	found   bool      // a selector has a hit
	missing []Missing // those that have none
	looked  int       // names that they were compared with
	points  int64     // to read
	output  int64     // in the result
}

// root is a series of the result.
type root struct {
	series
	name string
	meta map[string]any

	columns *columns // nil without Options.Width
}

// size returns the bytes that a series of the result takes beside its values.
func (r *root) size(f *dql.Field) int64 {
	n := rootSize
	if f.As != nil {
		n += len(r.name)
	}
	for name, v := range r.meta {
		text, _ := v.(string)
		n += metaSize + len(name) + len(text)
	}
	return int64(n)
}

// series is a node with the key of the first metric in it, which names it.
type series struct {
	of   node
	key  []byte
	tags []Tag // of the series that gave the key, where a lookup found it

	bucket  string     // of the metric; empty where several were combined
	id      uint64     // of the bucket, 0 where several were combined
	pattern []dql.Part // that found it, nil without stars and where several were combined
}

// value is a planned expression: series, or a constant.
type value struct {
	typ    function.Type
	pos    int      // of a constant
	series []series // of function.TypeMetric and function.TypeHistogram; hits of a pattern in order of their keys
	number float64
	span   int64 // ms, of function.TypeTime
	word   string
}

func newPlanner(ctx context.Context, e *Engine, q *dql.Query, opt Options, now int64) (*planner, error) {
	zone := e.Zone
	if zone == nil {
		zone = time.UTC
	}
	start, end, err := TimeRange(q, now, zone, opt.Compat)
	var older Elder
	if opt.Older {
		var ok bool
		if older, ok = e.Source.(Elder); !ok {
			return nil, fmt.Errorf("%w: older values in place of damaged ones", ErrUnsupported)
		}
	}
	return &planner{older: older,
		slots: cmp.Or(e.roundSlots, roundSlots), pieces: cmp.Or(e.pieceSlots, oldPiece), alone: cmp.Or(e.aloneSlots, aloneSlots), opt: opt, explain: opt.Explain || q.Explain,
		ctx: ctx, source: e.Source, shared: e.Readers, q: q, now: now, start: start, end: end,
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
	for i := range p.q.Fields {
		if err := p.field(&p.q.Fields[i]); err != nil {
			return err
		}
	}
	if err := p.nothingFound(); err != nil {
		return err
	}
	if l := p.q.Limit; l != nil {
		if err := p.top(l); err != nil {
			return err
		}
	}
	for _, r := range p.roots {
		r.of.needConfidence(p.opt.Confidence)
	}
	for _, n := range p.ranks {
		n.needConfidence(false)
	}
	if len(p.roots) == 0 {
		return nil
	}
	p.pushDown()
	return p.checkMemory(0, p.memory())
}

func (p *planner) field(f *dql.Field) error {
	p.named, p.at = dimensions(f.As), f.Expr.Pos()
	v, err := p.expr(f.Expr)
	if err != nil {
		return err
	}
	switch v.typ {
	case function.TypeMetric:
	case function.TypeHistogram:
		if p.opt.Compat {
			return nil
		}
		return p.errorAt(f.Expr.Pos(), nil, "a histogram cannot be a result: ask for a number of it, as with percentile(…, 99.0)")
	default:
		return p.errorAt(f.Expr.Pos(), nil, "a field must be a series, this is a constant (%v)", v.typ)
	}
	n := namer{p: p, f: f}
	if f.As == nil {
		if n.canonical = dql.Name(f.Expr, maxName); len(n.canonical) > maxName {
			return p.limit(p.at, "bytes of name", int64(len(n.canonical)), maxName, "give it a name with AS")
		}
		if err := p.grow(int64(len(n.canonical))); err != nil {
			return err
		}
	}
	for _, s := range v.series {
		c := s.of.shared()
		c.refs++
		r := root{series: s}
		outputs := c.n
		if p.opt.Width > 0 {
			r.columns = newColumns(c.n, int64(p.opt.Width), p.opt.Confidence)
			outputs = 3 * r.columns.count(c.n)
		}
		if p.output += outputs; p.output > p.limits.MaxOutput {
			return p.limit(f.Expr.Pos(), "points in its result", p.output, p.limits.MaxOutput,
				"aggregate over longer spans or ask for a shorter range")
		}
		if r.name, err = n.name(s); err != nil {
			return err
		}
		if r.meta, err = n.metadata(s); err != nil {
			return err
		}
		if err := p.grow(r.size(f)); err != nil {
			return err
		}
		p.roots = append(p.roots, r)
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
		return value{typ: function.TypeTime, span: n.Milliseconds(), pos: n.Pos()}, nil
	case *dql.Word:
		return value{typ: function.TypeWord, word: n.Text, pos: n.Pos()}, nil
	case *dql.Select:
		return p.selectMetrics(n, 0)
	case *dql.Shift:
		if s, ok := n.Of.(*dql.Select); ok {
			return p.selectMetrics(s, n.By.Milliseconds())
		}
		return p.lookup(n.Of.(*dql.Lookup), n.By.Milliseconds())
	case *dql.Call:
		return p.call(n)
	case *dql.Binary:
		return p.binary(n)
	case *dql.Lookup:
		return p.lookup(n, 0)
	case *dql.Events:
		return value{}, p.unsupported(n.Pos(), "EVENTS")
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
		fn := map[byte]function.Op{'+': function.Sum, '-': function.Diff, '*': function.Product, '/': function.Quotient}[b.Op]
		return p.combine(b.Pos(), fn, append(l.series[:len(l.series):len(l.series)], r.series...))
	}
	for _, v := range []value{l, r} {
		if !function.TypeNumber.Takes(v.typ) && v.typ != function.TypeMetric {
			return value{}, p.unrecognised(b.Pos(), b.Function(), []function.Type{l.typ, r.typ}, nil)
		}
	}
	fn := map[byte]function.Op{'+': function.Add, '-': function.Sub, '*': function.Mul, '/': function.Divide}[b.Op]
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
	return p.each(in, function.TypeMetric, func(n node) (node, error) { return p.scalar(b.Pos(), fn, n, constant) })
}
