package dql

import (
	"math/big"
	"strings"
)

// Query is a whole query.
type Query struct {
	Text    string
	Explain bool    // the plan is asked for, not the values
	Fields  []Field // at least one
	Aliases []Alias // as written; the fields have them replaced
	Range   Range
	Zone    *Zone  // nil without TZ
	Limit   *Limit // nil without TOP or BOTTOM
}

// Field is one expression that is selected, and how its results are named.
type Field struct {
	Expr Expr
	As   *Pattern   // nil without AS
	Meta []MetaPair // none without METADATA
}

// Alias is a selector that fields may name.
type Alias struct {
	Pos  int
	Name string
	Expr Expr // *Select, *Lookup or *Shift
}

// Expr is a node of the expression of a field: *Number, *Duration, *Word, *Call, *Binary,
// *Select, *Lookup, *Shift or *Events. *Variable occurs only while a text is parsed.
type Expr interface {
	// Pos returns the byte offset in the text of the query where the expression begins, or
	// that of the operator of a *Binary.
	Pos() int
	print(p *printer)
}

type at int

func (a at) Pos() int { return int(a) }

// Number is a constant.
type Number struct {
	at
	Value float64
	Whole bool // it was written as an integer, which is a type of its own for functions
}

// Unit is a unit of time: ms, s, m, h, d, w, mo, y, or empty for milliseconds.
type Unit string

// Milliseconds returns the length of the unit, of a month and a year the nominal one: 30 and 365
// days. Any text that is no unit counts as ms.
func (u Unit) Milliseconds() int64 {
	switch u {
	case "s":
		return 1000
	case "m":
		return 60 * 1000
	case "h":
		return 3600 * 1000
	case "d":
		return 24 * 3600 * 1000
	case "w":
		return 7 * 24 * 3600 * 1000
	case "mo":
		return 30 * 24 * 3600 * 1000
	case "y":
		return 365 * 24 * 3600 * 1000
	}
	return 1
}

// Varies reports whether months or years are counted, which differ in length.
func (u Unit) Varies() bool { return u == "mo" || u == "y" }

// in returns how many of a shorter unit the unit has, 0 where that is not a whole number.
func (u Unit) in(shorter Unit) int64 {
	switch {
	case u == "y" && shorter == "mo":
		return 12
	case u.Varies() || shorter.Varies():
		return 0
	case u.Milliseconds() <= shorter.Milliseconds():
		return 0
	}
	return u.Milliseconds() / shorter.Milliseconds()
}

// Duration is a span of time: N units. The unit is empty for a bare number, of milliseconds,
// where the grammar has one.
type Duration struct {
	at
	N    int64
	Unit Unit
}

// Milliseconds returns the length of the span. Parsed ones are short enough to be added to a
// time without overflow.
func (d *Duration) Milliseconds() int64 { return d.N * d.Unit.Milliseconds() }

// Call is a function applied to its arguments. Name is as written. Args have the order of the
// text. Only here an *Events may be part of an expression, as it is or in a *Shift.
type Call struct {
	at
	Name string
	Args []Expr
}

// Binary is an operator between two expressions: + - * or /.
type Binary struct {
	at
	Op   byte
	L, R Expr
	On   []JoinKey // by which the series of both sides find each other; nil without ON
}

// JoinKey is what series on both sides of an operator have to have in common.
type JoinKey struct {
	Pos  int
	Star int64   // of the stars of a pattern or the dimensions of GROUP BY, from 1; 0 for Dim
	Dim  *DimVar // nil for Star
}

// Variable is the name of an alias, before Parse replaces it.
type Variable struct {
	at
	Name string
}

// Word is a word that a function takes as an argument: previous, null, zero or linear.
type Word struct {
	at
	Text string
}

// words are what may stand for itself as an argument. An alias of the same
// name comes first.
var words = [...]string{"previous", "null", "zero", "linear"}

func (v *Variable) word() (*Word, bool) {
	for _, w := range words {
		if strings.EqualFold(v.Name, w) {
			return &Word{at: v.at, Text: w}, true
		}
	}
	return nil, false
}

// Metric is the name of a metric, or a pattern of names.
type Metric struct {
	Key   []byte // of package metric; nil for a pattern
	Parts []Part // of a pattern; nil for a name
}

// Part is one part of the pattern of a metric's name.
type Part struct {
	Any  bool   // a *, which stands for any part
	Text string // of any other one
}

// Select reads one metric of a bucket, or all that match a pattern.
type Select struct {
	at
	Metric    Metric
	Bucket    string // name
	BucketPos int    // byte offset of the name in the text of the query
}

// Lookup reads the metrics that an index of dimensions finds.
type Lookup struct {
	at
	All        bool   // ALL in the place of a metric
	Metric     Metric // empty with All
	Collection string
	Where      *Cond    // nil without WHERE
	Group      []DimVar // none without GROUP BY
	Using      string   // name of the function that combines a group; empty without GROUP BY
	UsingPos   int      // byte offset of that name in the text of the query
}

// DimVar is the name of a dimension. The namespace may be empty.
type DimVar struct {
	Namespace, Name string
}

// CondOp is the operator of a Cond.
type CondOp uint8

// The operators of conditions on tags.
const (
	CondExists   CondOp = iota // the metric has Tag
	CondEqual                  // Tag has Value
	CondNotEqual               // Tag does not have Value
	CondLike                   // the value of Tag is Pieces with anything between them
	CondNotLike                // that is not so
	CondMatch                  // the regular expression Value matches the whole value of Tag
	CondNotMatch               // that is not so
	CondAnd                    // Left and Right hold
	CondOr                     // Left or Right holds
	CondNot                    // Left does not hold
)

