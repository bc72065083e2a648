package dql

import (
	"cmp"
	"math"
	"strconv"
	"strings"
)

// keywords cannot stand for a name unless quoted or directly after a dot.
var keywords = [...]string{
	"SELECT", "BUCKET", "LAST", "AS", "FROM", "ALIAS", "METADATA", "LIKE", "BETWEEN", "NOW", "AGO", "AND",
	"OR", "AFTER", "BEFORE", "FOR", "WHERE", "SHIFT", "GROUP", "BY", "USING", "NOT", "ALL", "EVENTS", "TOP", "BOTTOM",
}

func isKeyword(word string) bool {
	for _, k := range keywords {
		if strings.EqualFold(word, k) {
			return true
		}
	}
	return false
}

// parser is a recursive-descent parser over the tokens of src.
type parser struct {
	src    string
	tokens []token
	next   int
	depth  int

	toTheRight bool // how chains of operators group
	elements   path // memory of the path read last
}

func (p *parser) peek() token { return p.tokens[p.next] }

// peekAt returns the n-th token ahead; the last token is always tokEOF.
func (p *parser) peekAt(n int) token { return p.tokens[min(p.next+n, len(p.tokens)-1)] }

func (p *parser) take() token {
	t := p.tokens[p.next]
	if t.kind != tokEOF {
		p.next++
	}
	return t
}

func (p *parser) errorAt(pos int, format string, args ...any) error {
	return newError(p.src, pos, nil, format, args...)
}

// expected returns the error for a next token that is not want.
func (p *parser) expected(want string) error {
	t := p.peek()
	hint := ""
	if t.kind == tokWord && isKeyword(t.text) {
		hint = "; a name that equals a keyword needs quotes"
	}
	return p.errorAt(t.pos, "expected %s, found %s%s", want, t.describe(p.src), hint)
}

// enter counts one level of nesting; the caller leaves with p.depth--.
func (p *parser) enter() error {
	p.depth++
	if p.depth > MaxDepth {
		return p.errorAt(p.peek().pos, "the query nests deeper than %d levels", MaxDepth)
	}
	return nil
}

func (t token) is(keyword string) bool {
	return t.kind == tokWord && strings.EqualFold(t.text, keyword)
}

func (t token) isOp(op string) bool { return t.kind == tokOperator && t.text == op }

// isName reports whether t can be a name. A unit can: the grammar wants units
// only behind numbers.
func (t token) isName() bool {
	return t.kind == tokQuoted || t.kind == tokPart || t.kind == tokWord && !isKeyword(t.text)
}

func (p *parser) accept(keyword string) bool {
	if p.peek().is(keyword) {
		p.next++
		return true
	}
	return false
}

func (p *parser) acceptOp(op string) bool {
	if p.peek().isOp(op) {
		p.next++
		return true
	}
	return false
}

func (p *parser) expectOp(op string) error {
	if !p.acceptOp(op) {
		return p.expected("'" + op + "'")
	}
	return nil
}

func (p *parser) expectWord(keyword string) error {
	if !p.accept(keyword) {
		return p.expected(keyword)
	}
	return nil
}

// name reads one name; what says which in errors.
func (p *parser) name(what string) (string, error) {
	t := p.peek()
	if t.kind == tokDate {
		return "", p.doubleQuoted(p.next)
	}
	if !t.isName() {
		return "", p.expected(what)
	}
	p.next++
	if t.kind == tokQuoted {
		return unescape(p.src, t.pos, t.text)
	}
	return t.text, nil
}

func (p *parser) query() (*Query, error) {
	if p.peek().isOp("{") {
		return nil, p.errorAt(p.peek().pos, "this is a JSON object: give the query alone, SELECT...")
	}
	q := &Query{Explain: p.accept("EXPLAIN")}
	if err := p.expectWord("SELECT"); err != nil {
		return nil, err
	}
	for {
		f, err := p.field()
		if err != nil {
			return nil, err
		}
		q.Fields = append(q.Fields, f)
		if !p.acceptOp(",") {
			break
		}
	}
	var err error
	if p.accept("ALIAS") {
		if q.Aliases, err = p.aliases(); err != nil {
			return nil, err
		}
	}
	if q.Range, err = p.timeRange(); err != nil {
		return nil, err
	}
	if q.Limit, err = p.limit(); err != nil {
		return nil, err
	}
	if p.peek().kind != tokEOF {
		return nil, p.expected("the end of the query")
	}
	return q, nil
}

