package dql

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
	switch {
	case p.in.acceptOp("="):
		c.Op = CondEqual
	case p.in.acceptOp("!="), p.in.accept("NOT"):
		c.Op = CondNotEqual
	default:
		return c, nil
	}
	c.Value, err = p.in.name("the tag's value")
	return c, err
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
