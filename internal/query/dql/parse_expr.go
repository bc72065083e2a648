package dql

import (
	"errors"
	"strconv"

	"dalmatiner/internal/model/metric"
)

// sum reads operands joined by + and -.
func (p *parser) sum() (Expr, error) {
	return p.chain("+", "-", (*parser).product)
}

// product reads operands joined by * and /.
func (p *parser) product() (Expr, error) {
	return p.chain("*", "/", (*parser).operand)
}

// chain reads operands joined by two operators that bind equally tight.
func (p *parser) chain(op1, op2 string, operand func(*parser) (Expr, error)) (Expr, error) {
	first, err := operand(p)
	if err != nil {
		return nil, err
	}
	list := []Expr{first}
	var ops []operator
	for {
		t := p.in.peek()
		if !t.isOp(op1) && !t.isOp(op2) {
			return p.group(list, ops)
		}
		if len(ops) >= MaxDepth {
			return nil, p.in.errorAt(t.pos, "more than %d operators in a row", MaxDepth)
		}
		p.in.take()
		e, err := operand(p)
		if err != nil {
			return nil, err
		}
		op := operator{token: t}
		if op.on, err = p.on(); err != nil {
			return nil, err
		}
		list, ops = append(list, e), append(ops, op)
	}
}

// operator is one between two operands, with the ON that stands after the second.
type operator struct {
	token
	on []JoinKey
}

// on reads ON with its keys. Parentheses around them may be left out where what follows a
// comma can only be a key. The original has none.
func (p *parser) on() ([]JoinKey, error) {
	if p.toTheRight || !p.in.accept("ON") {
		return nil, nil
	}
	inside := p.in.acceptOp("(")
	var list []JoinKey
	for {
		t := p.in.peek()
		k := JoinKey{Pos: t.pos}
		switch t.kind {
		case tokInt:
			p.in.take()
			// More digits do not matter: no pattern has so many stars.
			if k.Star, _ = strconv.ParseInt(t.text, 10, 64); k.Star == 0 {
				return nil, p.in.errorAt(t.pos, "stars are counted from 1")
			}
		case tokDimVar:
			e, err := p.element()
			if err != nil {
				return nil, err
			}
			k.Dim = e.Dim
		default:
			return nil, p.in.expected("the number of a star such as 1, or a dimension such as $host")
		}
		list = append(list, k)
		switch {
		case !inside && !p.in.joinKeyFollows(p.inCall):
			return list, nil
		case !p.in.acceptOp(","):
			return list, p.in.expectOp(")")
		}
	}
}

// group joins the operands of a chain from one end to the other.
func (p *parser) group(list []Expr, ops []operator) (Expr, error) {
	var err error
	if p.toTheRight {
		e := list[len(ops)]
		for i := len(ops) - 1; i >= 0 && err == nil; i-- {
			e, err = p.combine(ops[i], list[i], e)
		}
		return e, err
	}
	e := list[0]
	for i := 0; i < len(ops) && err == nil; i++ {
		e, err = p.combine(ops[i], e, list[i+1])
	}
	return e, err
}

// combine joins two operands and computes constants at once.
func (p *parser) combine(op operator, l, r Expr) (Expr, error) {
	for _, e := range []Expr{l, r} {
		if d, ok := e.(*Duration); ok {
			return nil, p.in.errorAt(d.Pos(), "a span of time can only be an argument of a function")
		}
	}
	a, okA := l.(*Number)
	b, okB := r.(*Number)
	if op.on != nil && (okA || okB) {
		return nil, p.in.errorAt(op.on[0].Pos,
			"ON says which series belong together, and a number goes with all of them")
	}
	if !okA || !okB {
		return &Binary{at: at(op.pos), Op: op.text[0], L: l, R: r, On: op.on}, nil
	}
	n := &Number{at: a.at, Whole: a.Whole && b.Whole}
	switch op.text {
	case "+":
		n.Value = a.Value + b.Value
	case "-":
		n.Value = a.Value - b.Value
	case "*":
		n.Value = a.Value * b.Value
	case "/":
		if b.Value == 0 {
			return nil, p.in.errorAt(op.pos, "division by the constant 0")
		}
		n.Value = a.Value / b.Value
		n.Whole = false
	}
	if !n.tidy() {
		return nil, p.in.errorAt(op.pos, "the constant is out of range")
	}
	return n, nil
}

