// Package dql parses the query language: it turns text into a syntax tree, and a tree
// into the canonical text that names a result.
//
// The language is that of the DalmatinerDB query engine; docs/dql.md describes it. Parse
// accepts all of it, whether or not the engine can run it. It replaces aliases by what
// they stand for, so a tree has no variables. DESIGN.md lists where Parse accepts more.
package dql

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"unicode/utf8"

	"dalmatiner/internal/metric"
)

// Limits of a query's text. They bound what a request can make the server
// allocate before any planning; both are far above what dashboards write.
const (
	MaxText  = 256 << 10 // bytes of a query
	MaxDepth = 500       // nesting of calls, parentheses and operators

	// MaxTime is the end of the year 9999 in unix ms: the latest time that can
	// be asked for, and the longest span.
	MaxTime = 253402300799999
)

// Error is a query that cannot be run, with the place in its text that is the
// reason.
type Error struct {
	Pos  int // byte offset, from 0
	Line int // from 1
	Col  int // in characters, from 1
	Msg  string
	Err  error // cause for errors.Is, may be nil
}

// Error returns one line: place, then message.
func (e *Error) Error() string {
	return fmt.Sprintf("line %d, column %d: %s", e.Line, e.Col, e.Msg)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// NewError returns an Error at the byte offset pos of text. The cause may be
// nil; it is not part of the message.
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

// ErrTooLong is the cause of the error for a text beyond MaxText.
var ErrTooLong = errors.New("query too long")

// Parse returns the tree of a whole query. Every error is an *Error.
func Parse(text string) (*Query, error) { return parse(text, false) }

// ParseCompat is Parse with the original's grouping: a - b - c is a - (b - c),
// and likewise for all operators.
func ParseCompat(text string) (*Query, error) { return parse(text, true) }

// parsers are shared by all texts because a parser's list of tokens would be
// most of what a short query allocates. What is put back holds nothing but
// memory, for tokensAtOnce at most.
var parsers = sync.Pool{New: func() any { return new(parser) }}

func parse(text string, toTheRight bool) (*Query, error) {
	p := parsers.Get().(*parser)
	*p = parser{in: tokens{src: text, list: p.in.list}, elements: p.elements, toTheRight: toTheRight}
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
	text := p.in.src
	if len(text) > MaxText {
		return nil, newError(text, MaxText, ErrTooLong, "the query has %d bytes, the limit is %d", len(text), MaxText)
	}
	var err error
	if p.in.list, err = lex(text, p.in.list); err != nil {
		return nil, err
	}
	q, err := p.query()
	if err != nil {
		return nil, err
	}
	q.Text = text
	if err := q.resolve(); err != nil {
		return nil, err
	}
	return q, nil
}

func unescape(src string, pos int, raw string) (string, error) {
	s, err := metric.Unescape(raw)
	if err != nil {
		return "", newError(src, pos, err, "%v", err)
	}
	return s, nil
}
