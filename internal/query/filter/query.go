package filter

import (
	"fmt"

	"dalmatiner/internal/query/dql"
)

// FromText reads a filter as the query language has it behind WHERE. An empty text gives the
// filter that every event meets. Every error is a *dql.Error.
func FromText(text string) (*Filter, error) {
	c, err := dql.ParseEventFilter(text)
	if err != nil {
		return nil, err
	}
	return FromQuery(text, c)
}

// FromQuery returns the filter of a condition of a query with the given text: a list of what has
// to hold, which is empty for nil. Conditions that are joined by AND become one list, and != is
// NOT ==. Every error is a *dql.Error.
func FromQuery(text string, c *dql.EventCond) (*Filter, error) {
	f := &Filter{Op: And}
	if c == nil {
		return f, nil
	}
	t := translator{text: text}
	if err := t.all(f, c, 0); err != nil {
		return nil, err
	}
	return f, nil
}

type translator struct {
	text string
	budget
}

var comparisons = map[string]Op{"==": Equal, "!=": Equal, ">=": GreaterEqual, "=<": LessEqual,
	">": Greater, "<": Less, "~=": Matches}

func (t *translator) node(f *Filter, c *dql.EventCond, depth int) error {
	switch c.Op {
	case "and":
		f.Op = And
		return t.all(f, c, depth+1)
	case "or":
		f.Op, f.Nodes = Or, make([]Filter, 2)
		if err := t.node(&f.Nodes[0], c.Left, depth+1); err != nil {
			return err
		}
		return t.node(&f.Nodes[1], c.Right, depth+1)
	case "not":
		f.Op, f.Nodes = Not, make([]Filter, 1)
		return t.node(&f.Nodes[0], c.Left, depth+1)
	}
	if c.Op == "!=" {
		f.Op, f.Nodes = Not, make([]Filter, 1)
		f = &f.Nodes[0]
	}
	f.Op = comparisons[c.Op]
	f.Path = make([]Step, len(c.Path))
	for i, e := range c.Path {
		f.Path[i] = Step(e)
	}
	switch v := c.Value; {
	case v.Int != nil && v.Int.IsInt64():
		f.Value = Value{Kind: Int, Int: v.Int.Int64()}
	case v.Int != nil:
		f.Value = Value{Kind: Big, Big: v.Int}
	case v.Float != nil:
		f.Value = Value{Kind: Float, Float: v.Float.Value}
	default:
		f.Value = Value{Kind: Text, Text: v.Text}
	}
	if f.Op != Matches {
		return nil
	}
	if err := t.compile(f); err != nil {
		return dql.NewError(t.text, c.Pos, ErrBad, err.Error())
	}
	return nil
}

// all appends the conditions that c joins to the nodes of f, from left to right. A chain of ANDs
// is as deep as it is long in the tree of the query, and flat here.
func (t *translator) all(f *Filter, c *dql.EventCond, depth int) error {
	if depth > MaxDepth {
		return dql.NewError(t.text, c.Pos, ErrBad, fmt.Sprintf("the filter nests deeper than %d levels",
			MaxDepth))
	}
	var list []*dql.EventCond
	for c.Op == "and" {
		list = append(list, c.Right)
		c = c.Left
	}
	list = append(list, c)
	for i := len(list) - 1; i >= 0; i-- {
		if list[i].Op == "and" {
			if err := t.all(f, list[i], depth+1); err != nil {
				return err
			}
			continue
		}
		f.Nodes = append(f.Nodes, Filter{})
		if err := t.node(&f.Nodes[len(f.Nodes)-1], list[i], depth+1); err != nil {
			return err
		}
	}
	return nil
}
