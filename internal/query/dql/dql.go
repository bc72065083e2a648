// Package dql parses the query language: it turns text into a syntax tree, and a tree into
// the canonical text that names a result.
//
// The language is that of the DalmatinerDB query engine, and docs/dql.md describes it. Parse
// accepts all of it, whether or not our engine can run it. DESIGN.md lists where it accepts
// more than the original.
//
// Functions may be called concurrently, and many goroutines may read one tree. No function
// changes a tree once it is parsed. Nodes may be shared: all uses of an alias have the same.
// Every field Pos is a byte offset into the text of the query, from 0.
package dql

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"unicode/utf8"

	"dalmatiner/internal/model/metric"
)

// The limits of a query. MaxText and MaxDepth bound what a request can make the server
// allocate before any planning. Both are far above what dashboards write.
const (
	MaxText  = 256 << 10 // bytes of the text
	MaxDepth = 500       // nesting of calls, parentheses and operators

	// MaxTime is the end of the year 9999 in milliseconds since 1970: the latest time that
	// can be asked for, and the longest span of time.
	MaxTime = 253402300799999
)

// Error says why a query cannot be run, and which place in its text is the reason.
type Error struct {
	Pos  int    // byte offset, from 0
	Line int    // from 1
	Col  int    // in characters, from 1
	Msg  string // for people, without the place
	Err  error  // cause for errors.Is, may be nil
}

// Error returns one line: the place, then the message.
func (e *Error) Error() string {
	return fmt.Sprintf("line %d, column %d: %s", e.Line, e.Col, e.Msg)
}

// Unwrap returns the cause, which may be nil.
func (e *Error) Unwrap() error { return e.Err }

// NewError returns an Error at the byte offset pos of text, or at the nearest end of text for
// a pos outside of it. The cause may be nil. It is not part of the message.
func NewError(text string, pos int, cause error, msg string) *Error {
	pos = min(max(pos, 0), len(text))
	before := text[:pos]
	line := strings.LastIndexByte(before, '\n') + 1
	return &Error{
		Pos:  pos,
		Line: strings.Count(before, "\n") + 1,
		Col:  utf8.RuneCountInString(before[line:]) + 1,
		Msg:  msg,
		Err:  cause,
	}
}

func newError(text string, pos int, cause error, format string, args ...any) *Error {
	return NewError(text, pos, cause, fmt.Sprintf(format, args...))
}

// ErrTooLong is the cause of the Error for a text of more than MaxText bytes.
var ErrTooLong = errors.New("query too long")

// Parse returns the tree of a whole query. Names of aliases are replaced by what they stand
// for, so that the tree has no Variable. The tree keeps text. Every error is an *Error.
//
// Operators of one rank group to the left: a - b - c is (a - b) - c.
func Parse(text string) (*Query, error) { return parse(text, false) }

// ParseCompat is Parse with the original's grouping of operators: a - b - c is a - (b - c), and
// likewise for all operators of one rank. It knows no months, years and TZ.
func ParseCompat(text string) (*Query, error) { return parse(text, true) }

// parsers are shared by all texts because a parser's list of tokens would be
// most of what a short query allocates. What is put back holds nothing but
// memory, for tokensAtOnce at most.
var parsers = sync.Pool{New: func() any { return new(parser) }}

func parse(text string, toTheRight bool) (*Query, error) {
	p := parsers.Get().(*parser)
	*p = parser{
		in:         tokens{src: text, list: p.in.list, calendar: !toTheRight},
		elements:   p.elements,
		toTheRight: toTheRight,
	}
	q, err := p.parse()
	p.release()
	return q, err
}

func (p *parser) release() {
	clear(p.in.list)
	clear(p.elements[:cap(p.elements)])
	*p = parser{in: tokens{list: p.in.list[:0]}, elements: p.elements[:0]}
	if cap(p.in.list) <= tokensAtOnce && cap(p.elements) <= tokensAtOnce {
		parsers.Put(p)
	}
}

func (p *parser) parse() (*Query, error) {
	if err := p.lex(); err != nil {
		return nil, err
	}
	q, err := p.query()
	if err != nil {
		return nil, err
	}
	q.Text = p.in.src
	if err := q.resolve(); err != nil {
		return nil, err
	}
	return q, nil
}

// lex splits the text, unless it is too long.
func (p *parser) lex() error {
	text := p.in.src
	if len(text) > MaxText {
		return newError(text, MaxText, ErrTooLong, "the query has %d bytes, the limit is %d", len(text),
			MaxText)
	}
	var err error
	p.in.list, err = lex(text, p.in.list)
	return err
}

func unescape(src string, pos int, raw string) (string, error) {
	s, err := metric.Unescape(raw)
	if err != nil {
		return "", newError(src, pos, err, "%v", err)
	}
	return s, nil
}