func (p *parser) operand() (Expr, error) {
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer func() { p.depth-- }()
	t := p.in.peek()
	switch {
	case t.kind == tokInt || t.kind == tokFloat || t.isOp("-") || t.isOp("+"):
		return p.constant()
	case p.in.acceptOp("("):
		outside := p.inCall
		p.inCall = false
		e, err := p.sum()
		if err == nil {
			err = p.in.expectOp(")")
		}
		p.inCall = outside
		return e, err
	case (t.isName() || t.kind == tokWord) && p.in.peekAt(1).isOp("("):
		name, err := p.function()
		if err != nil {
			return nil, err
		}
		return p.call(t, name)
	case t.is("EVENTS"):
		return nil, p.in.errorAt(t.pos,
			"EVENTS is a field of its own; count(EVENTS FROM bucket, 1m) is the series of how many there are")
	}
	return p.selector()
}

// constant reads a number, or a span of time if a unit follows.
func (p *parser) constant() (Expr, error) {
	n, err := p.number()
	if err != nil {
		return nil, err
	}
	if n.Whole {
		d := &Duration{at: n.at, N: int64(n.Value)}
		if err := p.units(d); err != nil || d.Unit != "" {
			return d, err
		}
		if err := p.in.unknownUnit(p.in.last()); err != nil {
			return nil, err
		}
	}
	return &n, nil
}

// number reads a number with an optional sign.
func (p *parser) number() (Number, error) {
	t := p.in.peek()
	n := Number{at: at(t.pos)}
	sign := 1.0
	if t.isOp("-") || t.isOp("+") {
		if t.text == "-" {
			sign = -1
		}
		p.in.take()
		t = p.in.peek()
	}
	if t.kind != tokInt && t.kind != tokFloat {
		return n, p.in.expected("a number")
	}
	p.in.take()
	v, err := strconv.ParseFloat(t.text, 64)
	if errors.Is(err, strconv.ErrRange) {
		return n, p.in.errorAt(t.pos, "the number %s is out of range", t.describe(p.in.src))
	}
	// Beyond 2^53 a double no longer holds every integer.
	const exact = 1 << 53
	if t.kind == tokInt && v > exact {
		return n, p.in.errorAt(t.pos, "the integer %s is out of range, the limit is %d",
			t.describe(p.in.src), int64(exact))
	}
	n.Value, n.Whole = sign*v, t.kind == tokInt
	n.tidy()
	return n, nil
}

// function reads a function's name and the parenthesis behind it. There even
// a keyword can only be a name: last(…).
func (p *parser) function() (string, error) {
	if t := p.in.peek(); t.kind == tokWord && p.in.peekAt(1).isOp("(") {
		p.in.take()
		p.in.take()
		return t.text, nil
	}
	name, err := p.in.name("the name of a function")
	if err == nil {
		err = p.in.expectOp("(")
	}
	return name, err
}

// usualArgs is how many arguments few functions have more than.
const usualArgs = 2

// call reads the arguments up to the closing parenthesis; the opening one is
// taken already.
func (p *parser) call(start token, name string) (*Call, error) {
	c := &Call{at: at(start.pos), Name: name}
	if p.in.acceptOp(")") {
		return c, nil
	}
	outside := p.inCall
	p.inCall = true
	defer func() { p.inCall = outside }()
	for {
		e, err := p.argument()
		if err != nil {
			return nil, err
		}
		if c.Args == nil {
			c.Args = make([]Expr, 0, usualArgs)
		}
		c.Args = append(c.Args, e)
		if p.in.acceptOp(")") {
			return c, nil
		}
		if !p.in.acceptOp(",") {
			return nil, p.in.expected("',' or ')'")
		}
	}
}

// argument reads an argument of a function.
func (p *parser) argument() (Expr, error) {
	if !p.in.peek().is("EVENTS") {
		return p.sum()
	}
	e, err := p.events()
	if err != nil {
		return nil, err
	}
	return p.shifted(e)
}

