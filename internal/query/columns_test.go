package query_test

import (
	"context"
	"errors"
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"dalmatiner/internal/query"
	"dalmatiner/internal/query/reference"
)

// TestConfidencesAndColumns: confidences that are asked for are those of the
// reference, and columns are those of the whole series.
func TestConfidencesAndColumns(t *testing.T) {
	for range 10 {
		rapid.Check(t, func(rt *rapid.T) {
			g := generator{t: rt}
			source := g.source(t)
			now := time.UnixMilli(rapid.Int64Range(1, 3_000_000).Draw(rt, "now"))
			source.now = now.UnixMilli()
			text := g.query()
			e := query.Engine{Source: source, Now: func() time.Time { return now }}
			want, err := reference.Evaluate(context.Background(), source, text, now, reference.Old{})
			if err != nil || len(want) == 0 {
				rt.Skip()
			}
			ask := func(o query.Options) []query.Series {
				r, err := e.WithRounds(rapid.Int64Range(1, 300).Draw(rt, "rounds")).Query(context.Background(), text, o)
				if err != nil {
					rt.Fatalf("%s with %+v: %v", text, o, err)
				}
				return r.Series
			}
			sure := rapid.Bool().Draw(rt, "sure")
			width := rapid.IntRange(1, 200).Draw(rt, "width")
			whole := ask(query.Options{Confidence: true})
			reduced := ask(query.Options{Confidence: sure, Width: width})
			for i, w := range want {
				compareFloats(rt, text+" confidences", whole[i].Confidence, w.Confidence, 1e-9)
				compareColumns(rt, text, whole[i], reduced[i], width, sure)
			}
		})
	}
}

func compareFloats(t *rapid.T, what string, got, want []float64, tolerance float64) {
	if len(got) != len(want) {
		t.Fatalf("%s: %d, want %d", what, len(got), len(want))
	}
	for i, w := range want {
		if g := got[i]; g != w && !(g != g && w != w) && !(math.Abs(g-w) <= tolerance) {
			t.Fatalf("%s: %v at %d, want %v", what, g, i, w)
		}
	}
}

// compareColumns computes the columns of whole the obvious way.
func compareColumns(t *rapid.T, text string, whole, got query.Series, width int, sure bool) {
	n := len(whole.Values)
	if len(got.Values) > width || got.Resolution%whole.Resolution != 0 {
		t.Fatalf("%s: %d columns of %d ms for a width of %d", text, len(got.Values), got.Resolution, width)
	}
	step := int(got.Resolution / whole.Resolution)
	if step > 1 && (n+step-2)/(step-1) <= width {
		t.Fatalf("%s: %d values per column, %d would fit into %d", text, step, step-1, width)
	}
	var avg, low, high, conf []float64
	for from := 0; from < n; from += step {
		to := min(from+step, n)
		a, l, h, c, k := 0.0, math.Inf(1), math.Inf(-1), 0.0, 0.0
		for i := from; i < to; i++ {
			c += whole.Confidence[i]
			if v := whole.Values[i]; v == v && (!sure || whole.Confidence[i] > 0) {
				a, l, h, k = a+v, min(l, v), max(h, v), k+1
			}
		}
		if k == 0 {
			l, h = math.NaN(), math.NaN()
		}
		avg, low, high, conf = append(avg, a/k), append(low, l), append(high, h), append(conf, c/float64(to-from))
	}
	scale := 0.0
	for _, v := range whole.Values {
		if v == v {
			scale = max(scale, math.Abs(v))
		}
	}
	compareFloats(t, text+" min", got.Min, low, 0)
	compareFloats(t, text+" max", got.Max, high, 0)
	compareFloats(t, text+" avg", got.Values, avg, 1e-9*scale)
	if !sure {
		conf = nil
	}
	compareFloats(t, text+" confidences of columns", got.Confidence, conf, 1e-9)
}

func TestWidthIsLimited(t *testing.T) {
	m := newMemory(t)
	m.addBucket("b", 1000, 0)
	e := &query.Engine{Source: m, Now: func() time.Time { return time.UnixMilli(4_000_000) }, Limits: query.Limits{MaxOutput: 30}}
	ask := func(width int) error {
		_, err := e.Query(context.Background(), "SELECT x BUCKET b LAST 1h", query.Options{Width: width})
		return err
	}
	var limit *query.LimitError
	if err := ask(query.MaxWidth + 1); !errors.As(err, &limit) || limit.Limit != query.MaxWidth {
		t.Errorf("too wide: %v", err)
	}
	if err := ask(11); !errors.As(err, &limit) || limit.Got != 33 {
		t.Errorf("11 columns of 3 numbers: %v", err)
	}
	if err := ask(10); err != nil {
		t.Errorf("an hour in 10 columns: %v", err)
	}
}
