package dql

// lookup reads what follows the metric of a lookup. IN is the older word for
// FROM.
func (p *parser) lookup(l *Lookup) (Expr, error) {
	if !p.accept("FROM") && !p.accept("IN") {
		return nil, p.expected("FROM")
	}
	var err error
	if l.Collection, err = p.name("the name of a collection"); err != nil {
		return nil, err
	}
	if p.accept("WHERE") {
		if l.Where, err = p.where(); err != nil {
			return nil, err
		}
	}
	if !p.accept("GROUP") {
		return l, nil
	}
	if err := p.expectWord("BY"); err != nil {
		return nil, err
	}
	for {
		t := p.peek()
		if t.kind != tokDimVar {
			return nil, p.expected("a dimension such as $host")
		}
		e, err := p.element()
		if err != nil {
			return nil, err
		}
		l.Group = append(l.Group, *e.Dim)
		if !p.acceptOp(",") {
			break
		}
	}
	if err := p.expectWord("USING"); err != nil {
		return nil, err
	}
	l.UsingPos = p.peek().pos
	l.Using, err = p.name("the name of a combining function")
	return l, err
}

// where reads conditions strictly from left to right: AND does not bind
// tighter than OR.
func (p *parser) where() (*Cond, error) {
	left, err := p.cond()
	for n := 0; err == nil; n++ {
		t := p.peek()
		op := CondAnd
		if t.is("OR") {
			op = CondOr
		} else if !t.is("AND") {
			return left, nil
		}
		if n >= MaxDepth {
			return nil, p.errorAt(t.pos, "more than %d conditions in a row", MaxDepth)
		}
		p.next++
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
	c := &Cond{Pos: p.peek().pos}
	if p.acceptOp("(") {
		c, err := p.where()
		if err == nil {
			err = p.expectOp(")")
		}
		return c, err
	}
	var err error
	if c.Tag.Name, err = p.name("a tag"); err != nil {
		return nil, err
	}
	if p.acceptOp(":") {
		c.Tag.Namespace = c.Tag.Name
		if c.Tag.Name, err = p.name("the tag's name behind its namespace"); err != nil {
			return nil, err
		}
	}
	switch {
	case p.acceptOp("="):
		c.Op = CondEqual
	case p.acceptOp("!="), p.accept("NOT"):
		c.Op = CondNotEqual
	default:
		return c, nil
	}
	c.Value, err = p.name("the tag's value")
	return c, err
}

func (p *parser) pattern() (*Pattern, error) {
	n := &Pattern{Pos: p.peek().pos}
	for {
		e, err := p.element()
		if err != nil {
			return nil, err
		}
		n.Elems = append(n.Elems, e)
		if !p.acceptOp(".") {
			return n, nil
		}
	}
}

// element reads a literal, $n, $name or $namespace:name.
func (p *parser) element() (PatternElem, error) {
	t := p.peek()
	e := PatternElem{Pos: t.pos}
	var err error
	switch t.kind {
	case tokPosVar:
		p.next++
		for _, c := range t.text {
			// Further digits do not matter: no metric has so many parts.
			if e.Position < 1<<32 {
				e.Position = e.Position*10 + int64(c-'0')
			}
		}
		if e.Position == 0 {
			return e, p.errorAt(t.pos, "parts of a metric are counted from $1")
		}
	case tokDimVar:
		p.next++
		e.Dim = &DimVar{Name: t.text}
		if p.acceptOp(":") {
			e.Dim.Namespace = t.text
			e.Dim.Name, err = p.name("the dimension's name behind its namespace")
		}
	default:
		e.Text, err = p.name("a name, $1 or $dimension")
	}
	return e, err
}

func (p *parser) metadata() ([]MetaPair, error) {
	if err := p.expectOp("{"); err != nil {
		return nil, err
	}
	var list []MetaPair
	for {
		pair := MetaPair{Pos: p.peek().pos}
		var err error
		if pair.Key, err = p.name("the name of a metadata entry"); err != nil {
			return nil, err
		}
		if err = p.expectOp(":"); err != nil {
			return nil, err
		}
		if t := p.peek(); t.isName() || t.kind == tokPosVar || t.kind == tokDimVar {
			pair.Elem, err = p.element()
		} else {
			pair.Number, err = p.metaNumber()
		}
		if err != nil {
			return nil, err
		}
		list = append(list, pair)
		if p.acceptOp("}") {
			return list, nil
		}
		if !p.acceptOp(",") {
			return nil, p.expected("',' or '}'")
		}
	}
}

// metaNumber reads constant arithmetic.
func (p *parser) metaNumber() (*Number, error) {
	pos := p.peek().pos
	e, err := p.sum()
	if err != nil {
		return nil, err
	}
	n, ok := e.(*Number)
	if !ok {
		return nil, p.errorAt(pos, "expected a name, $1, $dimension or a constant number")
	}
	return n, nil
}
