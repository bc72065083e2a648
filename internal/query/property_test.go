package query_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"dalmatiner/internal/point"
	"dalmatiner/internal/query"
	"dalmatiner/internal/query/reference"
)

// TestEngineEqualsReference compares random queries over random series. With
// integers and functions that keep them whole, results are equal; otherwise
// they differ by rounding at most.
func TestEngineEqualsReference(t *testing.T) {
	// A check takes microseconds; the rare meetings of seams want many.
	for range 30 {
		rapid.Check(t, checkEngine(t))
	}
}

func checkEngine(t *testing.T) func(rt *rapid.T) {
	return func(rt *rapid.T) {
		g := generator{t: rt, exact: rapid.Bool().Draw(rt, "exact")}
		source := g.source(t)
		now := time.UnixMilli(rapid.Int64Range(1, 3_000_000).Draw(rt, "now"))
		source.now = now.UnixMilli()
		text := g.query()
		e := query.Engine{Source: source, Now: func() time.Time { return now }}
		if rapid.Bool().Draw(rt, "aggregates") {
			e.Source = adder{source}
		}
		e.Readers = query.NewReaders(rapid.IntRange(0, 3).Draw(rt, "readers"))
		rounds := rapid.Int64Range(1, 300).Draw(rt, "rounds")
		old := reference.Old{Compat: rapid.IntRange(0, 2).Draw(rt, "compat") == 0, Piece: rapid.SampledFrom([]int64{2, 3, 50, 1000}).Draw(rt, "piece")}
		opt := query.Options{Compat: old.Compat, Confidence: true, NoAggregates: rapid.IntRange(0, 9).Draw(rt, "without") == 0}
		got, err := e.WithRounds(rounds).WithPieces(old.Piece).Query(context.Background(), text, opt)
		want, wantErr := reference.Evaluate(plain{source}, text, now, old)
		switch {
		case wantErr == nil && len(want) == 0:
			wantErr = query.ErrNoResults
			fallthrough
		case wantErr != nil:
			if !sameError(err, wantErr) {
				rt.Fatalf("%s: error %v, want %v", text, err, wantErr)
			}
			return
		case err != nil:
			rt.Fatalf("%s: %v", text, err)
		}
		for i, w := range want {
			if lead := leadOf(w, old); got.Series[i].Lead != lead {
				rt.Fatalf("%s: series %d: %d values before the first point, want %d of\n%v", text, i, got.Series[i].Lead, lead, w.Known)
			}
			if err := g.compare(got.Series[i], w); err != nil {
				rt.Fatalf("%s: series %d: %v\ngot  %v\nwant %v", text, i, err, got.Series[i].Values, w.Values)
			}
		}
	}
}

// leadOf returns how many values are before the first point.
func leadOf(s reference.Series, old reference.Old) int {
	if first := slices.Index(s.Known, true); first >= 0 && !old.Compat {
		return first
	} else if !old.Compat {
		return len(s.Values)
	}
	return 0
}

func sameError(got, want error) bool {
	if errors.Is(want, reference.ErrMixedResolutions) {
		return got != nil && strings.Contains(got.Error(), "mix resolutions")
	}
	return errors.Is(got, want)
}

type generator struct {
	t     *rapid.T
	exact bool
}

func (g *generator) oneOf(values ...string) string {
	return rapid.SampledFrom(values).Draw(g.t, "choice")
}

// source makes two buckets with series of runs and gaps.
func (g *generator) source(t *testing.T) *memory {
	m := newMemory(t)
	m.reads = nil
	m.addBucket("b", 1000, 0)
	m.addBucket("c", 7000, rapid.SampledFrom([]int64{0, 0, 50}).Draw(g.t, "ttl"))
	for _, bucket := range []string{"b", "c"} {
		for i := range rapid.IntRange(0, 4).Draw(g.t, "series") {
			var words []uint64
			for range rapid.IntRange(0, 6).Draw(g.t, "runs") {
				words = append(words, make([]uint64, rapid.IntRange(0, 400).Draw(g.t, "gap"))...)
				for range rapid.IntRange(0, rapid.SampledFrom([]int{9, 60}).Draw(g.t, "dense")).Draw(g.t, "set") {
					words = append(words, g.word())
				}
			}
			m.load(bucket, key(t, "m", fmt.Sprint(i)), rapid.Int64Range(0, 900).Draw(g.t, "from"), words)
		}
	}
	return m
}