func (p *parser) field() (Field, error) {
	var f Field
	var err error
	if p.peek().is("EVENTS") && p.peekAt(1).is("FROM") {
		f.Expr, err = p.events()
	} else {
		f.Expr, err = p.sum()
	}
	if err != nil {
		return f, err
	}
	if p.accept("AS") {
		if f.As, err = p.pattern(); err != nil {
			return f, err
		}
	}
	if p.accept("METADATA") {
		f.Meta, err = p.metadata()
	}
	return f, err
}

func (p *parser) aliases() ([]Alias, error) {
	var list []Alias
	for {
		start := p.peek()
		e, err := p.selector()
		if err != nil {
			return nil, err
		}
		if v, ok := e.(*Variable); ok {
			return nil, p.errorAt(v.Pos(), "an alias stands for a selector: expected BUCKET or FROM after '%s'", v.Name)
		}
		if s, ok := e.(*Shift); ok {
			if _, ok := s.Of.(*Variable); ok {
				return nil, p.errorAt(start.pos, "an alias stands for a selector, not for another alias")
			}
		}
		if err := p.expectWord("AS"); err != nil {
			return nil, err
		}
		a := Alias{Pos: p.peek().pos, Expr: e}
		if a.Name, err = p.name("the alias's name"); err != nil {
			return nil, err
		}
		list = append(list, a)
		if !p.acceptOp(",") {
			return list, nil
		}
	}
}

func (p *parser) limit() (*Limit, error) {
	t := p.peek()
	if !t.is("TOP") && !t.is("BOTTOM") {
		return nil, nil
	}
	p.next++
	l := &Limit{Pos: t.pos, Bottom: t.is("BOTTOM")}
	var err error
	if l.N, err = p.integer("the number of results to keep"); err != nil {
		return nil, err
	}
	if err = p.expectWord("BY"); err != nil {
		return nil, err
	}
	t = p.peek()
	name, err := p.function()
	if err != nil {
		return nil, err
	}
	l.By, err = p.call(t, name)
	return l, err
}

// integer reads an integer with an optional sign.
func (p *parser) integer(what string) (int64, error) {
	sign := ""
	t := p.peek()
	if (t.isOp("-") || t.isOp("+")) && p.peekAt(1).kind == tokInt {
		sign = t.text
		p.next++
	}
	t = p.peek()
	if t.kind != tokInt {
		return 0, p.expected(what)
	}
	p.next++
	n, err := strconv.ParseInt(sign+t.text, 10, 64)
	if err != nil {
		return 0, p.errorAt(t.pos, "the integer %s is out of range, the limit is %d", t.describe(p.src), int64(math.MaxInt64))
	}
	return n, nil
}

// unit reads a unit of time if one follows.
func (p *parser) unit() Unit {
	if t := p.peek(); t.kind == tokWord {
		switch t.text {
		case "ms", "s", "m", "h", "d", "w":
			p.next++
			return Unit(t.text)
		}
	}
	return ""
}

// span reads an integer and a unit. With bare, the unit may be missing and
// the number is milliseconds.
func (p *parser) span(bare bool) (*Duration, error) {
	d := &Duration{at: at(p.peek().pos)}
	var err error
	if d.N, err = p.integer("a span of time such as 5m"); err != nil {
		return nil, err
	}
	number := p.tokens[p.next-1]
	if d.Unit = p.unit(); d.Unit == "" {
		if err := p.unknownUnit(number); err != nil {
			return nil, err
		}
	}
	if d.Unit == "" && !bare {
		return nil, p.expected("a unit of time: ms, s, m, h, d or w")
	}
	return d, p.bounded(d)
}

// bounded refuses a span that is longer than all time there is: a shorter one
// in its place would give other numbers than those asked for.
func (p *parser) bounded(d *Duration) error {
	if u := d.Unit.Milliseconds(); d.N > MaxTime/u || d.N < -MaxTime/u {
		return p.errorAt(d.Pos(), "%d%s is out of range, the limit is %d ms, the end of the year 9999", d.N, cmp.Or(d.Unit, "ms"), int64(MaxTime))
	}
	return nil
}
