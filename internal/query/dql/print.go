package dql

import (
	"math"
	"strconv"
	"strings"

	"dalmatiner/internal/model/metric"
)

// usualName is how many bytes few names go beyond.
const usualName = 128

// Name returns the canonical text of an expression, which is what a field without AS is
// called. As in the original it leaves constant arguments out, and writes operators as the
// functions that they stand for.
//
// Of a name that is longer than most bytes it returns only a beginning. The beginning is longer
// than most bytes as well, so that the caller sees it. Aliases let a name grow far beyond its
// query.
func Name(e Expr, most int) string {
	p := printer{name: true, most: most, buf: make([]byte, 0, usualName)}
	e.print(&p)
	return string(p.buf)
}

// Text returns an expression as it can stand in a query.
func Text(e Expr) string {
	var p printer
	e.print(&p)
	return string(p.buf)
}

// String returns the whole query in one line, with aliases replaced by what they stand for.
// Parse makes an equal tree of it.
func (q *Query) String() string {
	var p printer
	if q.Explain {
		p.text("EXPLAIN ")
	}
	q.fields(&p)
	p.timeRange(q.Range)
	q.ending(&p)
	return string(p.buf)
}

// Timeless returns what String returns without EXPLAIN and the range of time. Queries that
// are equal but for these two have the same, whatever their text.
func (q *Query) Timeless() string {
	p := printer{buf: make([]byte, 0, 2*usualName)}
	q.fields(&p)
	q.ending(&p)
	return string(p.buf)
}

func (q *Query) fields(p *printer) {
	p.text("SELECT ")
	for i, f := range q.Fields {
		if i > 0 {
			p.text(", ")
		}
		if n, ok := f.Expr.(*Number); ok {
			p.operand(n, 4) // behind ON it would be one more star
		} else {
			f.Expr.print(p)
		}
		if f.As != nil {
			p.text(" AS ")
			for j, e := range f.As.Elems {
				p.dot(j)
				p.element(e)
			}
		}
		p.metadata(f.Meta)
	}
}

// ending writes what stands behind the range of time.
func (q *Query) ending(p *printer) {
	if q.Zone != nil {
		p.text(" TZ ")
		p.doubleQuoted(q.Zone.Name)
	}
	if l := q.Limit; l != nil {
		p.text(map[bool]string{false: " TOP ", true: " BOTTOM "}[l.Bottom])
		p.int(l.N)
		p.text(" BY ")
		l.By.print(p)
	}
}

// printer writes either names or, by default, complete text.
type printer struct {
	buf  []byte
	name bool
	most int // names go on no longer when they have more bytes
}

func (p *printer) text(s string)   { p.buf = append(p.buf, s...) }
func (p *printer) int(n int64)     { p.buf = strconv.AppendInt(p.buf, n, 10) }
func (p *printer) quoted(s string) { p.buf = metric.AppendQuoted(p.buf, []byte(s)) }

// doubleQuoted writes a date or a time zone.
func (p *printer) doubleQuoted(s string) {
	p.text(`"` + strings.ReplaceAll(metric.Escape(s), `"`, `\"`) + `"`)
}

func (p *printer) dot(i int) {
	if i > 0 {
		p.text(".")
	}
}

// word writes a function's name, in quotes only where it needs them. Before a
// parenthesis keywords need none.
func (p *printer) word(s string, called bool) {
	plain := s != "" && isLetter(s[0]) && (called || !isKeyword(s))
	for i := 0; plain && i < len(s); i++ {
		plain = isWordByte(s[i])
	}
	if plain {
		p.text(s)
	} else {
		p.quoted(s)
	}
}

func (n *Number) print(p *printer) {
	if n.Whole {
		p.int(int64(n.Value))
		return
	}
	s := strconv.FormatFloat(n.Value, 'g', -1, 64)
	mantissa, exp, ok := strings.Cut(s, "e")
	if !strings.Contains(mantissa, ".") {
		mantissa += ".0"
	}
	p.text(mantissa)
	if ok {
		p.text("e" + exp)
	}
}

func (d *Duration) print(p *printer) {
	p.int(d.N)
	p.text(string(d.Unit))
}

func (w *Word) print(p *printer) { p.text(w.Text) }

