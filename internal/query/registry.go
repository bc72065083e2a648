package query

// Lists of types of the arguments of functions.
var (
	ofMetric       = []argType{typeMetric}
	ofMetrics      = []argType{typeMetrics}
	ofHistogram    = []argType{typeHistogram}
	withTime       = []argType{typeMetric, typeTime}
	withFloat      = []argType{typeMetric, typeFloat}
	withNumber     = []argType{typeMetric, typeNumber}
	withNumberTime = []argType{typeMetric, typeNumber, typeTime}
)

// opFunc is what an operator computes.
type opFunc uint8

const (
	fnSum opFunc = iota
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
	fnClampLow   // max(v, c)
	fnClampHigh  // min(v, c)
	fnAbs
	fnSqrtScale
	fnLog10Scale
	fnConfidence
	fnEmpty
	fnPercentile
	fnMedian
	fnVariance
	fnStddev
	fnFirst
	fnLast
	fnFirstAbove
	fnFirstBelow
	fnLastAbove
	fnLastBelow
	fnCountAbove
	fnCountBelow
	fnFirstAboveConf
	fnFirstBelowConf
	fnLastAboveConf
	fnLastBelowConf
	fnCountAboveConf
	fnCountBelowConf
	fnIncrease
	fnRate
	fnDerivate
	fnMovingAvg
	fnEwma
	fnFill
	fnReplace
	fnQuantile
	fnTopK
	fnBottomK
	fnHistogram
)

