package dql

func (p *parser) timeRange() (Range, error) {
	t := p.peek()
	r := Range{Pos: t.pos}
	var err error
	switch {
	case p.accept("LAST"):
		r.Span, err = p.span(false)
		return r, err
	case p.accept("BETWEEN"):
		r.Kind = RangeBetween
		if r.From, err = p.instant(); err != nil {
			return r, err
		}
		if err = p.expectWord("AND"); err != nil {
			return r, err
		}
		r.To, err = p.instant()
		return r, err
	case p.accept("AFTER"):
		r.Kind = RangeAfter
	case p.accept("BEFORE"):
		r.Kind = RangeBefore
	default:
		return r, p.expected("',', an operator or a time range (LAST, BETWEEN, AFTER or BEFORE)")
	}
	if r.From, err = p.instant(); err != nil {
		return r, err
	}
	if err = p.expectWord("FOR"); err != nil {
		return r, err
	}
	r.Span, err = p.span(false)
	return r, err
}

// instant reads unix milliseconds, a date, NOW, or a span and AGO.
func (p *parser) instant() (*Instant, error) {
	t := p.peek()
	i := &Instant{Pos: t.pos}
	var err error
	switch {
	case p.accept("NOW"):
		i.Now = true
	case t.kind == tokDate:
		p.next++
		if i.Date, err = unescape(p.src, t.pos, t.text); err == nil && i.Date == "" {
			err = p.errorAt(t.pos, "the date is empty")
		}
	case t.kind == tokInt || t.isOp("-") || t.isOp("+"):
		if err := p.finer(t); err != nil {
			return nil, err
		}
		var d *Duration
		if d, err = p.span(true); err != nil {
			return nil, err
		}
		if p.accept("AGO") {
			i.Ago = d
		} else if d.Unit != "" {
			return nil, p.expected("AGO")
		}
		i.Milli = d.N
	default:
		return nil, p.expected(`a point in time: NOW, unix milliseconds, a "date", or a span and AGO`)
	}
	return i, err
}
