package query_test

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/query"
)

// localExpr draws an expression whose outputs depend on what is before them, and not on where
// the range begins, if that is a multiple of 60 s.
func localExpr(t *rapid.T, depth int) string {
	pick := func(list ...string) string { return rapid.SampledFrom(list).Draw(t, "choice") }
	selector := func() string {
		return "m." + pick("0", "1", "2") + " BUCKET b" + pick("", "", " SHIFT BY 7s")
	}
	if depth == 0 {
		return selector()
	}
	sub := func() string { return localExpr(t, depth-1) }
	span := pick("2s", "10s", "20s", "30s", "1m")
	switch pick("span", "span", "steps", "mavg", "operator", "quantile", "all", "all spans", "zero") {
	case "span":
		fn := pick("sum", "avg", "min", "last", "first", "count", "empty", "increase", "rate", "variance",
			"median")
		return fmt.Sprintf("%s(%s, %s)", fn, sub(), span)
	case "steps":
		return fmt.Sprintf("%s(%s)", pick("derivate", "increase", "rate", "confidence", "abs"), sub())
	case "mavg":
		return fmt.Sprintf("mavg(%s, %s)", sub(), span)
	case "operator":
		return fmt.Sprintf("(%s %s (%s))", sub(), pick("+", "-", "*", "/"), sub())
	case "quantile":
		return fmt.Sprintf("quantile(%s, %s, 0.5)", sub(), sub())
	case "all":
		return fmt.Sprintf("%s(m.* BUCKET b, %s)", pick("sum", "avg", "min", "max"), selector())
	case "zero":
		return fmt.Sprintf("fill(%s, zero)", sub())
	}
	fn := pick("sum", "avg", "min", "max")
	return fmt.Sprintf("%s(%s(m.* BUCKET b, %s))", pick("sum", "avg", "max"), fn, span)
}

// TestAnswersDoNotDependOnTheRange: at a time there is the same value whatever range is asked for,
// bit by bit, however it is read.
func TestAnswersDoNotDependOnTheRange(t *testing.T) {
	values := 0
	for range 10 {
		rapid.Check(t, func(rt *rapid.T) { values += checkLocal(t, rt) })
	}
	if values < 3_000 {
		t.Errorf("compared %d values only", values)
	}
}

func checkLocal(t *testing.T, rt *rapid.T) (compared int) {
	m := newBucket(t)
	for i := range 3 {
		every := rapid.SampledFrom([]int{1, 1, 3, 10, 60}).Draw(rt, "every")
		words := make([]uint64, 4000)
		pause := rapid.IntRange(0, 3900).Draw(rt, "pause")
		for at := rapid.IntRange(0, every-1).Draw(rt, "phase"); at < len(words); at += every {
			if at < pause || at > pause+400 {
				words[at] = point.FromFloat(float64(at*at%1013) / 8)
			}
		}
		m.load("b", key(t, "m", fmt.Sprint(i)), 0, words)
	}
	text := localExpr(rt, rapid.IntRange(1, 3).Draw(rt, "depth"))
	early := 60 * rapid.IntRange(12, 30).Draw(rt, "early")
	late := early + 60*rapid.IntRange(1, 25).Draw(rt, "later")
	end := late + rapid.IntRange(1, 400).Draw(rt, "length")
	ask := func(start int) (*query.Result, error) {
		e := engine(m, 4_000_000)
		if rapid.Bool().Draw(rt, "aggregates") {
			e = engine(adder{m}, 4_000_000)
		}
		e.Now = func() time.Time { return time.UnixMilli(4_000_000) }
		return e.WithRounds(rapid.Int64Range(1, 900).Draw(rt, "rounds")).Query(t.Context(),
			fmt.Sprintf("SELECT %s BETWEEN %d AND %d", text, start*1000, end*1000),
			query.Options{Confidence: true})
	}
	whole, err := ask(early)
	if err != nil { // such as mixed resolutions
		return 0
	}
	part, err := ask(late)
	if err != nil {
		rt.Fatalf("%s: %v", text, err)
	}
	for i, s := range part.Series {
		w := whole.Series[i]
		skip := (late - early) * 1000 / int(s.Resolution)
		if !sameBits(s.Values, w.Values[skip:]) || !sameBits(s.Confidence, w.Confidence[skip:]) {
			rt.Fatalf("%s from %d and from %d to %d:\n%v\n%v", text, early, late, end, w.Values[skip:],
				s.Values)
		}
		compared += len(s.Values)
	}
	return compared
}
