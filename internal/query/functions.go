package query

import (
	"slices"
	"strings"
)

// argType is a type of the language's functions.
type argType uint8

const (
	typeMetric argType = iota
	typeHistogram
	typeInteger
	typeFloat
	typeTime
	typeWord
	typeMetrics // of parameters only: one or more series
	typeNumber  // of parameters only: an integer or a float
)

func (t argType) String() string {
	return [...]string{"metric", "histogram", "integer", "float", "time", "word", "metric*", "number"}[t]
}

// takes reports whether an argument of type a fits a parameter of type t.
func (t argType) takes(a argType) bool {
	return t == a || t == typeNumber && (a == typeInteger || a == typeFloat)
}

// function is one entry of the registry: a name with the types of its
// arguments.
type function struct {
	name    string
	args    []argType
	kind    opKind
	fn      opFunc
	about   string // one line
	example string // an expression over the data of docs/dql.md
	since   Origin
	note    string // where dql.compat changes it
}

// opKind is the operator that a function becomes.
type opKind uint8

const (
	kindWindow     opKind = iota // one value per span of time
	kindCombine                  // one series from many
	kindGather                   // one series from many, which all have to be there
	kindPick                     // many series from many
	kindScalar                   // arithmetic with a constant
	kindMap                      // value by value
	kindReplace                  // value by value, with its confidence
	kindStep                     // from a value and the one before it
	kindMoving                   // from the values of a span before
	kindFill                     // gaps
	kindConfidence               // the confidence as value
	kindHistogram                // a histogram per span of time
	kindStatistic                // a number out of a histogram
)

// result returns the type of what the function gives.
func (k opKind) result() argType {
	if k == kindHistogram {
		return typeHistogram
	}
	return typeMetric
}

// signature returns the name with the types of the arguments.
func (f *function) signature() string { return f.name + "(" + typeList(f.args) + ")" }

func typeList(types []argType) string {
	var list []string
	for _, t := range types {
		list = append(list, t.String())
	}
	return strings.Join(list, ", ")
}

// lookupFunction returns the function of that name and types. As in the
// original, the exact types are tried first, then series that stand together
// as a list.
func lookupFunction(name string, types []argType) (*function, bool) {
	if f, ok := findFunction(name, types); ok {
		return f, true
	}
	from := slices.Index(types, typeMetric)
	if from < 0 {
		return nil, false
	}
	to := from
	for to < len(types) && types[to] == typeMetric {
		to++
	}
	return findFunction(name, slices.Concat(types[:from], []argType{typeMetrics}, types[to:]))
}

func findFunction(name string, types []argType) (*function, bool) {
	for i := range functions {
		f := &functions[i]
		if f.name == name && slices.EqualFunc(f.args, types, argType.takes) {
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
	Name      string
	Signature []string // types of the arguments: metric, metric* (one or more), histogram, integer, float, number (both), time, word
	Returns   string   // metric or histogram
	Combiner  string   // "metric" for functions of any number of series, else "none"
	Group     string   // aggregate, combiner, transformation or histogram
	Help      string   // as in "avg(metric, time) -> metric"
	About     string   // one line
	Example   string   // an expression that runs on the data of docs/dql.md
	Since     Origin
	Note      string // what dql.compat changes, empty for nothing
}

// Functions returns all functions of the language in the order of their
// groups. The result is the caller's.
func Functions() []Function {
	list := make([]Function, len(functions))
	for i := range functions {
		f := &functions[i]
		list[i] = Function{
			Name: f.name, Returns: f.kind.result().String(), Combiner: "none", Group: f.group(),
			Help:  f.signature() + " -> " + f.kind.result().String(),
			About: f.about, Example: f.example, Since: f.since, Note: f.note,
		}
		for _, t := range f.args {
			list[i].Signature = append(list[i].Signature, t.String())
		}
		if slices.Contains(f.args, typeMetrics) {
			list[i].Combiner = "metric"
		}
	}
	return list
}

func (f *function) group() string {
	switch f.kind {
	case kindWindow:
		return "aggregate"
	case kindCombine, kindGather, kindPick:
		return "combiner"
	case kindHistogram, kindStatistic:
		return "histogram"
	}
	return "transformation"
}
