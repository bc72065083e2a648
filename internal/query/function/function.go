package function

import (
	"fmt"
	"slices"
	"strings"
)

// Type is a type of the language's functions.
type Type uint8

const (
	TypeMetric Type = iota
	TypeHistogram
	TypeInteger
	TypeFloat
	TypeTime
	TypeWord
	TypeEvents
	TypeMetrics // of parameters only: one or more series
	TypeNumber  // of parameters only: an integer or a float
)

func (t Type) String() string {
	return [...]string{"metric", "histogram", "integer", "float", "time", "word", "events", "metric*",
		"number"}[t]
}

// Takes reports whether an argument of type a fits a parameter of type t.
func (t Type) Takes(a Type) bool {
	return t == a || t == TypeNumber && (a == TypeInteger || a == TypeFloat)
}

// Entry is one function of the registry: a name with the types of its arguments.
type Entry struct {
	Name    string
	Args    []Type
	Kind    Kind
	Op      Op
	About   string // one line
	Example string // an expression over the data of docs/dql.md
	Since   Origin
	Note    string // where dql.compat changes it
}

// Kind is the operator that a function becomes.
type Kind uint8

const (
	KindWindow     Kind = iota // one value per span of time
	KindCombine                // one series from many
	KindAcross                 // one series from many, which all have to be there
	KindPick                   // many series from many
	KindScalar                 // arithmetic with a constant
	KindMap                    // value by value
	KindReplace                // value by value, with its confidence
	KindStep                   // from a value and the one before it
	KindMoving                 // from the values of a span before
	KindFill                   // gaps
	KindConfidence             // the confidence as value
	KindHistogram              // a histogram per span of time
	KindStatistic              // a number out of a histogram
	KindEvents                 // one value per step, from events
)

// Result returns the type of what the function gives.
func (k Kind) Result() Type {
	if k == KindHistogram {
		return TypeHistogram
	}
	return TypeMetric
}

// Signature returns the name with the types of the arguments.
func (f *Entry) Signature() string { return f.Name + "(" + TypeList(f.Args) + ")" }

// TypeList returns types as messages name them.
func TypeList(types []Type) string {
	var list []string
	for _, t := range types {
		list = append(list, t.String())
	}
	return strings.Join(list, ", ")
}

// Lookup returns the function of that name and types. As in the
// original, the exact types are tried first, then series that stand together
// as a list.
func Lookup(name string, types []Type) (*Entry, bool) {
	if f, ok := Find(name, types); ok {
		return f, true
	}
	from := slices.Index(types, TypeMetric)
	if from < 0 {
		return nil, false
	}
	to := from
	for to < len(types) && types[to] == TypeMetric {
		to++
	}
	return Find(name, slices.Concat(types[:from], []Type{TypeMetrics}, types[to:]))
}

// Find returns the function of that name that takes arguments of just these types.
func Find(name string, types []Type) (*Entry, bool) {
	for i := range registry {
		f := &registry[i]
		if f.Name == name && slices.EqualFunc(f.Args, types, Type.Takes) {
			return f, true
		}
	}
	return nil, false
}

// Origin tells since when a function is in the language.
type Origin string

// The origins of functions.
const (
	Original Origin = "original"  // in the last release of the original
	Older    Origin = "older"     // in manuals before that
	Extended Origin = "extension" // not in the original
)

// Function describes one function of the language.
type Function struct {
	Name string
	// types of the arguments: metric, metric* (one or more), histogram, integer, float, number (both),
	// time, word, events
	Signature []string
	Returns   string // metric or histogram
	Combiner  string // "metric" for functions of any number of series, else "none"
	Group     string // aggregate, combiner, transformation or histogram
	Help      string // as in "avg(metric, time) -> metric"
	About     string // one line
	Example   string // an expression that runs on the data of docs/dql.md
	Since     Origin
	Note      string // what dql.compat changes, empty for nothing
}

// All returns all functions of the language in the order of their
// groups. The result is the caller's.
func All() []Function {
	list := make([]Function, len(registry))
	for i := range registry {
		f := &registry[i]
		list[i] = Function{
			Name: f.Name, Returns: f.Kind.Result().String(), Combiner: "none", Group: f.Group(),
			Help:  f.Signature() + " -> " + f.Kind.Result().String(),
			About: f.About, Example: f.Example, Since: f.Since, Note: f.Note,
		}
		for _, t := range f.Args {
			list[i].Signature = append(list[i].Signature, t.String())
		}
		if slices.Contains(f.Args, TypeMetrics) {
			list[i].Combiner = "metric"
		}
	}
	return list
}

// Group returns what kind of function it is, as the language's page groups them.
func (f *Entry) Group() string {
	switch f.Kind {
	case KindWindow, KindEvents:
		return "aggregate"
	case KindCombine, KindAcross, KindPick:
		return "combiner"
	case KindHistogram, KindStatistic:
		return "histogram"
	}
	return "transformation"
}

// NameOf returns the first name of what an operator computes.
func NameOf(kind Kind, op Op) string {
	for i := range registry {
		if f := &registry[i]; f.Kind == kind && f.Op == op {
			return f.Name
		}
	}
	switch op {
	case SubFrom:
		return "subtract from"
	case DivideInto:
		return "divide into"
	}
	panic(fmt.Sprintf("query: function %d of kind %d has no name", op, kind))
}

// Names returns the names of all functions in the order of the registry, some of them
// several times.
func Names() []string {
	names := make([]string, len(registry))
	for i := range registry {
		names[i] = registry[i].Name
	}
	return names
}

// Named returns the functions of that name.
func Named(name string) []*Entry {
	var list []*Entry
	for i := range registry {
		if f := &registry[i]; f.Name == name {
			list = append(list, f)
		}
	}
	return list
}