// selector reads a direct, wildcard or lookup selector or the name of an
// alias, and SHIFT BY behind it.
func (p *parser) selector() (Expr, error) {
	e, err := p.unshifted()
	if err != nil {
		return nil, err
	}
	return p.shifted(e)
}

// shifted reads SHIFT BY behind a selector, if it is there.
func (p *parser) shifted(e Expr) (Expr, error) {
	if t := p.in.peek(); p.in.accept("SHIFT") {
		if err := p.in.expectWord("BY"); err != nil {
			return nil, err
		}
		d, err := p.span(true)
		if err == nil && d.Unit.Varies() {
			err = p.in.errorAt(d.Pos(),
				"SHIFT BY takes a span of fixed length, and months and years have none: write days, such as 30d")
		}
		return &Shift{at: at(t.pos), Of: e, By: d}, err
	}
	return e, nil
}

func (p *parser) unshifted() (Expr, error) {
	t := p.in.peek()
	if t.is("ALL") {
		p.in.take()
		return p.lookup(&Lookup{at: at(t.pos), All: true})
	}
	path, err := p.path()
	if err != nil {
		return nil, err
	}
	next := p.in.peek()
	switch {
	case p.in.accept("BUCKET"):
		s := &Select{at: at(t.pos), BucketPos: p.in.peek().pos}
		if s.Metric, err = path.metric(&p.in); err != nil {
			return nil, err
		}
		if s.Bucket, err = p.in.name("the name of a bucket"); err == nil &&
			len(s.Bucket) > metric.MaxBucket {
			err = p.in.errorAt(s.BucketPos, "the bucket's name has %d bytes, the limit is %d", len(s.Bucket),
				metric.MaxBucket)
		}
		return s, err
	case next.is("FROM") || next.is("IN"):
		l := &Lookup{at: at(t.pos)}
		if l.Metric, err = path.metric(&p.in); err != nil {
			return nil, err
		}
		if l.Metric.Key == nil {
			return nil, p.in.errorAt(t.pos, "a pattern with * needs BUCKET; FROM takes a metric or ALL")
		}
		return p.lookup(l)
	case len(path) == 1 && path[0].isName():
		name := path[0].text
		if path[0].kind == tokQuoted {
			name, err = unescape(p.in.src, path[0].pos, name)
		}
		return &Variable{at: at(t.pos), Name: name}, err
	}
	return nil, p.in.expected("BUCKET or FROM after the metric")
}

// path is the elements of a metric as written: names and *.
type path []token

// path reads one. It is valid until the next.
func (p *parser) path() (path, error) {
	list, start := p.elements[:0], p.in.next
	for {
		t := p.in.peek()
		if t.kind == tokDate {
			return nil, p.in.doubleQuoted(start)
		}
		if !t.isName() && !t.isOp("*") {
			if len(list) == 0 {
				return nil, p.in.expected("a metric, a function, a number or '('")
			}
			return nil, p.in.expected("a part of a metric or *")
		}
		p.in.take()
		list = append(list, t)
		if err := p.in.starInside(start); err != nil {
			return nil, err
		}
		if !p.in.acceptOp(".") {
			p.elements = list
			return list, nil
		}
	}
}

// metric turns a path into a metric or a pattern.
func (list path) metric(in *tokens) (Metric, error) {
	elems := make([]string, len(list))
	glob := false
	for i, t := range list {
		elems[i] = t.text
		glob = glob || t.isOp("*")
	}
	if !glob {
		key, err := metric.KeyFromQuoted(elems...)
		if err != nil {
			return Metric{}, newError(in.src, list[0].pos, err, "%v", err)
		}
		if len(key) == 0 {
			return Metric{}, in.errorAt(list[0].pos, "the metric is empty")
		}
		return Metric{Key: key}, nil
	}
	m := Metric{Parts: make([]Part, len(list))}
	for i, t := range list {
		if t.isOp("*") {
			m.Parts[i].Any = true
			continue
		}
		text, err := unescape(in.src, t.pos, t.text)
		if err != nil {
			return Metric{}, err
		}
		if len(text) > metric.MaxPart {
			return Metric{}, in.errorAt(t.pos, "the part has %d bytes, the limit is %d", len(text),
				metric.MaxPart)
		}
		m.Parts[i].Text = text
	}
	return m, nil
}
