package query_test

import (
	"fmt"
	"math"
	"math/bits"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"dalmatiner/internal/codec/point"
)

// generator draws series and queries over them.
type generator struct {
	t     *rapid.T
	exact bool
}

func (g *generator) oneOf(values ...string) string {
	return rapid.SampledFrom(values).Draw(g.t, "choice")
}

// below draws a number below n, each as often as the others: rapid prefers small ones.
func (g *generator) below(n int) int {
	high, _ := bits.Mul64(rapid.Uint64().Draw(g.t, "evenly")*0x9e3779b97f4a7c15, uint64(n))
	return int(high)
}

// now draws the time at which a query is asked: mostly one at which there are points.
func (g *generator) now() time.Time {
	ms := rapid.Int64Range(1, 3_000_000).Draw(g.t, "now")
	return time.UnixMilli(rapid.SampledFrom([]int64{900_000, 1_500_500, 3_000_000, ms}).Draw(g.t,
		"asked"))
}

// source makes two buckets with series of all kinds.
func (g *generator) source(t *testing.T) *memory {
	m := newBucket(t)
	m.addBucket("c", 7000, rapid.SampledFrom([]int64{0, 0, 50}).Draw(g.t, "ttl"))
	for _, bucket := range []string{"b", "c"} {
		for i := range rapid.SampledFrom([]int{0, 1, 2, 3, 4}).Draw(g.t, "series") {
			words := g.series()
			m.load(bucket, key(t, "m", fmt.Sprint(i)), rapid.Int64Range(0, 900).Draw(g.t, "from"), words)
		}
	}
	return m
}

// series draws runs and gaps, a sender that is slower than its bucket, or a counter.
func (g *generator) series() []uint64 {
	switch g.oneOf("runs", "runs", "sparse", "sparse", "counter") {
	case "sparse":
		return g.sparse(g.word)
	case "counter":
		return g.sparse(g.counter())
	}
	return g.runs()
}

func (g *generator) runs() (words []uint64) {
	for range rapid.IntRange(0, 6).Draw(g.t, "runs") {
		words = append(words, make([]uint64, rapid.IntRange(0, 400).Draw(g.t, "gap"))...)
		most := rapid.SampledFrom([]int{9, 60}).Draw(g.t, "dense")
		for range rapid.IntRange(0, most).Draw(g.t, "set") {
			words = append(words, g.word())
		}
	}
	return words
}

// sparse draws a point every so many slots. Some come late, some are missing, there may be a long
// pause, and the sender may have died long before the range ends.
func (g *generator) sparse(word func() uint64) []uint64 {
	words := make([]uint64, rapid.SampledFrom([]int{0, 400, 900, 1500, 3000}).Draw(g.t, "slots"))
	every := rapid.SampledFrom([]int{2, 7, 30, 60, 90}).Draw(g.t, "every")
	every = max(every, len(words)/150)
	jitter := rapid.SampledFrom([]int{0, 0, 1, every / 3}).Draw(g.t, "jitter")
	misses := rapid.SampledFrom([]int{0, 0, 10, 40}).Draw(g.t, "misses")
	pauses := rapid.SampledFrom([]int{0, 0, 0, 2}).Draw(g.t, "pauses")
	at := rapid.IntRange(0, every).Draw(g.t, "first")
	for ; at < len(words); at += every {
		switch n := g.below(100); {
		case n < pauses:
			at += g.below(700)
		case n < misses:
		default:
			late := g.below(jitter + 1)
			words[min(at+late, len(words)-1)] = word()
		}
	}
	return words
}

// counter draws growing values, which begin anew at times.
func (g *generator) counter() func() uint64 {
	n := rapid.Int64Range(0, 1000).Draw(g.t, "value")
	return func() uint64 {
		n += rapid.Int64Range(0, 50).Draw(g.t, "growth")
		if g.below(20) == 0 {
			n = rapid.Int64Range(0, 9).Draw(g.t, "reset to")
		}
		return point.FromInt(n)
	}
}

// word draws a value, which at times is NaN: a point that is not a value.
func (g *generator) word() uint64 {
	n := rapid.Int64Range(-1000, 1000).Draw(g.t, "value")
	switch {
	case n%31 == 7:
		return point.FromFloat(math.NaN())
	case g.exact || n%3 == 0:
		return point.FromInt(n)
	}
	return point.FromFloat(float64(n) / 8)
}

func (g *generator) query() string {
	var fields []string
	for range rapid.IntRange(1, 3).Draw(g.t, "fields") {
		fields = append(fields, g.expr(3))
	}
	at := func() string {
		return g.oneOf("NOW", "1", "800000", "1000500", "1200s AGO", `"1970-01-01 00:10:00"`,
			`"1970-01-01 02:10:00 +0200"`)
	}
	span := fmt.Sprintf("%d%s", rapid.IntRange(-1, 900).Draw(g.t, "span"),
		g.oneOf("ms", "s", "s", "s"))
	span = g.oneOf(span, span, "5m", "900s", "1900s")
	times := g.oneOf("LAST "+span, "AFTER "+at()+" FOR "+span, "BEFORE "+at()+" FOR "+span,
		"BETWEEN "+at()+" AND "+at())
	text := "SELECT " + strings.Join(fields, ", ") + " " + times
	if g.exact && rapid.IntRange(0, 3).Draw(g.t, "limit") == 0 {
		text += g.oneOf(" TOP ", " BOTTOM ") + g.oneOf("1", "2", "3") + " BY " +
			g.oneOf("max()", "sum()", "median()", "percentile(0.2)", "last()", "count()")
	}
	return text
}