func (v *Variable) print(p *printer) { p.quoted(v.Name) }

func isConstant(e Expr) bool {
	switch e.(type) {
	case *Number, *Duration, *Word:
		return true
	}
	return false
}

func (c *Call) print(p *printer) {
	p.word(c.Name, true)
	p.text("(")
	first := true
	for _, a := range c.Args {
		if p.name && len(p.buf) > p.most {
			return
		}
		if p.name && isConstant(a) {
			continue
		}
		if !first {
			p.text(", ")
		}
		first = false
		a.print(p)
	}
	p.text(")")
}

// Function returns the name of the function that the operator stands for. With a constant on
// one side that is add, sub, mul or divide. Between series it is sum, diff, product or
// quotient.
func (b *Binary) Function() string {
	constant := isConstant(b.L) || isConstant(b.R)
	switch {
	case b.Op == '+' && constant:
		return "add"
	case b.Op == '+':
		return "sum"
	case b.Op == '-' && constant:
		return "sub"
	case b.Op == '-':
		return "diff"
	case b.Op == '*' && constant:
		return "mul"
	case b.Op == '*':
		return "product"
	case constant:
		return "divide"
	}
	return "quotient"
}

// level returns how tight the text of an expression binds. In names operators are calls, but
// for those with ON.
func (p *printer) level(e Expr) int {
	b, ok := e.(*Binary)
	switch {
	case !ok || p.name && b.On == nil:
		return 3
	case b.Op == '*' || b.Op == '/':
		return 2
	}
	return 1
}

func (b *Binary) print(p *printer) {
	if p.name && b.On == nil {
		(&Call{Name: b.Function(), Args: []Expr{b.L, b.R}}).print(p)
		return
	}
	p.operand(b.L, p.level(b))
	if p.name && len(p.buf) > p.most {
		return
	}
	p.text(" " + string(b.Op) + " ")
	right := p.level(b) + 1
	if b.On != nil { // which would belong to an operator in there
		right = 3
	}
	p.operand(b.R, right)
	p.on(b.On)
}

func (p *printer) on(keys []JoinKey) {
	for i, k := range keys {
		switch {
		case i > 0:
			p.text(", ")
		case len(keys) > 1:
			p.text(" ON (")
		default:
			p.text(" ON ")
		}
		p.joinKey(k)
	}
	if len(keys) > 1 {
		p.text(")")
	}
}

func (p *printer) joinKey(k JoinKey) {
	if k.Dim != nil {
		p.dimension(*k.Dim)
	} else {
		p.int(k.Star)
	}
}

func (p *printer) operand(e Expr, least int) {
	if p.level(e) >= least {
		e.print(p)
		return
	}
	p.text("(")
	e.print(p)
	p.text(")")
}

func (m Metric) print(p *printer) {
	if m.Parts == nil {
		p.buf = metric.AppendText(p.buf, m.Key)
		return
	}
	for i, part := range m.Parts {
		p.dot(i)
		if part.Any {
			p.text("*")
		} else {
			p.quoted(part.Text)
		}
	}
}

func (s *Select) print(p *printer) {
	s.Metric.print(p)
	p.text(" BUCKET ")
	p.quoted(s.Bucket)
}

func (s *Shift) print(p *printer) {
	s.Of.print(p)
	p.text(" SHIFT BY ")
	s.By.print(p)
}

func (l *Lookup) print(p *printer) {
	if l.All {
		p.text("ALL")
	} else {
		l.Metric.print(p)
	}
	p.text(" FROM ")
	p.quoted(l.Collection)
	if l.Where != nil {
		p.text(" WHERE ")
		p.cond(l.Where)
	}
	for i, d := range l.Group {
		p.text(map[bool]string{true: " GROUP BY ", false: ", "}[i == 0])
		p.dimension(d)
	}
	if l.Group != nil {
		p.text(" USING ")
		p.word(l.Using, false)
	}
}

