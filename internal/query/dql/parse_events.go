package dql

// events reads EVENTS FROM bucket [WHERE …].
func (p *parser) events() (Expr, error) {
	e := &Events{at: at(p.in.take().pos)}
	if err := p.in.expectWord("FROM"); err != nil {
		return nil, err
	}
	var err error
	if e.Bucket, err = p.in.name("the name of a bucket"); err != nil {
		return nil, err
	}
	if p.in.accept("WHERE") {
		e.Where, err = eventFilter{p}.where()
	}
	return e, err
}

// ParseEventFilter returns the condition of a text that is what follows WHERE in EVENTS FROM
// bucket WHERE …. An empty text gives nil, which every event meets. Every error is an *Error.
func ParseEventFilter(text string) (*EventCond, error) {
	p := &parser{in: tokens{src: text}}
	if err := p.lex(); err != nil {
		return nil, err
	}
	if p.in.peek().kind == tokEOF {
		return nil, nil
	}
	c, err := eventFilter{p}.where()
	if err == nil && p.in.peek().kind != tokEOF {
		return nil, p.in.expected("AND, OR or the end of the filter")
	}
	return c, err
}

// eventFilter reads what stands behind WHERE of events.
type eventFilter struct{ *parser }

// where reads conditions strictly from left to right.
func (p eventFilter) where() (*EventCond, error) {
	left, err := p.cond()
	for n := 0; err == nil; n++ {
		t := p.in.peek()
		op := "and"
		if t.is("OR") {
			op = "or"
		} else if !t.is("AND") {
			return left, nil
		}
		if n >= MaxDepth {
			return nil, p.in.errorAt(t.pos, "more than %d conditions in a row", MaxDepth)
		}
		p.in.take()
		var right *EventCond
		right, err = p.cond()
		left = &EventCond{Pos: t.pos, Op: op, Left: left, Right: right}
	}
	return nil, err
}

func (p eventFilter) cond() (*EventCond, error) {
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer func() { p.depth-- }()
	t := p.in.peek()
	if p.in.accept("NOT") {
		c, err := p.cond()
		return &EventCond{Pos: t.pos, Op: "not", Left: c}, err
	}
	if p.in.acceptOp("(") {
		c, err := p.where()
		if err == nil {
			err = p.in.expectOp(")")
		}
		return c, err
	}
	c := &EventCond{Pos: t.pos}
	var err error
	if c.Path, err = p.field(); err != nil {
		return nil, err
	}
	op := p.in.peek()
	if op.kind != tokOperator {
		return nil, p.in.expected("one of == != >= =< > < ~=")
	}
	switch op.text {
	case "==", "!=", ">=", "=<", ">", "<", "~=":
	default:
		return nil, p.in.expected("one of == != >= =< > < ~=")
	}
	p.in.take()
	c.Op = op.text
	c.Value, err = p.value(op.text == "~=")
	return c, err
}

// value reads what a comparison compares with. Integers keep all their digits: fields hold ids
// and times.
func (p eventFilter) value(text bool) (v EventValue, err error) {
	first := p.in.peek()
	digits := first
	if first.isOp("-") || first.isOp("+") {
		digits = p.in.peekAt(1)
	}
	switch {
	case text || first.isName() || first.kind == tokDate:
		v.Text, err = p.in.name("a value")
	case digits.kind == tokInt:
		v.Int, err = p.in.largeInteger("a value")
	case digits.kind == tokFloat:
		v.Float = new(Number)
		*v.Float, err = p.number()
	default:
		err = p.in.expected("a value: a number, a name or a quoted text")
	}
	return v, err
}

func (p eventFilter) field() ([]PathElem, error) {
	name, err := p.in.name("a field of an event")
	if err != nil {
		return nil, err
	}
	list := []PathElem{{Name: name}}
	for {
		switch {
		case p.in.acceptOp("."):
			if name, err = p.in.name("a field of an event"); err != nil {
				return nil, err
			}
			list = append(list, PathElem{Name: name})
		case p.in.acceptOp("["):
			e := PathElem{IsIndex: true}
			if e.Index, err = p.in.integer("an index"); err == nil {
				err = p.in.expectOp("]")
			}
			if err != nil {
				return nil, err
			}
			list = append(list, e)
		default:
			return list, nil
		}
	}
}