// Cond is a condition on the tags of a metric. Op says which fields have a meaning. A tag that a
// metric lacks equals, is like and matches nothing.
type Cond struct {
	Pos         int
	Op          CondOp
	Tag         DimVar
	Value       string   // a regular expression is RE2, as written between the quotes
	Pieces      []string // at least one
	Left, Right *Cond
}

// Shift reads its selector earlier by a span of time.
type Shift struct {
	at
	Of Expr // *Select or *Lookup; as an argument of a *Call, *Events as well
	By *Duration
}

// Events selects events of a bucket.
type Events struct {
	at
	Bucket string     // name
	Where  *EventCond // nil without WHERE
}

// EventCond is a condition on an event. Op is and, or, not, or a comparison operator as
// written. A comparison is of Path with Value. and and or have Left and Right, not has Left.
type EventCond struct {
	Pos         int
	Op          string
	Left, Right *EventCond
	Path        []PathElem
	Value       EventValue
}

// PathElem is one step into an event: the name of a field, or an index.
type PathElem struct {
	Name    string
	Index   int64
	IsIndex bool // the step is Index, not Name
}

// EventValue is what a comparison compares with: an integer, a float, or text.
type EventValue struct {
	Int   *big.Int // nil for floats and text
	Float *Number  // nil for integers and text
	Text  string
}

// Pattern is the name that AS gives to results: elements joined by dots.
type Pattern struct {
	Pos   int
	Elems []PatternElem
}

// PatternElem is literal text, the n-th part of the metric ($n), or the value of a dimension.
type PatternElem struct {
	Pos      int
	Text     string  // literal text
	Position int64   // n, from 1; 0 for the other two
	Dim      *DimVar // nil for the other two
}

// MetaPair is one entry of METADATA: a key, and a number or an element of a pattern.
type MetaPair struct {
	Pos    int
	Key    string
	Elem   PatternElem // unless Number is given
	Number *Number     // nil for an element
}

// RangeKind is the form of a time range.
type RangeKind uint8

// The forms of a time range.
const (
	RangeLast    RangeKind = iota // LAST Span
	RangeBetween                  // BETWEEN From AND To
	RangeAfter                    // AFTER From FOR Span
	RangeBefore                   // BEFORE From FOR Span
)

// Range is the time that a query covers. Kind says which other fields are given; those that
// are not are nil.
type Range struct {
	Pos      int
	Kind     RangeKind
	From, To *Instant
	Span     *Duration
}

// Relative reports whether the range depends on the present.
func (r *Range) Relative() bool {
	for _, i := range []*Instant{r.From, r.To} {
		if i != nil && (i.Now || i.Ago != nil) {
			return true
		}
	}
	return r.Kind == RangeLast
}

// Zone is the time zone whose calendar counts, and in which dates without a zone are.
type Zone struct {
	Pos  int
	Name string // as written; the parser does not know which there are
}

// Instant is a point in time: a number of milliseconds, a date, now, or a span before now.
type Instant struct {
	Pos   int
	Milli int64     // since 1970, unless one of the following is given
	Date  string    // for ParseDate; empty if none
	Now   bool      // NOW
	Ago   *Duration // the span before now; nil if none
}

// Limit keeps the first N results, ordered by a function over their whole length.
type Limit struct {
	Pos    int
	Bottom bool // BOTTOM: those with the lowest values; else TOP, those with the highest
	N      int64
	By     *Call
}

// resolve replaces variables by what their aliases stand for.
func (q *Query) resolve() error {
	byName := make(map[string]Expr, len(q.Aliases))
	for _, a := range q.Aliases {
		if _, dup := byName[a.Name]; dup {
			return newError(q.Text, a.Pos, nil, "the alias '%s' is defined twice", a.Name)
		}
		byName[a.Name] = a.Expr
	}
	for i := range q.Fields {
		e, err := q.replace(q.Fields[i].Expr, byName)
		if err != nil {
			return err
		}
		q.Fields[i].Expr = e
	}
	if q.Limit == nil {
		return nil
	}
	_, err := q.replace(q.Limit.By, byName) // a call stays what it is; its arguments are replaced
	return err
}

func (q *Query) replace(e Expr, byName map[string]Expr) (Expr, error) {
	var err error
	switch n := e.(type) {
	case *Variable:
		if to, ok := byName[n.Name]; ok {
			return to, nil
		}
		return nil, q.undefined(n, byName, nil)
	case *Call:
		for i := range n.Args {
			if v, ok := n.Args[i].(*Variable); ok && byName[v.Name] == nil {
				if w, ok := v.word(); ok {
					n.Args[i] = w
					continue
				}
				return nil, q.undefined(v, byName, n)
			}
			if n.Args[i], err = q.replace(n.Args[i], byName); err != nil {
				return nil, err
			}
		}
	case *Binary:
		if n.L, err = q.replace(n.L, byName); err != nil {
			return nil, err
		}
		n.R, err = q.replace(n.R, byName)
		return n, err
	case *Shift:
		if n.Of, err = q.replace(n.Of, byName); err != nil {
			return nil, err
		}
		if inner, ok := n.Of.(*Shift); ok {
			sum := n.By.Milliseconds() + inner.By.Milliseconds()
			return &Shift{at: n.at, Of: inner.Of, By: &Duration{at: n.By.at, N: sum}}, nil
		}
	}
	return e, nil
}
