package dql

import "regexp/syntax"

// lookup reads what follows the metric of a lookup. IN is the older word for
// FROM.
func (p *parser) lookup(l *Lookup) (Expr, error) {
	if !p.in.accept("FROM") && !p.in.accept("IN") {
		return nil, p.in.expected("FROM")
	}
	var err error
	if l.Collection, err = p.in.name("the name of a collection"); err != nil {
		return nil, err
	}
	if p.in.accept("WHERE") {
		if l.Where, err = p.where(); err != nil {
			return nil, err
		}
	}
	if !p.in.accept("GROUP") {
		return l, nil
	}
	if err := p.in.expectWord("BY"); err != nil {
		return nil, err
	}
	for {
		t := p.in.peek()
		if t.kind != tokDimVar {
			return nil, p.in.expected("a dimension such as $host")
		}
		e, err := p.element()
		if err != nil {
			return nil, err
		}
		l.Group = append(l.Group, *e.Dim)
		if !p.in.acceptOp(",") {
			break
		}
	}
	if err := p.in.expectWord("USING"); err != nil {
		return nil, err
	}
	l.UsingPos = p.in.peek().pos
	l.Using, err = p.in.name("the name of a combining function")
	return l, err
}

// where reads conditions strictly from left to right: AND does not bind
// tighter than OR.
func (p *parser) where() (*Cond, error) {
	left, err := p.cond()
	for n := 0; err == nil; n++ {
		t := p.in.peek()
		op := CondAnd
		if t.is("OR") {
			op = CondOr
		} else if !t.is("AND") {
			return left, nil
		}
		if n >= MaxDepth {
			return nil, p.in.errorAt(t.pos, "more than %d conditions in a row", MaxDepth)
		}
		p.in.take()
		var right *Cond
		right, err = p.cond()
		left = &Cond{Pos: t.pos, Op: op, Left: left, Right: right}
	}
	return nil, err
}

// ParseTagFilter returns the condition of a text that is what follows WHERE in a lookup by tags. An
// empty text gives nil, which every series meets. Every error is an *Error.
func ParseTagFilter(text string) (*Cond, error) {
	p := &parser{in: tokens{src: text}}
	if err := p.lex(); err != nil {
		return nil, err
	}
	if p.in.peek().kind == tokEOF {
		return nil, nil
	}
	c, err := p.where()
	if err == nil && p.in.peek().kind != tokEOF {
		return nil, p.in.expected("AND, OR or the end of the condition")
	}
	return c, err
}

func (p *parser) cond() (*Cond, error) {
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer func() { p.depth-- }()
	c := &Cond{Pos: p.in.peek().pos}
	if p.in.acceptOp("(") {
		c, err := p.where()
		if err == nil {
			err = p.in.expectOp(")")
		}
		return c, err
	}
	if p.in.accept("NOT") {
		var err error
		c.Op = CondNot
		c.Left, err = p.cond()
		return c, err
	}
	var err error
	if c.Tag.Name, err = p.in.name("a tag"); err != nil {
		return nil, err
	}
	if p.in.acceptOp(":") {
		c.Tag.Namespace = c.Tag.Name
		if c.Tag.Name, err = p.in.name("the tag's name behind its namespace"); err != nil {
			return nil, err
		}
	}
	return c, p.comparison(c)
}

// comparison reads what a tag is compared with, if anything.
func (p *parser) comparison(c *Cond) (err error) {
	switch {
	case p.in.acceptOp("="):
		c.Op = CondEqual
	case p.in.acceptOp("!="):
		c.Op = CondNotEqual
	case p.in.acceptOp("=~"):
		c.Op = CondMatch
		return p.regexp(c)
	case p.in.acceptOp("!~"):
		c.Op = CondNotMatch
		return p.regexp(c)
	case p.in.accept("LIKE"):
		c.Op = CondLike
		return p.like(c)
	case p.in.accept("NOT"):
		if p.in.accept("LIKE") {
			c.Op = CondNotLike
			return p.like(c)
		}
		c.Op = CondNotEqual
	default:
		return nil
	}
	c.Value, err = p.in.name("the tag's value")
	return err
}

