package dql

import "strings"

// Query is a whole query. Positions in it are byte offsets into Text.
type Query struct {
	Text    string
	Explain bool // the plan is asked for, not the values
	Fields  []Field
	Aliases []Alias
	Range   Range
	Limit   *Limit // nil without TOP or BOTTOM
}

// Field is one selected expression with its naming.
type Field struct {
	Expr Expr
	As   *Pattern // nil without AS
	Meta []MetaPair
}

// Alias is a selector with a name for use in fields.
type Alias struct {
	Pos  int
	Name string
	Expr Expr // *Select, *Lookup or *Shift
}

// Expr is a node of a field's expression: *Number, *Duration, *Word, *Call,
// *Binary, *Select, *Lookup, *Shift or *Events. While parsing also *Variable.
type Expr interface {
	// Pos returns the byte offset where the expression starts; for an
	// operator, of the operator itself.
	Pos() int
	print(p *printer)
}

type at int

func (a at) Pos() int { return int(a) }

// Number is a constant. Whole tells whether it was written as an integer,
// which is a type of its own for functions.
type Number struct {
	at
	Value float64
	Whole bool
}

// Unit is a unit of time.
type Unit string

// Milliseconds returns the length of the unit. The empty unit is one
// millisecond.
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
	}
	return 1
}

// Duration is a span of time. The unit is empty for a bare number of
// milliseconds where the grammar has one.
type Duration struct {
	at
	N    int64
	Unit Unit
}

// Milliseconds returns the span. Parsed ones are within ±MaxTime, which is safe
// to add.
func (d *Duration) Milliseconds() int64 { return d.N * d.Unit.Milliseconds() }

// Call is a function applied to arguments, in the order written.
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
}

// Variable is an alias's name before it is replaced.
type Variable struct {
	at
	Name string
}

// Word is one of the words that a function takes as an argument.
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

// Metric is a metric's name or a pattern of names.
type Metric struct {
	Key   []byte // nil for a pattern
	Parts []Part // of a pattern; nil otherwise
}

// Part is one element of a pattern.
type Part struct {
	Any  bool // *
	Text string
}

// Select reads one metric, or all that match a pattern, of a bucket.
type Select struct {
	at
	Metric    Metric
	Bucket    string
	BucketPos int
}

// Lookup reads the metrics that an index of dimensions finds.
type Lookup struct {
	at
	All        bool
	Metric     Metric // empty with All
	Collection string
	Where      *Cond // nil without WHERE
	Group      []DimVar
	Using      string // combinator of the groups
	UsingPos   int
}

// DimVar names a dimension. The namespace is empty by default.
type DimVar struct {
	Namespace, Name string
}

// CondOp is the operator of a condition on tags.
type CondOp uint8

// The operators of conditions on tags.
const (
	CondExists CondOp = iota
	CondEqual
	CondNotEqual
	CondAnd
	CondOr
)

// Cond is a condition on the tags of a metric: Left and Right for and, or;
// Tag and for comparisons Value otherwise.
type Cond struct {
	Pos         int
	Op          CondOp
	Tag         DimVar
	Value       string
	Left, Right *Cond
}

// Shift reads its selector earlier by a span of time.
type Shift struct {
	at
	Of Expr
	By *Duration
}

// Events selects events of a bucket.
type Events struct {
	at
	Bucket string
	Where  *EventCond // nil without WHERE
}

// EventCond is a condition on an event. Op is one of and, or, not and the
// comparison operators; and, or use Left and Right, not uses Left.
type EventCond struct {
	Pos         int
	Op          string
	Left, Right *EventCond
	Path        []PathElem
	Value       EventValue
}

// PathElem is one step into an event: a field's name or an index.
type PathElem struct {
	Name    string
	Index   int64
	IsIndex bool
}

// EventValue is what a comparison compares with: a number, or text.
type EventValue struct {
	Number *Number // nil for text
	Text   string
}

// Pattern is what AS gives: elements joined by dots.
type Pattern struct {
	Pos   int
	Elems []PatternElem
}

// PatternElem is literal text, the n-th part of the metric ($n, from 1), or
// a dimension's value.
type PatternElem struct {
	Pos      int
	Text     string
	Position int64   // from 1; 0 for other kinds
	Dim      *DimVar // nil for other kinds
}

// MetaPair is one entry of METADATA: a number or a pattern element.
type MetaPair struct {
	Pos    int
	Key    string
	Elem   PatternElem
	Number *Number // nil for an element
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

// Range is the time a query covers.
type Range struct {
	Pos      int
	Kind     RangeKind
	From, To *Instant
	Span     *Duration
}

// Instant is a point in time: unix milliseconds, a date, now, or a span
// before now.
type Instant struct {
	Pos   int
	Milli int64     // unix ms, unless one of the following is given
	Date  string    // as written, unescaped; empty if none
	Now   bool      // NOW
	Ago   *Duration // nil if none
}

// Limit keeps the first n results by a function over their whole length.
type Limit struct {
	Pos    int
	Bottom bool
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
