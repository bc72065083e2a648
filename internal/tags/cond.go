package tags

import (
	"dalmatiner/internal/tags/match"
	"fmt"
	"strings"

	"dalmatiner/internal/model/metric"
)

// Op is the operator of a condition.
type Op uint8

// The operators of conditions.
const (
	Exists Op = iota // the series has Tag
	Equal            // Tag has Value
	Glob             // the value of Tag consists of Pieces with anything between them
	Regexp           // Pattern matches the whole value of Tag
	And              // Left and Right hold
	Or               // Left or Right holds
	Not              // Left does not hold; so for a tag that the series lacks
)

// Cond is a condition on the tags of a series. Op says which fields have a meaning.
type Cond struct {
	Op          Op
	Tag         TagName
	Value       []byte
	Pieces      [][]byte // at least one; a single one is the whole value
	Pattern     string   // RE2; the dot matches any character
	Left, Right *Cond
}

// String returns the condition as the query language writes it.
func (c *Cond) String() string {
	switch c.Op {
	case Equal:
		return c.Tag.String() + " = " + metric.Quote(string(c.Value))
	case Glob:
		return c.Tag.String() + " LIKE " + QuotedGlob(c.Pieces)
	case Regexp:
		return c.Tag.String() + " =~ " + metric.Quote(c.Pattern)
	case And:
		return "(" + c.Left.String() + " AND " + c.Right.String() + ")"
	case Or:
		return "(" + c.Left.String() + " OR " + c.Right.String() + ")"
	case Not:
		return "NOT " + c.Left.String()
	}
	return c.Tag.String()
}

// QuotedGlob returns the pattern of a Glob in quotes, * between its pieces, and \* for one in them.
func QuotedGlob(pieces [][]byte) string {
	var b strings.Builder
	b.WriteByte('\'')
	for i, p := range pieces {
		if i > 0 {
			b.WriteByte('*')
		}
		b.WriteString(strings.ReplaceAll(metric.Escape(string(p)), "*", `\*`))
	}
	b.WriteByte('\'')
	return b.String()
}

// NeedsStored reports whether only a series with a stored tag can meet a condition. nil is met by
// all.
func (c *Cond) NeedsStored() bool {
	if c == nil {
		return false
	}
	switch c.Op {
	case And:
		return c.Left.NeedsStored() || c.Right.NeedsStored()
	case Or:
		return c.Left.NeedsStored() && c.Right.NeedsStored()
	case Not:
		return false
	}
	_, implied := impliedTag(c.Tag)
	return !implied
}

// UntaggedFilter returns what tells whether a condition holds for a series that has no tags but
// those of its key. nil holds for all. An error is that of a regular expression.
func (c *Cond) UntaggedFilter() (holds func(key []byte) bool, err error) {
	if c == nil {
		return func([]byte) bool { return true }, nil
	}
	switch c.Op {
	case And, Or, Not:
		return c.untaggedBoth()
	}
	tag, ok := impliedTag(c.Tag)
	if !ok {
		return func([]byte) bool { return false }, nil
	}
	m := &match.Matcher{}
	if c.Op != Exists {
		if m, err = matcherOf(c); err != nil {
			return nil, fmt.Errorf("%s: %w", c, err)
		}
	}
	return func(key []byte) bool {
		value, ok := tag.valueOf(nil, key)
		return ok && (c.Op == Exists || m.Match(value))
	}, nil
}

func (c *Cond) untaggedBoth() (holds func(key []byte) bool, err error) {
	left, err := c.Left.UntaggedFilter()
	if err != nil {
		return nil, err
	}
	if c.Op == Not {
		return func(key []byte) bool { return !left(key) }, nil
	}
	right, err := c.Right.UntaggedFilter()
	if err != nil {
		return nil, err
	}
	if c.Op == And {
		return func(key []byte) bool { return left(key) && right(key) }, nil
	}
	return func(key []byte) bool { return left(key) || right(key) }, nil
}
