package query

import "strings"

// argType is a type of the language's functions.
type argType uint8

const (
	typeMetric argType = iota
	typeInteger
	typeFloat
	typeTime
)

func (t argType) String() string {
	return [...]string{"metric", "integer", "float", "time"}[t]
}

// opKind is the operator that a function becomes.
type opKind uint8

const (
	kindUnsupported opKind = iota // known to the language, not to this engine
	kindWindow                    // one value per span of time
	kindCombine                   // one series from many
	kindScalar                    // arithmetic with a constant
	kindConfidence                // the confidence as value
)

// opFunc is what an operator computes.
type opFunc uint8

const (
	fnNone opFunc = iota
	fnSum
	fnAvg
	fnMin
	fnMax
	fnCount
	fnDiff
	fnProduct
	fnQuotient
	fnAdd        // v + c
	fnSub        // v - c
	fnSubFrom    // c - v
	fnMul        // v × c
	fnDivide     // v ÷ c
	fnDivideInto // c ÷ v
	fnConfidence // of kindConfidence
)

// function is one entry of the registry: a name with the types of its
// arguments. A combinator takes any number of series.
type function struct {
	name string
	args string
	kind opKind
	fn   opFunc
}

// lookup returns the function of that name and types. As in the original,
// the exact types are tried first, then trailing series as a list.
func lookupFunction(name string, types []argType) (function, bool) {
	var args []string
	for _, t := range types {
		args = append(args, t.String())
	}
	if f, ok := findFunction(name, strings.Join(args, ", ")); ok {
		return f, true
	}
	n := len(args)
	for n > 0 && types[n-1] == typeMetric {
		n--
	}
	if n == len(args) {
		return function{}, false
	}
	return findFunction(name, strings.Join(append(args[:n:n], "metric*"), ", "))
}

func findFunction(name, args string) (function, bool) {
	for _, f := range functions {
		if f.name == name && f.args == args {
			return f, true
		}
	}
	return function{}, false
}

// functions is the language's registry. It is never changed.
var functions = [...]function{
	{"avg", "metric, time", kindWindow, fnAvg},
	{"sum", "metric, time", kindWindow, fnSum},
	{"min", "metric, time", kindWindow, fnMin},
	{"max", "metric, time", kindWindow, fnMax},
	{"count", "metric, time", kindWindow, fnCount},
	{"sum", "metric*", kindCombine, fnSum},
	{"avg", "metric*", kindCombine, fnAvg},
	{"min", "metric*", kindCombine, fnMin},
	{"max", "metric*", kindCombine, fnMax},
	{"diff", "metric*", kindCombine, fnDiff},
	{"product", "metric*", kindCombine, fnProduct},
	{"quotient", "metric*", kindCombine, fnQuotient},
	{"add", "metric, integer", kindScalar, fnAdd},
	{"add", "metric, float", kindScalar, fnAdd},
	{"sub", "metric, integer", kindScalar, fnSub},
	{"sub", "metric, float", kindScalar, fnSub},
	{"mul", "metric, integer", kindScalar, fnMul},
	{"mul", "metric, float", kindScalar, fnMul},
	{"divide", "metric, integer", kindScalar, fnDivide},
	{"divide", "metric, float", kindScalar, fnDivide},
	{"confidence", "metric", kindConfidence, fnConfidence},
	{"median", "metric, time", kindUnsupported, fnNone},
	{"percentile", "metric, float, time", kindUnsupported, fnNone},
	{"percentile", "metric, integer, time", kindUnsupported, fnNone},
	{"variance", "metric, time", kindUnsupported, fnNone},
	{"stddev", "metric, time", kindUnsupported, fnNone},
	{"derivate", "metric", kindUnsupported, fnNone},
	{"abs", "metric", kindUnsupported, fnNone},
	{"sqrt_scale", "metric", kindUnsupported, fnNone},
	{"log10_scale", "metric", kindUnsupported, fnNone},
	{"min", "metric, float", kindUnsupported, fnNone},
	{"max", "metric, float", kindUnsupported, fnNone},
	{"histogram", "metric, integer, integer, time", kindUnsupported, fnNone},
	{"first_above", "metric, integer, time", kindUnsupported, fnNone},
	{"first_above", "metric, float, time", kindUnsupported, fnNone},
	{"first_below", "metric, integer, time", kindUnsupported, fnNone},
	{"first_below", "metric, float, time", kindUnsupported, fnNone},
	{"last_above", "metric, integer, time", kindUnsupported, fnNone},
	{"last_above", "metric, float, time", kindUnsupported, fnNone},
	{"last_below", "metric, integer, time", kindUnsupported, fnNone},
	{"last_below", "metric, float, time", kindUnsupported, fnNone},
	{"count_above", "metric, integer, time", kindUnsupported, fnNone},
	{"count_above", "metric, float, time", kindUnsupported, fnNone},
	{"count_below", "metric, integer, time", kindUnsupported, fnNone},
	{"count_below", "metric, float, time", kindUnsupported, fnNone},
	{"first_above_conf", "metric, float, time", kindUnsupported, fnNone},
	{"first_below_conf", "metric, float, time", kindUnsupported, fnNone},
	{"last_above_conf", "metric, float, time", kindUnsupported, fnNone},
	{"last_below_conf", "metric, float, time", kindUnsupported, fnNone},
	{"count_above_conf", "metric, float, time", kindUnsupported, fnNone},
	{"count_below_conf", "metric, float, time", kindUnsupported, fnNone},
}