// functions is the language's registry: parser errors, planner, the tables of
// docs/dql.md and the list of functions come from it. It is never changed.
var functions = [...]function{
	{"avg", withTime, kindWindow, fnAvg, "mean; a short last span is continued with its last value", "avg(web.eu.requests BUCKET shop, 5s)", Original, ""},
	{"mean", withTime, kindWindow, fnAvg, "the same as `avg`", "mean(web.eu.requests BUCKET shop, 5s)", Older, ""},
	{"sum", withTime, kindWindow, fnSum, "sum; a short last span is continued with its last value", "sum(web.eu.requests BUCKET shop, 4s)", Original, ""},
	{"min", withTime, kindWindow, fnMin, "least value", "min(web.eu.requests BUCKET shop, 5s)", Original, ""},
	{"max", withTime, kindWindow, fnMax, "greatest value", "max(web.eu.requests BUCKET shop, 5s)", Original, ""},
	{"count", withTime, kindWindow, fnCount, "set slots; of a computed series, values with a confidence above 0", "count(temp BUCKET shop, 5s)", Older, ""},
	{"empty", withTime, kindWindow, fnEmpty, "unset slots: the span less `count`, so what a short last span lacks is empty", "empty(temp BUCKET shop, 4s)", Older, ""},
	{"first", withTime, kindWindow, fnFirst, "first value", "first(web.eu.requests BUCKET shop, 5s)", Extended, ""},
	{"last", withTime, kindWindow, fnLast, "last value", "last(web.eu.requests BUCKET shop, 5s)", Extended, ""},
	{"median", withTime, kindWindow, fnMedian, "`percentile` with 0.5", "median(web.eu.requests BUCKET shop, 5s)", Original, ""},
	{"percentile", withNumberTime, kindWindow, fnPercentile, "of n sorted values the one at ⌊(n−1)·p⌋, p from 0 to 1; nothing is interpolated", "percentile(web.eu.requests BUCKET shop, 0.9, 5s)", Original,
		"a whole p is halved, and p outside 0 to 1 gives a series without values"},
	{"variance", withTime, kindWindow, fnVariance, "population variance; a short last span is continued with its last value", "variance(web.eu.requests BUCKET shop, 5s)", Original, ""},
	{"stddev", withTime, kindWindow, fnStddev, "square root of `variance`", "stddev(web.eu.requests BUCKET shop, 5s)", Original, ""},
	{"first_above", withNumberTime, kindWindow, fnFirstAbove, "first value above the number, else 0", "first_above(web.eu.requests BUCKET shop, 11, 5s)", Original, ""},
	{"first_below", withNumberTime, kindWindow, fnFirstBelow, "first value below the number, else 0", "first_below(web.eu.requests BUCKET shop, 11, 5s)", Original, ""},
	{"last_above", withNumberTime, kindWindow, fnLastAbove, "last value above the number, else 0", "last_above(web.eu.requests BUCKET shop, 11, 5s)", Original, ""},
	{"last_below", withNumberTime, kindWindow, fnLastBelow, "last value below the number, else 0", "last_below(web.eu.requests BUCKET shop, 11, 5s)", Original, ""},
	{"count_above", withNumberTime, kindWindow, fnCountAbove, "number of values above the number", "count_above(web.eu.requests BUCKET shop, 11, 5s)", Original, ""},
	{"count_below", withNumberTime, kindWindow, fnCountBelow, "number of values below the number", "count_below(web.eu.requests BUCKET shop, 11, 5s)", Original, ""},
	{"first_above_conf", withNumberTime, kindWindow, fnFirstAboveConf, "first value with a confidence above the number, else 0", "first_above_conf(temp BUCKET shop, 0.5, 5s)", Original, ""},
	{"first_below_conf", withNumberTime, kindWindow, fnFirstBelowConf, "first value with a confidence below the number, else 0", "first_below_conf(temp BUCKET shop, 0.5, 5s)", Original, ""},
	{"last_above_conf", withNumberTime, kindWindow, fnLastAboveConf, "last value with a confidence above the number, else 0", "last_above_conf(temp BUCKET shop, 0.5, 5s)", Original, ""},
	{"last_below_conf", withNumberTime, kindWindow, fnLastBelowConf, "last value with a confidence below the number, else 0", "last_below_conf(temp BUCKET shop, 0.5, 5s)", Original, ""},
	{"count_above_conf", withNumberTime, kindWindow, fnCountAboveConf, "number of values with a confidence above the number", "count_above_conf(temp BUCKET shop, 0.5, 5s)", Original, ""},
	{"count_below_conf", withNumberTime, kindWindow, fnCountBelowConf, "number of values with a confidence below the number", "count_below_conf(temp BUCKET shop, 0.5, 5s)", Original, ""},
	{"increase", withTime, kindWindow, fnIncrease, "what a counter grew by, the step from the span before included; a fall is a reset to 0", "increase(visits BUCKET shop, 5s)", Extended, ""},
	{"rate", withTime, kindWindow, fnRate, "`increase` per second of the steps in it", "rate(visits BUCKET shop, 5s)", Extended, ""},

	{"sum", ofMetrics, kindCombine, fnSum, "sum", "sum(web.*.requests BUCKET shop)", Original, "the confidence of each sum of three counts the first twice and leaves out the third"},
	{"avg", ofMetrics, kindCombine, fnAvg, "sum ÷ number of series", "avg(web.*.requests BUCKET shop)", Original, "confidence as of `sum`"},
	{"min", ofMetrics, kindCombine, fnMin, "least value", "min(web.*.requests BUCKET shop)", Original, ""},
	{"max", ofMetrics, kindCombine, fnMax, "greatest value", "max(web.*.requests BUCKET shop)", Original, ""},
	{"diff", ofMetrics, kindCombine, fnDiff, "the first less all others; also `-`", "diff(web.us.requests BUCKET shop, web.eu.requests BUCKET shop)", Original, ""},
	{"product", ofMetrics, kindCombine, fnProduct, "product; also `*`", "product(web.*.requests BUCKET shop)", Original, ""},
	{"quotient", ofMetrics, kindCombine, fnQuotient, "the first divided by all others, by 1 where they are 0; also `/`", "quotient(web.eu.errors BUCKET shop, web.eu.requests BUCKET shop)", Original, ""},
	{"quantile", []argType{typeMetrics, typeNumber}, kindGather, fnQuantile, "at each time, of n sorted values the one at ⌊(n−1)·q⌋, q from 0 to 1", "quantile(web.*.requests BUCKET shop, 0.5)", Extended, ""},
	{"topk", []argType{typeMetrics, typeInteger}, kindPick, fnTopK, "every series where it is among the k greatest of its time, null elsewhere; series that never are, are left out", "topk(web.*.requests BUCKET shop, 1)", Extended, ""},
	{"bottomk", []argType{typeMetrics, typeInteger}, kindPick, fnBottomK, "the same with the least", "bottomk(web.*.requests BUCKET shop, 1)", Extended, ""},

	{"add", withNumber, kindScalar, fnAdd, "value + number", "add(web.eu.requests BUCKET shop, 1)", Original, ""},
	{"sub", withNumber, kindScalar, fnSub, "value − number", "sub(web.eu.requests BUCKET shop, 1)", Original, ""},
	{"mul", withNumber, kindScalar, fnMul, "value × number", "mul(web.eu.requests BUCKET shop, 60)", Original, ""},
	{"multiply", withNumber, kindScalar, fnMul, "the same as `mul`", "multiply(web.eu.requests BUCKET shop, 60)", Older, ""},
	{"divide", withNumber, kindScalar, fnDivide, "value ÷ number; the constant 0 is an error", "divide(web.eu.requests BUCKET shop, 2)", Original, ""},
	{"min", withFloat, kindScalar, fnClampHigh, "the value, at most the number, which needs a fraction: 12.0", "min(web.eu.requests BUCKET shop, 12.0)", Original, ""},
	{"max", withFloat, kindScalar, fnClampLow, "the value, at least the number, which needs a fraction: 12.0", "max(web.eu.requests BUCKET shop, 12.0)", Original, ""},
	{"abs", ofMetric, kindMap, fnAbs, "absolute value", "abs(web.eu.requests BUCKET shop - 12)", Original, ""},
	{"sqrt_scale", ofMetric, kindMap, fnSqrtScale, "root of the absolute value, with the sign of the value", "sqrt_scale(web.eu.requests BUCKET shop)", Original, ""},
	{"log10_scale", ofMetric, kindMap, fnLog10Scale, "logarithm of the absolute value, with the sign of the value; 0 for 0", "log10_scale(web.eu.requests BUCKET shop)", Original, ""},
	{"derivate", ofMetric, kindStep, fnDerivate, "difference to the value before; the first repeats the second", "derivate(web.eu.requests BUCKET shop)", Original, ""},
	{"increase", ofMetric, kindStep, fnIncrease, "difference of a counter to the value before; a fall is a reset to 0", "increase(visits BUCKET shop)", Extended, ""},
	{"rate", ofMetric, kindStep, fnRate, "`increase` per second", "rate(visits BUCKET shop)", Extended, ""},
	{"mavg", withTime, kindMoving, fnMovingAvg, "mean of the values of the span that ends with each value", "mavg(web.eu.requests BUCKET shop, 3s)", Extended, ""},
	{"ewma", withNumber, kindMoving, fnEwma, "exponentially weighted mean: y + α·(v − y), α above 0 and at most 1", "ewma(web.eu.requests BUCKET shop, 0.5)", Extended, ""},
	{"ewma", withTime, kindMoving, fnEwma, "the same with α = 1 − e^(−resolution ÷ time)", "ewma(web.eu.requests BUCKET shop, 3s)", Extended, ""},
	{"fill", []argType{typeMetric, typeWord}, kindFill, fnFill, "what stands where the confidence is 0: `previous` value, `null`, `zero`, or `linear` between the neighbours", "fill(temp BUCKET shop, linear)", Extended, ""},
	{"replace_below_confidence", []argType{typeMetric, typeNumber, typeNumber}, kindReplace, fnReplace, "the second number where the confidence is at most the first", "replace_below_confidence(temp BUCKET shop, 0.5, -1)", Extended, ""},
	{"confidence", ofMetric, kindConfidence, fnConfidence, "the confidence as value", "confidence(temp BUCKET shop)", Original, ""},

	{"histogram", []argType{typeMetric, typeInteger, typeInteger, typeTime}, kindHistogram, fnHistogram, "HDR histogram per whole span: greatest value, significant digits (1 to 5)", "max(histogram(web.eu.requests BUCKET shop, 1000, 3, 5s))", Original,
		"as the result of a field it is `No results`, not an error"},
	{"min", ofHistogram, kindStatistic, fnMin, "least value", "min(histogram(web.eu.requests BUCKET shop, 1000, 3, 5s))", Original, ""},
	{"max", ofHistogram, kindStatistic, fnMax, "greatest value", "max(histogram(web.eu.requests BUCKET shop, 1000, 3, 5s))", Original, ""},
	{"mean", ofHistogram, kindStatistic, fnAvg, "mean", "mean(histogram(web.eu.requests BUCKET shop, 1000, 3, 5s))", Original, ""},
	{"median", ofHistogram, kindStatistic, fnMedian, "`percentile` with 50.0", "median(histogram(web.eu.requests BUCKET shop, 1000, 3, 5s))", Original, ""},
	{"stddev", ofHistogram, kindStatistic, fnStddev, "standard deviation", "stddev(histogram(web.eu.requests BUCKET shop, 1000, 3, 5s))", Original, ""},
	{"percentile", []argType{typeHistogram, typeNumber}, kindStatistic, fnPercentile, "percentile, on a scale from 0 to 100", "percentile(histogram(web.eu.requests BUCKET shop, 1000, 3, 5s), 90.0)", Original, ""},
}
