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

// What compat changes of many functions.
const (
	repeated  = "a gap repeats the value before it"
	continued = repeated + ", and a short last span is continued with its last value"
	notFound  = repeated + "; 0 where there is none"
	stepwise  = repeated + ", and every slot of the range is a step"
	slotwise  = "at every slot, a gap repeats the value before it; the first repeats the second"
	lasting   = "a series counts at every slot of the range: a gap repeats the value before it, for " +
		"ever"
)

// registry holds every function once for each list of types it takes. It is never changed.
var registry = [...]Entry{
	{"avg", withTime, KindWindow, Avg, "mean of the values", "avg(web.eu.requests BUCKET shop, 5s)",
		Original, continued},
	{"mean", withTime, KindWindow, Avg, "the same as `avg`", "mean(web.eu.requests BUCKET shop, 5s)",
		Older, continued},
	{"sum", withTime, KindWindow, Sum, "sum of the values", "sum(web.eu.requests BUCKET shop, 4s)",
		Original, continued},
	{"min", withTime, KindWindow, Min, "least value", "min(web.eu.requests BUCKET shop, 5s)", Original,
		repeated},
	{"max", withTime, KindWindow, Max, "greatest value", "max(web.eu.requests BUCKET shop, 5s)",
		Original, repeated},
	{"count", withTime, KindWindow, Count, "number of values, 0 for none",
		"count(temp BUCKET shop, 5s)", Older,
		"set slots, NaN included; of a computed series, values with a confidence above 0"},
	{"count", []Type{TypeEvents, TypeTime}, KindEvents, Count,
		"events of each step; the last one ends with the range", "count(EVENTS FROM shop, 4s)", Extended,
		""},
	{"empty", withTime, KindWindow, Empty,
		"slots of the span without a value; a short last span has fewer slots",
		"empty(temp BUCKET shop, 4s)", Older,
		"the span less `count`: the missing end of a short last span is empty, too"},
	{"first", withTime, KindWindow, First, "first value", "first(web.eu.requests BUCKET shop, 5s)",
		Extended, repeated},
	{"last", withTime, KindWindow, Last, "last value", "last(web.eu.requests BUCKET shop, 5s)",
		Extended, repeated},
	{"median", withTime, KindWindow, Median, "`percentile` with 0.5",
		"median(web.eu.requests BUCKET shop, 5s)", Original, repeated},
	{"percentile", withNumberTime, KindWindow, Percentile,
		"of n sorted values the one at ⌊(n−1)·p⌋, p from 0 to 1; nothing is interpolated",
		"percentile(web.eu.requests BUCKET shop, 0.9, 5s)", Original,
		repeated + "; a whole p is halved, and p outside 0 to 1 gives a series without values"},
	{"variance", withTime, KindWindow, Variance, "population variance of the values",
		"variance(web.eu.requests BUCKET shop, 5s)", Original, continued},
	{"stddev", withTime, KindWindow, Stddev, "square root of `variance`",
		"stddev(web.eu.requests BUCKET shop, 5s)", Original, continued},
	{"first_above", withNumberTime, KindWindow, FirstAbove, "first value above the number",
		"first_above(web.eu.requests BUCKET shop, 11, 5s)", Original, notFound},
	{"first_below", withNumberTime, KindWindow, FirstBelow, "first value below the number",
		"first_below(web.eu.requests BUCKET shop, 11, 5s)", Original, notFound},
	{"last_above", withNumberTime, KindWindow, LastAbove, "last value above the number",
		"last_above(web.eu.requests BUCKET shop, 11, 5s)", Original, notFound},
	{"last_below", withNumberTime, KindWindow, LastBelow, "last value below the number",
		"last_below(web.eu.requests BUCKET shop, 11, 5s)", Original, notFound},
	{"count_above", withNumberTime, KindWindow, CountAbove,
		"number of values above the number, 0 for none",
		"count_above(web.eu.requests BUCKET shop, 11, 5s)", Original, repeated},
	{"count_below", withNumberTime, KindWindow, CountBelow,
		"number of values below the number, 0 for none",
		"count_below(web.eu.requests BUCKET shop, 11, 5s)", Original, repeated},
	{"first_above_conf", withNumberTime, KindWindow, FirstAboveConf,
		"first value with a confidence above the number",
		"first_above_conf(avg(temp BUCKET shop, 4s), 0.3, 12s)", Original, notFound},
	{"first_below_conf", withNumberTime, KindWindow, FirstBelowConf,
		"first value with a confidence below the number",
		"first_below_conf(avg(temp BUCKET shop, 4s), 0.3, 12s)", Original, notFound},
	{"last_above_conf", withNumberTime, KindWindow, LastAboveConf,
		"last value with a confidence above the number",
		"last_above_conf(avg(temp BUCKET shop, 4s), 0.3, 12s)", Original, notFound},
	{"last_below_conf", withNumberTime, KindWindow, LastBelowConf,
		"last value with a confidence below the number",
		"last_below_conf(avg(temp BUCKET shop, 4s), 0.3, 12s)", Original, notFound},
	{"count_above_conf", withNumberTime, KindWindow, CountAboveConf,
		"number of values with a confidence above the number, 0 for none",
		"count_above_conf(avg(temp BUCKET shop, 4s), 0.3, 12s)", Original, repeated},
	{"count_below_conf", withNumberTime, KindWindow, CountBelowConf,
		"number of values with a confidence below the number, 0 for none",
		"count_below_conf(avg(temp BUCKET shop, 4s), 0.3, 12s)", Original, repeated},
	{"increase", withTime, KindWindow, Increase,
		"growth of a counter from point to point; after a fall the new value is the growth",
		"increase(visits BUCKET shop, 5s)", Extended, stepwise},
	{"rate", withTime, KindWindow, Rate, "`increase` ÷ the seconds between these points",
		"rate(visits BUCKET shop, 5s)", Extended, stepwise},

	{"sum", ofMetrics, KindCombine, Sum, "sum of the series that count",
		"sum(web.*.requests BUCKET shop)", Original, lasting +
			"; the confidence of each sum of three counts the first twice and leaves out the third"},
	{"avg", ofMetrics, KindCombine, Avg, "their sum ÷ their number", "avg(web.*.requests BUCKET shop)",
		Original, lasting + "; confidence as of `sum`"},
	{"min", ofMetrics, KindCombine, Min, "least value of those that count",
		"min(web.*.requests BUCKET shop)", Original, lasting},
	{"max", ofMetrics, KindCombine, Max, "greatest value of those that count",
		"max(web.*.requests BUCKET shop)", Original, lasting},
	{"diff", ofMetrics, KindCombine, Diff,
		"the first less all others, a gap unless all count; also `-`",
		"diff(web.us.requests BUCKET shop, web.eu.requests BUCKET shop)", Original, lasting},
	{"product", ofMetrics, KindCombine, Product, "product, a gap unless all count; also `*`",
		"product(web.*.requests BUCKET shop)", Original, lasting},
	{"quotient", ofMetrics, KindCombine, Quotient,
		"the first divided by all others, a gap unless all count and where one of the others is 0; " +
			"also `/`", "quotient(web.eu.errors BUCKET shop, web.eu.requests BUCKET shop)", Original,
		lasting + "; division by 0 is division by 1"},
	{"quantile", []Type{TypeMetrics, TypeNumber}, KindAcross, Quantile,
		"of the n values that count, sorted, the one at ⌊(n−1)·q⌋, q from 0 to 1",
		"quantile(web.*.requests BUCKET shop, 0.5)", Extended, lasting},
	{"topk", []Type{TypeMetrics, TypeInteger}, KindPick, TopK,
		"every series at its points that are among the k greatest of their time, a gap elsewhere; a " +
			"series without such a point is left out", "topk(web.*.requests BUCKET shop, 1)", Extended,
		lasting},
	{"bottomk", []Type{TypeMetrics, TypeInteger}, KindPick, BottomK, "the same with the least",
		"bottomk(web.*.requests BUCKET shop, 1)", Extended, lasting},

	{"add", withNumber, KindScalar, Add, "value + number", "add(web.eu.requests BUCKET shop, 1)",
		Original, ""},
	{"sub", withNumber, KindScalar, Sub, "value − number", "sub(web.eu.requests BUCKET shop, 1)",
		Original, ""},
	{"mul", withNumber, KindScalar, Mul, "value × number", "mul(web.eu.requests BUCKET shop, 60)",
		Original, ""},
	{"multiply", withNumber, KindScalar, Mul, "the same as `mul`",
		"multiply(web.eu.requests BUCKET shop, 60)", Older, ""},
	{"divide", withNumber, KindScalar, Divide,
		"value ÷ number; the constant 0 is an error; number ÷ 0 is a gap",
		"divide(web.eu.requests BUCKET shop, 2)", Original, "a number ÷ 0 is the number"},
	{"min", withFloat, KindScalar, ClampHigh,
		"the value, at most the number, which needs a fraction: 12.0",
		"min(web.eu.requests BUCKET shop, 12.0)", Original, ""},
	{"max", withFloat, KindScalar, ClampLow,
		"the value, at least the number, which needs a fraction: 12.0",
		"max(web.eu.requests BUCKET shop, 12.0)", Original, ""},
	{"abs", ofMetric, KindMap, Abs, "absolute value", "abs(web.eu.requests BUCKET shop - 12)",
		Original, ""},
	{"sqrt_scale", ofMetric, KindMap, SqrtScale,
		"root of the absolute value, with the sign of the value",
		"sqrt_scale(web.eu.requests BUCKET shop)", Original, ""},
	{"log10_scale", ofMetric, KindMap, Log10Scale,
		"logarithm of the absolute value, with the sign of the value; 0 for 0",
		"log10_scale(web.eu.requests BUCKET shop)", Original, ""},
	{"derivate", ofMetric, KindStep, Derivate, "difference to the point before, per second",
		"derivate(web.eu.requests BUCKET shop)", Original,
		"difference to the value of the slot before, not per second; the first repeats the second"},
	{"increase", ofMetric, KindStep, Increase,
		"growth of a counter since the point before; after a fall the new value is the growth",
		"increase(visits BUCKET shop)", Extended, slotwise},
	{"rate", ofMetric, KindStep, Rate, "`increase` per second since the point before",
		"rate(visits BUCKET shop)", Extended, slotwise},
	{"mavg", withTime, KindMoving, MovingAvg,
		"at each value, mean of the values in the span that ends with it",
		"mavg(web.eu.requests BUCKET shop, 3s)", Extended,
		"at every slot, gaps repeat the value before them; nothing before the range"},
	{"ewma", withNumber, KindMoving, Ewma,
		"at each value, y + α·(v − y), an exponentially weighted mean; α above 0 and at most 1",
		"ewma(web.eu.requests BUCKET shop, 0.5)", Extended,
		"at every slot, gaps repeat the value before them"},
	{"ewma", withTime, KindMoving, Ewma,
		"the same with α = 1 − e^(−t ÷ time), t the time since the value before",
		"ewma(web.eu.requests BUCKET shop, 3s)", Extended,
		"α = 1 − e^(−resolution ÷ time) at every slot, gaps repeat the value before them"},
	{"fill", []Type{TypeMetric, TypeWord}, KindFill, Fill,
		"what to show in gaps: `previous` value, `zero`, `linear` between the neighbours, or `null`",
		"fill(temp BUCKET shop, linear)", Extended,
		"gaps before the first value have the first one, with `linear` and `previous`; those after the " +
			"last have the last one"},
	{"replace_below_confidence", []Type{TypeMetric, TypeNumber, TypeNumber}, KindReplace, Replace,
		"the second number where the confidence is at most the first",
		"replace_below_confidence(temp BUCKET shop, 0.5, -1)", Extended, ""},
	{"confidence", ofMetric, KindConfidence, Confidence, "the confidence as value",
		"confidence(temp BUCKET shop)", Original, ""},

	{"histogram", []Type{TypeMetric, TypeInteger, TypeInteger, TypeTime}, KindHistogram, Histogram,
		"HDR histogram of the values of each span: greatest value, significant digits (1 to 5)",
		"max(histogram(web.eu.requests BUCKET shop, 1000, 3, 5s))", Original,
		repeated + "; a short last span is left out; as the result of a field it is `No results`, not " +
			"an error"},
	{"min", ofHistogram, KindStatistic, Min, "least value",
		"min(histogram(web.eu.requests BUCKET shop, 1000, 3, 5s))", Original, ""},
	{"max", ofHistogram, KindStatistic, Max, "greatest value",
		"max(histogram(web.eu.requests BUCKET shop, 1000, 3, 5s))", Original, ""},
	{"mean", ofHistogram, KindStatistic, Avg, "mean",
		"mean(histogram(web.eu.requests BUCKET shop, 1000, 3, 5s))", Original, ""},
	{"median", ofHistogram, KindStatistic, Median, "`percentile` with 50.0",
		"median(histogram(web.eu.requests BUCKET shop, 1000, 3, 5s))", Original, ""},
	{"stddev", ofHistogram, KindStatistic, Stddev, "standard deviation",
		"stddev(histogram(web.eu.requests BUCKET shop, 1000, 3, 5s))", Original, ""},
	{"percentile", []Type{TypeHistogram, TypeNumber}, KindStatistic, Percentile,
		"percentile, on a scale from 0 to 100",
		"percentile(histogram(web.eu.requests BUCKET shop, 1000, 3, 5s), 90.0)", Original, ""},
}
