package query_test

import (
	"fmt"

	"pgregory.net/rapid"
)

func (g *generator) span() string {
	return fmt.Sprintf("%d%s", rapid.IntRange(1, 90).Draw(g.t, "n"), g.oneOf("s", "s", "s", "ms", "m"))
}

// sharp applies a function that leaps, so that its input must have no rounding
// errors. Integers stay whole.
func (g *generator) sharp(of string) string {
	number := g.oneOf("0", "-3", "100", "2.5")
	switch g.oneOf("median", "percentile", "find", "find conf", "growth", "steps", "quantile", "topk", "replace", "histogram", "log", "top of it") {
	case "median":
		return fmt.Sprintf("median(%s, %s)", of, g.span())
	case "percentile":
		return fmt.Sprintf("percentile(%s, %s, %s)", of, g.oneOf("0.0", "0.25", "0.9", "1", "0"), g.span())
	case "find":
		return fmt.Sprintf("%s_%s(%s, %s, %s)", g.oneOf("first", "last", "count"), g.oneOf("above", "below"), of, number, g.span())
	case "find conf":
		return fmt.Sprintf("%s_%s_conf(%s, 0.3717, %s)", g.oneOf("first", "last", "count"), g.oneOf("above", "below"), of, g.span())
	case "growth":
		return fmt.Sprintf("increase(%s, %s)", of, g.span())
	case "steps":
		return fmt.Sprintf("increase(%s)", of)
	case "quantile":
		return fmt.Sprintf("quantile(%s, %s, %s)", of, g.selector(), g.oneOf("0.5", "0", "0.99", "1"))
	case "topk":
		return fmt.Sprintf("%s(%s, %s, %s)", g.oneOf("topk", "bottomk"), of, g.selector(), g.oneOf("1", "2", "5"))
	case "replace":
		return fmt.Sprintf("replace_below_confidence(%s, 0.3717, %s)", of, g.oneOf("-1", "7"))
	case "histogram":
		h := fmt.Sprintf("histogram(%s, %s, %s, %s)", of, g.oneOf("2", "100", "3000", "1000000"), g.oneOf("1", "2", "3"), g.span())
		return g.oneOf("min("+h+")", "max("+h+")", "median("+h+")", "percentile("+h+", 90.0)", "percentile("+h+", 0)")
	case "log":
		if !g.exact {
			return fmt.Sprintf("%s(%s)", g.oneOf("log10_scale", "sqrt_scale", "rate"), of)
		}
	}
	return of
}

// smooth applies a function in which rounding errors stay small, and integers
// whole.
func (g *generator) smooth(of string) string {
	switch g.oneOf("ends", "empty", "steps", "abs", "clamp", "fill") {
	case "ends":
		return fmt.Sprintf("%s(%s, %s)", g.oneOf("first", "last"), of, g.span())
	case "empty":
		return fmt.Sprintf("empty(%s, %s)", of, g.span())
	case "steps":
		return fmt.Sprintf("derivate(%s)", of)
	case "abs":
		return fmt.Sprintf("abs(%s)", of)
	case "clamp":
		return fmt.Sprintf("%s(%s, %s)", g.oneOf("min", "max"), of, g.oneOf("-7.0", "100.0"))
	}
	return fmt.Sprintf("fill(%s, %s)", of, g.oneOf("previous", "null", "zero"))
}

// rounding applies a function after which values are no longer exact.
func (g *generator) rounding(of string) string {
	switch g.oneOf("variance", "moving", "weighted", "line", "histogram", "rate") {
	case "variance":
		return fmt.Sprintf("%s(%s, %s)", g.oneOf("variance", "stddev", "mean"), of, g.span())
	case "moving":
		return fmt.Sprintf("mavg(%s, %s)", of, g.span())
	case "weighted":
		return fmt.Sprintf("ewma(%s, %s)", of, g.oneOf("0.5", "1", "0.01", g.span()))
	case "line":
		return fmt.Sprintf("fill(%s, linear)", of)
	case "rate":
		return fmt.Sprintf("rate(%s, %s)", g.selector(), g.span())
	}
	return fmt.Sprintf("%s(histogram(%s, 2000, %s, %s))", g.oneOf("mean", "stddev"), g.selector(), g.oneOf("1", "2", "3"), g.span())
}