func (g *generator) selector() string {
	s := g.oneOf("m.0", "m.1", "m.2", "m.none", "m.*", "*.1") + " BUCKET " +
		g.oneOf("b", "b", "b", "c")
	if rapid.IntRange(0, 4).Draw(g.t, "shift") == 0 {
		s += fmt.Sprintf(" SHIFT BY %d%s", rapid.IntRange(-20, 400).Draw(g.t, "by"),
			g.oneOf("", "s", "ms"))
	}
	return s
}

func (g *generator) expr(depth int) string {
	if depth == 0 {
		return g.selector()
	}
	kinds := []string{"select", "window", "window", "list", "many", "binary", "scalar", "sharp",
		"sharp", "sharp", "smooth",
		"joined spans"}
	if !g.exact {
		kinds = append(kinds, "avg", "quotient", "divide", "into", "confidence", "rounding", "rounding")
	}
	sub := func() string { return g.expr(rapid.IntRange(0, depth-1).Draw(g.t, "depth")) }
	number := g.oneOf("2", "-3", "0.5", "1")
	switch g.oneOf(kinds...) {
	case "window":
		if rapid.Bool().Draw(g.t, "like c") {
			// The resolution of the other bucket, so that both combine.
			return fmt.Sprintf("%s(m.%s BUCKET b, 7s)", g.oneOf("min", "max", "sum", "count"),
				g.oneOf("0", "1", "*"))
		}
		return fmt.Sprintf("%s(%s, %d%s)", g.oneOf("min", "max", "sum", "count"), sub(),
			rapid.IntRange(1, 40).Draw(g.t, "n"), g.oneOf("s", "s", "s", "m"))
	case "sharp":
		// Where a rounding error can be a leap there must be none before.
		if g.exact {
			return g.sharp(sub())
		}
		return g.sharp(g.selector())
	case "smooth":
		return g.smooth(sub())
	case "rounding":
		return g.rounding(sub())
	case "avg":
		return fmt.Sprintf("avg(%s, %ds)", sub(), rapid.IntRange(1, 100).Draw(g.t, "n"))
	case "many":
		return fmt.Sprintf("%s(m.0 BUCKET b, m.%s BUCKET b, %s, %s)",
			g.oneOf("sum", "min", "max", "diff"), g.oneOf("*", "1"), g.selector(), sub())
	case "joined spans":
		return g.joinedSpans(sub)
	case "list":
		return fmt.Sprintf("%s(%s, %s)", g.oneOf("sum", "min", "max", "diff"), sub(), sub())
	case "binary":
		return fmt.Sprintf("(%s %s (%s)%s)", sub(), g.oneOf("+", "-"), sub(),
			g.oneOf("", "", "", " ON 1", " ON (1, 2)"))
	case "scalar":
		return fmt.Sprintf("(%s %s %s)", sub(), g.oneOf("+", "-", "*"), number)
	case "divide":
		return fmt.Sprintf("(%s - %s) / %s", number, sub(), number)
	case "quotient":
		return fmt.Sprintf("%s / %s", sub(), g.selector())
	case "into":
		return fmt.Sprintf("%s / %s", number, g.selector())
	case "confidence":
		of := sub()
		if !strings.ContainsAny(of, "(*") { // avg of one metric wants a span
			return fmt.Sprintf("confidence(%s)", of)
		}
		return fmt.Sprintf("%s(%s)", g.oneOf("confidence", "avg"), of)
	}
	return g.selector()
}

// joinedSpans combines windows of one length, and functions that look at values before them.
func (g *generator) joinedSpans(sub func() string) string {
	span := g.oneOf("5s", "7s", "30s", "70s", "3m")
	side := func() string {
		of := g.selector()
		if g.exact {
			of = sub()
		}
		return fmt.Sprintf("%s(%s, %s)", g.oneOf("increase", "max", "last", "sum", "count"), of, span)
	}
	switch g.oneOf("function", "function", "operator", "topk", "before") {
	case "operator":
		return fmt.Sprintf("(%s %s (%s))", side(), g.oneOf("+", "-"), side())
	case "topk":
		return fmt.Sprintf("%s(%s, %s, %s)", g.oneOf("topk", "bottomk"), side(), side(),
			g.oneOf("1", "2"))
	case "before":
		return fmt.Sprintf("increase(%s(%s, %s), %s)", g.oneOf("max", "sum"), side(), side(),
			g.oneOf("1m", "5m"))
	}
	return fmt.Sprintf("%s(%s, %s)", g.oneOf("sum", "min", "max", "diff"), side(), side())
}