// MaxPattern is how many bytes a regular expression may have.
const MaxPattern = 4096

// regexp reads a regular expression. A backslash in it is its own: the quotes take none away.
func (p *parser) regexp(c *Cond) error {
	t := p.in.peek()
	if _, err := p.in.name("a regular expression"); err != nil {
		return err
	}
	if c.Value = t.text; len(c.Value) > MaxPattern {
		return p.in.errorAt(t.pos, "the regular expression has %d bytes, the limit is %d", len(c.Value),
			MaxPattern)
	}
	if _, err := syntax.Parse(c.Value, syntax.Perl); err != nil {
		return p.in.errorAt(t.pos, "%v", err)
	}
	return nil
}

// like reads a pattern: a * stands for anything, a \* for itself.
func (p *parser) like(c *Cond) error {
	t := p.in.peek()
	if _, err := p.in.name("a pattern such as 'web*'"); err != nil {
		return err
	}
	piece := 0
	for i := 0; i < len(t.text); i++ {
		switch t.text[i] {
		case '\\':
			i++
		case '*':
			c.Pieces = append(c.Pieces, t.text[piece:i])
			piece = i + 1
		}
	}
	c.Pieces = append(c.Pieces, t.text[piece:])
	for i, text := range c.Pieces {
		var err error
		if c.Pieces[i], err = unescape(p.in.src, t.pos, text); err != nil {
			return err
		}
	}
	return nil
}

func (p *parser) pattern() (*Pattern, error) {
	n := &Pattern{Pos: p.in.peek().pos}
	for {
		e, err := p.element()
		if err != nil {
			return nil, err
		}
		n.Elems = append(n.Elems, e)
		if !p.in.acceptOp(".") {
			return n, nil
		}
	}
}

// element reads a literal, $n, $name or $namespace:name.
func (p *parser) element() (PatternElem, error) {
	t := p.in.peek()
	e := PatternElem{Pos: t.pos}
	var err error
	switch t.kind {
	case tokPosVar:
		p.in.take()
		for _, c := range t.text {
			// Further digits do not matter: no metric has so many parts.
			if e.Position < 1<<32 {
				e.Position = e.Position*10 + int64(c-'0')
			}
		}
		if e.Position == 0 {
			return e, p.in.errorAt(t.pos, "parts of a metric are counted from $1")
		}
	case tokDimVar:
		p.in.take()
		e.Dim = &DimVar{Name: t.text}
		if p.in.acceptOp(":") {
			e.Dim.Namespace = t.text
			e.Dim.Name, err = p.in.name("the dimension's name behind its namespace")
		}
	default:
		e.Text, err = p.in.name("a name, $1 or $dimension")
	}
	return e, err
}

func (p *parser) metadata() ([]MetaPair, error) {
	if err := p.in.expectOp("{"); err != nil {
		return nil, err
	}
	var list []MetaPair
	for {
		pair := MetaPair{Pos: p.in.peek().pos}
		var err error
		if pair.Key, err = p.in.name("the name of a metadata entry"); err != nil {
			return nil, err
		}
		if err = p.in.expectOp(":"); err != nil {
			return nil, err
		}
		if t := p.in.peek(); t.isName() || t.kind == tokPosVar || t.kind == tokDimVar {
			pair.Elem, err = p.element()
		} else {
			pair.Number, err = p.metaNumber()
		}
		if err != nil {
			return nil, err
		}
		list = append(list, pair)
		if p.in.acceptOp("}") {
			return list, nil
		}
		if !p.in.acceptOp(",") {
			return nil, p.in.expected("',' or '}'")
		}
	}
}

// metaNumber reads constant arithmetic.
func (p *parser) metaNumber() (*Number, error) {
	pos := p.in.peek().pos
	e, err := p.sum()
	if err != nil {
		return nil, err
	}
	n, ok := e.(*Number)
	if !ok {
		return nil, p.in.errorAt(pos, "expected a name, $1, $dimension or a constant number")
	}
	return n, nil
}
