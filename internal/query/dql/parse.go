package dql

import (
	"cmp"
	"strconv"
	"strings"
)

// parser is a recursive-descent parser.
type parser struct {
	in    tokens
	depth int

	inCall     bool // a comma ends an argument of a function
	toTheRight bool // how chains of operators group
	elements   path // memory of the path read last
}

// enter counts one level of nesting; the caller leaves with p.depth--.
func (p *parser) enter() error {
	p.depth++
	if p.depth > MaxDepth {
		return p.in.errorAt(p.in.peek().pos, "the query nests deeper than %d levels", MaxDepth)
	}
	return nil
}

func (p *parser) query() (*Query, error) {
	if p.in.peek().isOp("{") {
		return nil, p.in.errorAt(p.in.peek().pos,
			"this is a JSON object: give the query alone, SELECT...")
	}
	q := &Query{Explain: p.in.accept("EXPLAIN")}
	if err := p.in.expectWord("SELECT"); err != nil {
		return nil, err
	}
	for {
		f, err := p.field()
		if err != nil {
			return nil, err
		}
		q.Fields = append(q.Fields, f)
		if !p.in.acceptOp(",") {
			break
		}
	}
	var err error
	if p.in.accept("ALIAS") {
		if q.Aliases, err = p.aliases(); err != nil {
			return nil, err
		}
	}
	if q.Range, err = p.timeRange(); err != nil {
		return nil, err
	}
	if q.Zone, err = p.in.zone(); err != nil {
		return nil, err
	}
	if q.Limit, err = p.limit(); err != nil {
		return nil, err
	}
	if p.in.peek().kind != tokEOF {
		return nil, p.in.expected("the end of the query")
	}
	return q, nil
}

func (p *parser) field() (Field, error) {
	var f Field
	var err error
	if p.in.peek().is("EVENTS") && p.in.peekAt(1).is("FROM") {
		f.Expr, err = p.events()
	} else {
		f.Expr, err = p.sum()
	}
	if err != nil {
		return f, err
	}
	if p.in.accept("AS") {
		if f.As, err = p.pattern(); err != nil {
			return f, err
		}
	}
	if p.in.accept("METADATA") {
		f.Meta, err = p.metadata()
	}
	return f, err
}

func (p *parser) aliases() ([]Alias, error) {
	var list []Alias
	for {
		start := p.in.peek()
		e, err := p.selector()
		if err != nil {
			return nil, err
		}
		if v, ok := e.(*Variable); ok {
			return nil, p.in.errorAt(v.Pos(),
				"an alias stands for a selector: expected BUCKET or FROM after '%s'", v.Name)
		}
		if s, ok := e.(*Shift); ok {
			if _, ok := s.Of.(*Variable); ok {
				return nil, p.in.errorAt(start.pos, "an alias stands for a selector, not for another alias")
			}
		}
		if err := p.in.expectWord("AS"); err != nil {
			return nil, err
		}
		a := Alias{Pos: p.in.peek().pos, Expr: e}
		if a.Name, err = p.in.name("the alias's name"); err != nil {
			return nil, err
		}
		list = append(list, a)
		if !p.in.acceptOp(",") {
			return list, nil
		}
	}
}

func (p *parser) limit() (*Limit, error) {
	t := p.in.peek()
	if !t.is("TOP") && !t.is("BOTTOM") {
		return nil, nil
	}
	p.in.take()
	l := &Limit{Pos: t.pos, Bottom: t.is("BOTTOM")}
	var err error
	if l.N, err = p.in.integer("the number of results to keep"); err != nil {
		return nil, err
	}
	if err = p.in.expectWord("BY"); err != nil {
		return nil, err
	}
	t = p.in.peek()
	name, err := p.function()
	if err != nil {
		return nil, err
	}
	l.By, err = p.call(t, name)
	return l, err
}

// span reads an integer and a unit. With bare, the unit may be missing and
// the number is milliseconds.
func (p *parser) span(bare bool) (*Duration, error) {
	d := &Duration{at: at(p.in.peek().pos)}
	var err error
	if d.N, err = p.in.integer("a span of time such as 5m"); err != nil {
		return nil, err
	}
	number := p.in.last()
	if err = p.units(d); err != nil || d.Unit != "" {
		return d, err
	}
	if err := p.in.unknownUnit(number); err != nil {
		return nil, err
	}
	if !bare {
		return nil, p.in.expected("a unit of time: " + p.in.units("or"))
	}
	return d, p.bounded(d)
}

// units reads what follows the first number of a span: a unit, or as in 1h30m more numbers with
// ever shorter units. Such a span is one of the shortest unit, 90m; 1y6mo is 18mo. Where no unit
// follows, d stays as it is.
func (p *parser) units(d *Duration) error {
	t := p.in.peek()
	if t.kind != tokWord {
		return nil
	}
	unit, rest := p.in.cutUnit(t.text)
	sum := Duration{at: d.at, N: d.N, Unit: unit}
	for unit != "" {
		if err := p.bounded(&sum); err != nil {
			return err
		}
		if rest == "" {
			p.in.take()
			*d = sum
			return nil
		}
		digits := len(rest) - len(strings.TrimLeft(rest, "0123456789"))
		n, err := strconv.ParseInt(rest[:digits], 10, 64)
		if unit, rest = p.in.cutUnit(rest[digits:]); err != nil || d.N == 0 || unit == "" {
			return nil
		}
		next := Duration{at: d.at, N: n, Unit: unit}
		times := sum.Unit.in(unit)
		if times == 0 && sum.Unit.Varies() != unit.Varies() {
			return p.in.errorAt(d.Pos(),
				"%s%s: months and years have no fixed length, so no other units stand beside them",
				p.in.last().text, t.text)
		}
		if times == 0 {
			return nil
		}
		if err := p.bounded(&next); err != nil {
			return err
		}
		if d.N < 0 {
			n = -n
		}
		sum.N, sum.Unit = sum.N*times+n, unit
	}
	return nil
}

// cutUnit splits a text that begins with a unit of time and has digits or nothing behind it; the
// unit is empty where it does not.
func (ts *tokens) cutUnit(text string) (unit Unit, rest string) {
	name := text
	if i := strings.IndexAny(text, "0123456789"); i >= 0 {
		name = text[:i]
	}
	switch name {
	case "ms", "s", "m", "h", "d", "w":
		return Unit(name), text[len(name):]
	case "mo", "y":
		if ts.calendar {
			return Unit(name), text[len(name):]
		}
	}
	return "", text
}

// bounded refuses a span that is longer than all time there is: a shorter one
// in its place would give other numbers than those asked for.
func (p *parser) bounded(d *Duration) error {
	if u := d.Unit.Milliseconds(); d.N > MaxTime/u || d.N < -MaxTime/u {
		return p.in.errorAt(d.Pos(), "%d%s is out of range, the limit is %d ms, the end of the year 9999",
			d.N, cmp.Or(d.Unit, "ms"), int64(MaxTime))
	}
	return nil
}