func (p *printer) cond(c *Cond) {
	switch c.Op {
	case CondAnd, CondOr:
		p.cond(c.Left)
		p.text(map[bool]string{true: " AND (", false: " OR ("}[c.Op == CondAnd])
		p.cond(c.Right)
		p.text(")")
		return
	case CondNot:
		p.text("NOT (")
		p.cond(c.Left)
		p.text(")")
		return
	}
	if c.Tag.Namespace != "" {
		p.quoted(c.Tag.Namespace)
		p.text(":")
	}
	p.quoted(c.Tag.Name)
	switch c.Op {
	case CondEqual:
		p.text(" = ")
		p.quoted(c.Value)
	case CondNotEqual:
		p.text(" != ")
		p.quoted(c.Value)
	case CondMatch:
		p.text(" =~ '" + c.Value + "'")
	case CondNotMatch:
		p.text(" !~ '" + c.Value + "'")
	case CondLike:
		p.text(" LIKE ")
		p.like(c.Pieces)
	case CondNotLike:
		p.text(" NOT LIKE ")
		p.like(c.Pieces)
	}
}

func (p *printer) like(pieces []string) {
	p.text("'")
	for i, piece := range pieces {
		if i > 0 {
			p.text("*")
		}
		p.text(strings.ReplaceAll(metric.Escape(piece), "*", `\*`))
	}
	p.text("'")
}

func (p *printer) dimension(d DimVar) {
	p.text("$")
	if d.Namespace != "" {
		p.quoted(d.Namespace)
		p.text(":")
	}
	p.quoted(d.Name)
}

func (p *printer) element(e PatternElem) {
	switch {
	case e.Position > 0:
		p.text("$")
		p.int(e.Position)
	case e.Dim != nil:
		p.dimension(*e.Dim)
	default:
		p.quoted(e.Text)
	}
}

func (p *printer) metadata(pairs []MetaPair) {
	for i, m := range pairs {
		p.text(map[bool]string{true: " METADATA {", false: ", "}[i == 0])
		p.quoted(m.Key)
		p.text(": ")
		if m.Number != nil {
			m.Number.print(p)
		} else {
			p.element(m.Elem)
		}
	}
	if pairs != nil {
		p.text("}")
	}
}

func (p *printer) timeRange(r Range) {
	switch r.Kind {
	case RangeLast:
		p.text(" LAST ")
		r.Span.print(p)
		return
	case RangeBetween:
		p.text(" BETWEEN ")
		p.instant(r.From)
		p.text(" AND ")
		p.instant(r.To)
		return
	case RangeAfter:
		p.text(" AFTER ")
	case RangeBefore:
		p.text(" BEFORE ")
	}
	p.instant(r.From)
	p.text(" FOR ")
	r.Span.print(p)
}

func (p *printer) instant(i *Instant) {
	switch {
	case i.Now:
		p.text("NOW")
	case i.Ago != nil:
		i.Ago.print(p)
		p.text(" AGO")
	case i.Date != "":
		p.doubleQuoted(i.Date)
	default:
		p.int(i.Milli)
	}
}

func (e *Events) print(p *printer) {
	p.text("EVENTS FROM ")
	p.quoted(e.Bucket)
	if e.Where != nil {
		p.text(" WHERE ")
		p.eventCond(e.Where)
	}
}

func (p *printer) eventCond(c *EventCond) {
	switch c.Op {
	case "and", "or":
		p.eventCond(c.Left)
		p.text(" " + strings.ToUpper(c.Op) + " (")
		p.eventCond(c.Right)
		p.text(")")
		return
	case "not":
		p.text("NOT (")
		p.eventCond(c.Left)
		p.text(")")
		return
	}
	for i, e := range c.Path {
		if e.IsIndex {
			p.text("[")
			p.int(e.Index)
			p.text("]")
			continue
		}
		p.dot(i)
		p.quoted(e.Name)
	}
	p.text(" " + c.Op + " ")
	switch {
	case c.Value.Int != nil:
		p.text(c.Value.Int.String())
	case c.Value.Float != nil:
		c.Value.Float.print(p)
	default:
		p.quoted(c.Value.Text)
	}
}

// tidy limits a computed constant to the range its text has.
func (n *Number) tidy() bool {
	const exact = 1 << 53
	if math.Abs(n.Value) > exact {
		n.Whole = false
	}
	if n.Whole && n.Value == 0 {
		n.Value = 0 // an integer has no negative zero
	}
	return !math.IsInf(n.Value, 0) && !math.IsNaN(n.Value)
}
