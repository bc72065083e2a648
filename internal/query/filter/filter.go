// Package filter decides which events are wanted: a tree of conditions on the fields of an
// event, from its form on the wire or from the query language, and its evaluation over a term.
//
// Comparisons follow Erlang's order of terms (package term). A comparison of a field that an
// event does not have is false, and NOT of it is true. A filter does not change once it was
// made; it may be used by several goroutines.
package filter

import (
	"errors"
	"fmt"
	"math/big"
	"regexp"

	"dalmatiner/internal/model/term"
)

// Op is what a node of a filter does, as the wire numbers it.
type Op uint8

// The operators. Comparisons are of the field with the value.
const (
	And          Op = 0x01 // all nodes hold; none is everything
	Or           Op = 0x02 // one of two nodes holds
	Not          Op = 0x03 // one node does not hold
	Equal        Op = 0x81
	GreaterEqual Op = 0x82
	LessEqual    Op = 0x83
	Greater      Op = 0x84
	Less         Op = 0x85
	Matches      Op = 0x86 // the field is text in which the regular expression is found
)

// The limits of a filter.
const (
	MaxSize    = 64 << 10 // bytes on the wire
	MaxDepth   = 1000     // nesting
	MaxPattern = 4 << 10  // bytes of all its regular expressions together
)

// ErrBad is the cause of every error about what a filter says.
var ErrBad = errors.New("bad filter")

// Filter is a tree of conditions. The zero value is met by every event.
type Filter struct {
	Op    Op       // 0: everything
	Nodes []Filter // of And, Or and Not
	Path  []Step   // of a comparison, from the top of the event; at least one
	Value Value    // of a comparison

	pattern *regexp.Regexp // of Matches
}

// Step leads from a value into it: to a field of a map, or to an element of a list.
type Step struct {
	Name    string
	Index   int64 // from 0
	IsIndex bool  // the step is Index, not Name
}

// ValueKind is the type of a value.
type ValueKind uint8

// The types of values, as the wire numbers them.
const (
	Text  ValueKind = 1
	Int   ValueKind = 2
	Float ValueKind = 3
	Big   ValueKind = 4
)

// Value is what a field is compared with.
type Value struct {
	Kind  ValueKind
	Text  string // of Text, any bytes
	Int   int64
	Float float64  // not NaN
	Big   *big.Int // an integer of any length
}

// Match reports whether an event meets the filter.
func (f *Filter) Match(event term.Value) bool {
	switch f.Op {
	case 0:
		return true
	case And:
		for i := range f.Nodes {
			if !f.Nodes[i].Match(event) {
				return false
			}
		}
		return true
	case Or:
		return f.Nodes[0].Match(event) || f.Nodes[1].Match(event)
	case Not:
		return !f.Nodes[0].Match(event)
	}
	for _, s := range f.Path {
		var ok bool
		if s.IsIndex {
			event, ok = event.Index(s.Index)
		} else {
			event, ok = event.Field(s.Name)
		}
		if !ok {
			return false
		}
	}
	return f.compare(event)
}

func (f *Filter) compare(field term.Value) bool {
	if f.Op == Matches {
		text, ok := field.Text()
		return ok && f.pattern.Match(text)
	}
	var c int
	switch f.Value.Kind {
	case Text:
		c = field.CompareText(f.Value.Text)
	case Int:
		c = field.CompareInt(f.Value.Int)
	case Float:
		c = field.CompareFloat(f.Value.Float)
	case Big:
		c = field.CompareBig(f.Value.Big)
	}
	switch f.Op {
	case Equal:
		return c == 0
	case GreaterEqual:
		return c >= 0
	case LessEqual:
		return c <= 0
	case Greater:
		return c > 0
	}
	return c < 0
}

// budget counts what may grow with a filter while one is made.
type budget struct {
	patterns int
}

// compile makes the regular expression of a node.
func (b *budget) compile(f *Filter) error {
	if b.patterns += len(f.Value.Text); b.patterns > MaxPattern {
		return fmt.Errorf("%w: its regular expressions have more than %d bytes", ErrBad, MaxPattern)
	}
	var err error
	if f.pattern, err = regexp.Compile(f.Value.Text); err != nil {
		return fmt.Errorf("%w: %v", ErrBad, err)
	}
	return nil
}