// spanSeries draws runs and gaps of integers, of floats, or of both with NaN. Floats
// are such that every other order of adding them up gives another sum.
func spanSeries(t *rapid.T, exact bool) (words []uint64) {
	for range rapid.IntRange(0, 8).Draw(t, "runs") {
		words = append(words,
			make([]uint64, rapid.SampledFrom([]int{0, 1, 5, 30, 200, 900}).Draw(t, "gap"))...)
		n := rapid.SampledFrom([]int{1, 2, 20, 100, 300}).Draw(t, "set")
		v := rapid.Int64Range(-1_000_000, 1_000_000).Draw(t, "value")
		for i := range n {
			w := point.FromInt(v + int64(i*i%17))
			switch {
			case exact:
			case i%5 == 0 && v%7 == 0:
				w = point.FromFloat(math.NaN())
			case v%5 == 0:
				w = point.FromFloat([]float64{1e300, -1e300, 1e-300, 0.1, math.Copysign(0, -1), 5e-324,
					1e16}[i*i%7])
			case v%11 == 0:
				w = point.FromFloat([]float64{math.Inf(1), 1, math.Inf(-1)}[i*i%3])
			case v%2 == 0:
				w = point.FromFloat(float64(v) / 7 * float64(int64(1)<<(i*i%50)))
			case v%3 == 0:
				w = point.FromInt(point.MaxInt - int64(i*i%17))
			}
			words = append(words, w)
		}
	}
	return words
}

func (g *generator) span() string {
	return fmt.Sprintf("%d%s", rapid.IntRange(1, 90).Draw(g.t, "n"), g.oneOf("s", "s", "s", "ms", "m"))
}

// sharp applies a function that leaps, so that its input must have no rounding
// errors. Integers stay whole.
func (g *generator) sharp(of string) string {
	number := g.oneOf("0", "-3", "100", "2.5")
	switch g.oneOf("median", "percentile", "find", "find conf", "growth", "steps", "quantile", "topk",
		"replace", "histogram", "log", "top of it") {
	case "median":
		return fmt.Sprintf("median(%s, %s)", of, g.span())
	case "percentile":
		return fmt.Sprintf("percentile(%s, %s, %s)", of, g.oneOf("0.0", "0.25", "0.9", "1", "0"),
			g.span())
	case "find":
		return fmt.Sprintf("%s_%s(%s, %s, %s)", g.oneOf("first", "last", "count"),
			g.oneOf("above", "below"), of, number, g.span())
	case "find conf":
		return fmt.Sprintf("%s_%s_conf(%s, 0.3717, %s)", g.oneOf("first", "last", "count"),
			g.oneOf("above", "below"), of, g.span())
	case "growth":
		return fmt.Sprintf("increase(%s, %s)", of, g.span())
	case "steps":
		return fmt.Sprintf("increase(%s)", of)
	case "quantile":
		return fmt.Sprintf("quantile(%s, %s, %s)", of, g.selector(), g.oneOf("0.5", "0", "0.99", "1"))
	case "topk":
		return fmt.Sprintf("%s(%s, %s, %s)", g.oneOf("topk", "bottomk"), of, g.selector(),
			g.oneOf("1", "2", "5"))
	case "replace":
		return fmt.Sprintf("replace_below_confidence(%s, 0.3717, %s)", of, g.oneOf("-1", "7"))
	case "histogram":
		h := fmt.Sprintf("histogram(%s, %s, %s, %s)", of, g.oneOf("2", "100", "3000", "1000000"),
			g.oneOf("1", "2", "3"), g.span())
		return g.oneOf("min("+h+")", "max("+h+")", "median("+h+")", "percentile("+h+", 90.0)",
			"percentile("+h+", 0)")
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
	switch g.oneOf("ends", "empty", "abs", "clamp", "fill") {
	case "ends":
		return fmt.Sprintf("%s(%s, %s)", g.oneOf("first", "last"), of, g.span())
	case "empty":
		return fmt.Sprintf("empty(%s, %s)", of, g.span())
	case "abs":
		return fmt.Sprintf("abs(%s)", of)
	case "clamp":
		return fmt.Sprintf("%s(%s, %s)", g.oneOf("min", "max"), of, g.oneOf("-7.0", "100.0"))
	}
	return fmt.Sprintf("fill(%s, %s)", of, g.oneOf("previous", "null", "zero"))
}

// rounding applies a function after which values are no longer exact.
func (g *generator) rounding(of string) string {
	switch g.oneOf("variance", "moving", "weighted", "line", "histogram", "rate", "steps") {
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
	case "steps":
		return fmt.Sprintf("derivate(%s)", of)
	}
	return fmt.Sprintf("%s(histogram(%s, 2000, %s, %s))", g.oneOf("mean", "stddev"), g.selector(),
		g.oneOf("1", "2", "3"), g.span())
}
