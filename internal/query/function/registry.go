// Package function is the one table of the language's functions: names, types of their
// arguments, what they compute. Planning, execution, messages and the tables of docs/dql.md
// take from it.
package function

// Lists of types of the arguments of functions.
var (
	ofMetric       = []Type{TypeMetric}
	ofMetrics      = []Type{TypeMetrics}
	ofHistogram    = []Type{TypeHistogram}
	withTime       = []Type{TypeMetric, TypeTime}
	withFloat      = []Type{TypeMetric, TypeFloat}
	withNumber     = []Type{TypeMetric, TypeNumber}
	withNumberTime = []Type{TypeMetric, TypeNumber, TypeTime}
)

// Op is what an operator computes.
type Op uint8

const (
	Sum Op = iota
	Avg
	Min
	Max
	Count
	Diff
	Product
	Quotient
	Add        // v + c
	Sub        // v - c
	SubFrom    // c - v
	Mul        // v × c
	Divide     // v ÷ c
	DivideInto // c ÷ v
	ClampLow   // max(v, c)
	ClampHigh  // min(v, c)
	Abs
	SqrtScale
	Log10Scale
	Confidence
	Empty
	Percentile
	Median
	Variance
	Stddev
	First
	Last
	FirstAbove
	FirstBelow
	LastAbove
	LastBelow
	CountAbove
	CountBelow
	FirstAboveConf
	FirstBelowConf
	LastAboveConf
	LastBelowConf
	CountAboveConf
	CountBelowConf
	Increase
	Rate
	Derivate
	MovingAvg
	Ewma
	Fill
	Replace
	Quantile
	TopK
	BottomK
	Histogram
)