func (g *generator) word() uint64 {
	n := rapid.Int64Range(-1000, 1000).Draw(g.t, "value")
	if g.exact || n%3 == 0 {
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
		return g.oneOf("NOW", "1", "800000", "1000500", "1200s AGO", `"1970-01-01 00:10:00"`, `"1970-01-01 02:10:00 +0200"`)
	}
	span := fmt.Sprintf("%d%s", rapid.IntRange(-1, 900).Draw(g.t, "span"), g.oneOf("ms", "s", "s", "s"))
	times := g.oneOf("LAST "+span, "AFTER "+at()+" FOR "+span, "BEFORE "+at()+" FOR "+span, "BETWEEN "+at()+" AND "+at())
	text := "SELECT " + strings.Join(fields, ", ") + " " + times
	if g.exact && rapid.IntRange(0, 3).Draw(g.t, "limit") == 0 {
		text += g.oneOf(" TOP ", " BOTTOM ") + g.oneOf("1", "2", "3") + " BY " + g.oneOf("max()", "sum()", "median()", "percentile(0.2)", "last()", "count()")
	}
	return text
}

func (g *generator) selector() string {
	s := g.oneOf("m.0", "m.1", "m.2", "m.none", "m.*", "*.1") + " BUCKET " + g.oneOf("b", "b", "b", "c")
	if rapid.IntRange(0, 4).Draw(g.t, "shift") == 0 {
		s += fmt.Sprintf(" SHIFT BY %d%s", rapid.IntRange(-20, 400).Draw(g.t, "by"), g.oneOf("", "s", "ms"))
	}
	return s
}

func (g *generator) expr(depth int) string {
	if depth == 0 {
		return g.selector()
	}
	kinds := []string{"select", "window", "window", "list", "many", "binary", "scalar", "sharp", "sharp", "sharp", "smooth"}
	if !g.exact {
		kinds = append(kinds, "avg", "quotient", "divide", "into", "confidence", "rounding", "rounding")
	}
	sub := func() string { return g.expr(rapid.IntRange(0, depth-1).Draw(g.t, "depth")) }
	number := g.oneOf("2", "-3", "0.5", "1")
	switch g.oneOf(kinds...) {
	case "window":
		if rapid.Bool().Draw(g.t, "like c") {
			// The resolution of the other bucket, so that both combine.
			return fmt.Sprintf("%s(m.%s BUCKET b, 7s)", g.oneOf("min", "max", "sum", "count"), g.oneOf("0", "1", "*"))
		}
		return fmt.Sprintf("%s(%s, %d%s)", g.oneOf("min", "max", "sum", "count"), sub(), rapid.IntRange(1, 40).Draw(g.t, "n"), g.oneOf("s", "s", "s", "m"))
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
		return fmt.Sprintf("%s(m.0 BUCKET b, m.%s BUCKET b, %s, %s)", g.oneOf("sum", "min", "max", "diff"), g.oneOf("*", "1"), g.selector(), sub())
	case "list":
		return fmt.Sprintf("%s(%s, %s)", g.oneOf("sum", "min", "max", "diff"), sub(), sub())
	case "binary":
		return fmt.Sprintf("(%s %s %s)", sub(), g.oneOf("+", "-"), sub())
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

func (g *generator) compare(got query.Series, want reference.Series) error {
	if got.Resolution != want.Resolution || len(got.Values) != len(want.Values) {
		return fmt.Errorf("%d values at %d ms, want %d at %d ms", len(got.Values), got.Resolution, len(want.Values), want.Resolution)
	}
	if coverage := float64(want.Set) / math.Max(1, float64(want.Slots)); got.Coverage != coverage {
		return fmt.Errorf("coverage %v, want %v", got.Coverage, coverage)
	}
	// Every step of a computation rounds relative to the greatest magnitude
	// in it; a division by as little as 1/8 makes an error eight times as big.
	allowed := 0.0
	if !g.exact {
		allowed = float64(want.Slots+100) * 0x1p-52 * (want.Scale + 1) * 512
	}
	for i, w := range want.Values {
		if c := want.Confidence[i]; math.Abs(got.Confidence[i]-c) > 1e-9 {
			return fmt.Errorf("confidence %d is %v, want %v", i, got.Confidence[i], c)
		}
		if math.Abs(got.Values[i]-w) > allowed || math.IsNaN(got.Values[i]) != math.IsNaN(w) {
			return fmt.Errorf("value %d is %v, want %v ± %v", i, got.Values[i], w, allowed)
		}
	}
	return nil
}
