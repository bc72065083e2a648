package dql

func (p *parser) timeRange() (Range, error) {
	t := p.in.peek()
	r := Range{Pos: t.pos}
	var err error
	switch {
	case p.in.accept("LAST"):
		r.Span, err = p.span(false)
		return r, err
	case p.in.accept("BETWEEN"):
		r.Kind = RangeBetween
		if r.From, err = p.instant(); err != nil {
			return r, err
		}
		if err = p.in.expectWord("AND"); err != nil {
			return r, err
		}
		r.To, err = p.instant()
		return r, err
	case p.in.accept("AFTER"):
		r.Kind = RangeAfter
	case p.in.accept("BEFORE"):
		r.Kind = RangeBefore
	default:
		return r, p.in.expected("',', an operator or a time range (LAST, BETWEEN, AFTER or BEFORE)")
	}
	if r.From, err = p.instant(); err != nil {
		return r, err
	}
	if err = p.in.expectWord("FOR"); err != nil {
		return r, err
	}
	r.Span, err = p.span(false)
	return r, err
}

// zone reads TZ with the name of a time zone, if it is there. The original has none.
func (ts *tokens) zone() (*Zone, error) {
	if !ts.calendar || !ts.accept("TZ") {
		return nil, nil
	}
	t := ts.peek()
	z := &Zone{Pos: t.pos}
	var err error
	if t.kind == tokDate {
		ts.take()
		z.Name, err = unescape(ts.src, t.pos, t.text)
	} else {
		z.Name, err = ts.name(`a time zone such as "Europe/Zagreb"`)
	}
	return z, err
}

// instant reads unix milliseconds, a date, NOW, or a span and AGO.
func (p *parser) instant() (*Instant, error) {
	t := p.in.peek()
	i := &Instant{Pos: t.pos}
	var err error
	switch {
	case p.in.accept("NOW"):
		i.Now = true
	case t.kind == tokDate:
		p.in.take()
		if i.Date, err = unescape(p.in.src, t.pos, t.text); err == nil && i.Date == "" {
			err = p.in.errorAt(t.pos, "the date is empty")
		}
	case t.kind == tokInt || t.isOp("-") || t.isOp("+"):
		if err := p.in.finer(t); err != nil {
			return nil, err
		}
		var d *Duration
		if d, err = p.span(true); err != nil {
			return nil, err
		}
		if p.in.accept("AGO") {
			i.Ago = d
		} else if d.Unit != "" {
			return nil, p.in.expected("AGO")
		}
		i.Milli = d.N
	default:
		return nil, p.in.expected(`a point in time: NOW, unix milliseconds, a "date", or a span and AGO`)
	}
	return i, err
}