// registry holds every function once for each list of types it takes. It is never changed.
var registry = [...]Entry{
	{"avg", withTime, KindWindow, Avg, "mean; a short last span is continued with its last value", "avg(web.eu.requests BUCKET shop, 5s)", Original, ""},
	{"mean", withTime, KindWindow, Avg, "the same as `avg`", "mean(web.eu.requests BUCKET shop, 5s)", Older, ""},
	{"sum", withTime, KindWindow, Sum, "sum; a short last span is continued with its last value", "sum(web.eu.requests BUCKET shop, 4s)", Original, ""},
	{"min", withTime, KindWindow, Min, "least value", "min(web.eu.requests BUCKET shop, 5s)", Original, ""},
	{"max", withTime, KindWindow, Max, "greatest value", "max(web.eu.requests BUCKET shop, 5s)", Original, ""},
	{"count", withTime, KindWindow, Count, "set slots; of a computed series, values with a confidence above 0", "count(temp BUCKET shop, 5s)", Older, ""},
	{"count", []Type{TypeEvents, TypeTime}, KindEvents, Count, "events of each step; the last one ends with the range", "count(EVENTS FROM shop, 4s)", Extended, ""},
	{"empty", withTime, KindWindow, Empty, "unset slots: the span less `count`, so what a short last span lacks is empty", "empty(temp BUCKET shop, 4s)", Older, ""},
	{"first", withTime, KindWindow, First, "first value", "first(web.eu.requests BUCKET shop, 5s)", Extended, ""},
	{"last", withTime, KindWindow, Last, "last value", "last(web.eu.requests BUCKET shop, 5s)", Extended, ""},
	{"median", withTime, KindWindow, Median, "`percentile` with 0.5", "median(web.eu.requests BUCKET shop, 5s)", Original, ""},
	{"percentile", withNumberTime, KindWindow, Percentile, "of n sorted values the one at ⌊(n−1)·p⌋, p from 0 to 1; nothing is interpolated", "percentile(web.eu.requests BUCKET shop, 0.9, 5s)", Original,
		"a whole p is halved, and p outside 0 to 1 gives a series without values"},
	{"variance", withTime, KindWindow, Variance, "population variance; a short last span is continued with its last value", "variance(web.eu.requests BUCKET shop, 5s)", Original, ""},
	{"stddev", withTime, KindWindow, Stddev, "square root of `variance`", "stddev(web.eu.requests BUCKET shop, 5s)", Original, ""},
	{"first_above", withNumberTime, KindWindow, FirstAbove, "first value above the number, else 0", "first_above(web.eu.requests BUCKET shop, 11, 5s)", Original, ""},
	{"first_below", withNumberTime, KindWindow, FirstBelow, "first value below the number, else 0", "first_below(web.eu.requests BUCKET shop, 11, 5s)", Original, ""},
	{"last_above", withNumberTime, KindWindow, LastAbove, "last value above the number, else 0", "last_above(web.eu.requests BUCKET shop, 11, 5s)", Original, ""},
	{"last_below", withNumberTime, KindWindow, LastBelow, "last value below the number, else 0", "last_below(web.eu.requests BUCKET shop, 11, 5s)", Original, ""},
	{"count_above", withNumberTime, KindWindow, CountAbove, "number of values above the number", "count_above(web.eu.requests BUCKET shop, 11, 5s)", Original, ""},
	{"count_below", withNumberTime, KindWindow, CountBelow, "number of values below the number", "count_below(web.eu.requests BUCKET shop, 11, 5s)", Original, ""},
	{"first_above_conf", withNumberTime, KindWindow, FirstAboveConf, "first value with a confidence above the number, else 0", "first_above_conf(temp BUCKET shop, 0.5, 5s)", Original, ""},
	{"first_below_conf", withNumberTime, KindWindow, FirstBelowConf, "first value with a confidence below the number, else 0", "first_below_conf(temp BUCKET shop, 0.5, 5s)", Original, ""},
	{"last_above_conf", withNumberTime, KindWindow, LastAboveConf, "last value with a confidence above the number, else 0", "last_above_conf(temp BUCKET shop, 0.5, 5s)", Original, ""},
	{"last_below_conf", withNumberTime, KindWindow, LastBelowConf, "last value with a confidence below the number, else 0", "last_below_conf(temp BUCKET shop, 0.5, 5s)", Original, ""},
	{"count_above_conf", withNumberTime, KindWindow, CountAboveConf, "number of values with a confidence above the number", "count_above_conf(temp BUCKET shop, 0.5, 5s)", Original, ""},
	{"count_below_conf", withNumberTime, KindWindow, CountBelowConf, "number of values with a confidence below the number", "count_below_conf(temp BUCKET shop, 0.5, 5s)", Original, ""},
	{"increase", withTime, KindWindow, Increase, "what a counter grew by, the step from the span before included; a fall is a reset to 0", "increase(visits BUCKET shop, 5s)", Extended, ""},
	{"rate", withTime, KindWindow, Rate, "`increase` per second of the steps in it", "rate(visits BUCKET shop, 5s)", Extended, ""},

	{"sum", ofMetrics, KindCombine, Sum, "sum", "sum(web.*.requests BUCKET shop)", Original, "the confidence of each sum of three counts the first twice and leaves out the third"},
	{"avg", ofMetrics, KindCombine, Avg, "sum ÷ number of series", "avg(web.*.requests BUCKET shop)", Original, "confidence as of `sum`"},
	{"min", ofMetrics, KindCombine, Min, "least value", "min(web.*.requests BUCKET shop)", Original, ""},
	{"max", ofMetrics, KindCombine, Max, "greatest value", "max(web.*.requests BUCKET shop)", Original, ""},
	{"diff", ofMetrics, KindCombine, Diff, "the first less all others; also `-`", "diff(web.us.requests BUCKET shop, web.eu.requests BUCKET shop)", Original, ""},
	{"product", ofMetrics, KindCombine, Product, "product; also `*`", "product(web.*.requests BUCKET shop)", Original, ""},
	{"quotient", ofMetrics, KindCombine, Quotient, "the first divided by all others, by 1 where they are 0; also `/`", "quotient(web.eu.errors BUCKET shop, web.eu.requests BUCKET shop)", Original, ""},
	{"quantile", []Type{TypeMetrics, TypeNumber}, KindAcross, Quantile, "at each time, of n sorted values the one at ⌊(n−1)·q⌋, q from 0 to 1", "quantile(web.*.requests BUCKET shop, 0.5)", Extended, ""},
	{"topk", []Type{TypeMetrics, TypeInteger}, KindPick, TopK, "every series where it is among the k greatest of its time, null elsewhere; series that never are, are left out", "topk(web.*.requests BUCKET shop, 1)", Extended, ""},
	{"bottomk", []Type{TypeMetrics, TypeInteger}, KindPick, BottomK, "the same with the least", "bottomk(web.*.requests BUCKET shop, 1)", Extended, ""},

	{"add", withNumber, KindScalar, Add, "value + number", "add(web.eu.requests BUCKET shop, 1)", Original, ""},
	{"sub", withNumber, KindScalar, Sub, "value − number", "sub(web.eu.requests BUCKET shop, 1)", Original, ""},
	{"mul", withNumber, KindScalar, Mul, "value × number", "mul(web.eu.requests BUCKET shop, 60)", Original, ""},
	{"multiply", withNumber, KindScalar, Mul, "the same as `mul`", "multiply(web.eu.requests BUCKET shop, 60)", Older, ""},
	{"divide", withNumber, KindScalar, Divide, "value ÷ number; the constant 0 is an error", "divide(web.eu.requests BUCKET shop, 2)", Original, ""},
	{"min", withFloat, KindScalar, ClampHigh, "the value, at most the number, which needs a fraction: 12.0", "min(web.eu.requests BUCKET shop, 12.0)", Original, ""},
	{"max", withFloat, KindScalar, ClampLow, "the value, at least the number, which needs a fraction: 12.0", "max(web.eu.requests BUCKET shop, 12.0)", Original, ""},
	{"abs", ofMetric, KindMap, Abs, "absolute value", "abs(web.eu.requests BUCKET shop - 12)", Original, ""},
	{"sqrt_scale", ofMetric, KindMap, SqrtScale, "root of the absolute value, with the sign of the value", "sqrt_scale(web.eu.requests BUCKET shop)", Original, ""},
	{"log10_scale", ofMetric, KindMap, Log10Scale, "logarithm of the absolute value, with the sign of the value; 0 for 0", "log10_scale(web.eu.requests BUCKET shop)", Original, ""},
	{"derivate", ofMetric, KindStep, Derivate, "difference to the value before; the first repeats the second", "derivate(web.eu.requests BUCKET shop)", Original, ""},
	{"increase", ofMetric, KindStep, Increase, "difference of a counter to the value before; a fall is a reset to 0", "increase(visits BUCKET shop)", Extended, ""},
	{"rate", ofMetric, KindStep, Rate, "`increase` per second", "rate(visits BUCKET shop)", Extended, ""},
	{"mavg", withTime, KindMoving, MovingAvg, "mean of the values of the span that ends with each value", "mavg(web.eu.requests BUCKET shop, 3s)", Extended, ""},
	{"ewma", withNumber, KindMoving, Ewma, "exponentially weighted mean: y + α·(v − y), α above 0 and at most 1", "ewma(web.eu.requests BUCKET shop, 0.5)", Extended, ""},
	{"ewma", withTime, KindMoving, Ewma, "the same with α = 1 − e^(−resolution ÷ time)", "ewma(web.eu.requests BUCKET shop, 3s)", Extended, ""},
	{"fill", []Type{TypeMetric, TypeWord}, KindFill, Fill, "what stands where the confidence is 0: `previous` value, `null`, `zero`, or `linear` between the neighbours", "fill(temp BUCKET shop, linear)", Extended, ""},
	{"replace_below_confidence", []Type{TypeMetric, TypeNumber, TypeNumber}, KindReplace, Replace, "the second number where the confidence is at most the first", "replace_below_confidence(temp BUCKET shop, 0.5, -1)", Extended, ""},
	{"confidence", ofMetric, KindConfidence, Confidence, "the confidence as value", "confidence(temp BUCKET shop)", Original, ""},

	{"histogram", []Type{TypeMetric, TypeInteger, TypeInteger, TypeTime}, KindHistogram, Histogram, "HDR histogram per whole span: greatest value, significant digits (1 to 5)", "max(histogram(web.eu.requests BUCKET shop, 1000, 3, 5s))", Original,
		"as the result of a field it is `No results`, not an error"},
	{"min", ofHistogram, KindStatistic, Min, "least value", "min(histogram(web.eu.requests BUCKET shop, 1000, 3, 5s))", Original, ""},
	{"max", ofHistogram, KindStatistic, Max, "greatest value", "max(histogram(web.eu.requests BUCKET shop, 1000, 3, 5s))", Original, ""},
	{"mean", ofHistogram, KindStatistic, Avg, "mean", "mean(histogram(web.eu.requests BUCKET shop, 1000, 3, 5s))", Original, ""},
	{"median", ofHistogram, KindStatistic, Median, "`percentile` with 50.0", "median(histogram(web.eu.requests BUCKET shop, 1000, 3, 5s))", Original, ""},
	{"stddev", ofHistogram, KindStatistic, Stddev, "standard deviation", "stddev(histogram(web.eu.requests BUCKET shop, 1000, 3, 5s))", Original, ""},
	{"percentile", []Type{TypeHistogram, TypeNumber}, KindStatistic, Percentile, "percentile, on a scale from 0 to 100", "percentile(histogram(web.eu.requests BUCKET shop, 1000, 3, 5s), 90.0)", Original, ""},
}
