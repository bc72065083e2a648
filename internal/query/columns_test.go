package query_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"dalmatiner/internal/codec/point"
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
			e := engine(source, now.UnixMilli())
			want, err := reference.Evaluate(plain{source}, text, now, reference.Old{})
			if err != nil || len(want) == 0 {
				rt.Skip()
			}
			ask := func(o query.Options) []query.Series {
				r, err := e.WithRounds(rapid.Int64Range(1, 300).Draw(rt, "rounds")).Query(context.Background(),
					text, o)
				if err != nil {
					rt.Fatalf("%s with %+v: %v", text, o, err)
				}
				return r.Series
			}
			sure := rapid.Bool().Draw(rt, "sure")
			width := rapid.IntRange(1, 200).Draw(rt, "width")
			whole := ask(query.Options{Confidence: true})
			if rapid.Bool().Draw(rt, "aggregates") {
				e.Source = sourceOf(adder{source})
			}
			reduced := ask(query.Options{Confidence: sure, Width: width})
			for i, w := range want {
				compareFloats(rt, text+" confidences", whole[i].Confidence, w.Confidence, 1e-9)
				compareColumns(rt, text, whole[i], reduced[i], width, sure)
			}
		})
	}
}

// Columns of long ranges come from aggregates of whole chunks: they are those of
// all slots of the full answer, and begin at multiples of their length.
func TestLongColumns(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		m := newMemory(t)
		m.addBucket("b", 1000, rapid.SampledFrom([]int64{0, 0, 30_000}).Draw(rt, "ttl"))
		every := rapid.SampledFrom([]int{1, 10, 700, 9000}).Draw(rt, "every")
		words := make([]uint64, rapid.IntRange(0, 60_000).Draw(rt, "slots"))
		whole := rapid.Bool().Draw(rt, "whole numbers")
		for i := 0; i < len(words); i += every {
			switch {
			case whole:
				words[i] = point.FromInt(int64(i % 1013))
			case i%7919 == 0 && every < 10:
				words[i] = point.FromFloat(math.NaN())
			default:
				words[i] = point.FromFloat(float64(i%1013) / 7)
			}
		}
		m.load("b", key(t, "m"), rapid.Int64Range(0, 30_000).Draw(rt, "from"), words)
		now := time.UnixMilli(90_000_000)
		m.now = now.UnixMilli()
		e := engine(adder{m}, now.UnixMilli())
		shift := rapid.SampledFrom([]string{"", " SHIFT BY 777s"}).Draw(rt, "shift")
		begin := rapid.Int64Range(1, 40_000_000).Draw(rt, "begin")
		text := fmt.Sprintf("SELECT m BUCKET b%s BETWEEN %d AND %d", shift, begin,
			begin+rapid.Int64Range(0, 50_000_000).Draw(rt, "length"))
		ask := func(e *query.Engine, o query.Options) query.Series {
			r, err := e.Query(context.Background(), text, o)
			if err != nil {
				rt.Fatalf("%s with %+v: %v", text, o, err)
			}
			return r.Series[0]
		}
		opt := query.Options{Confidence: rapid.Bool().Draw(rt, "sure"),
			Width: rapid.IntRange(1, 100).Draw(rt, "width")}
		full := ask(e, query.Options{Confidence: true})
		got := ask(e.WithRounds(rapid.SampledFrom([]int64{100, 7000, 100_000}).Draw(rt, "rounds")), opt)
		compareColumns(rt, text, full, got, opt.Width, opt.Confidence)
		if got.Start != full.Start && (shift != "") != (got.Start%got.Resolution != 0) {
			rt.Fatalf("%s: columns of %d ms begin at %d", text, got.Resolution, got.Start)
		}
		if got.Coverage != full.Coverage || got.Interval != full.Interval {
			rt.Fatalf("%s: coverage %v and a point every %d ms, want %v and %d", text, got.Coverage,
				got.Interval, full.Coverage, full.Interval)
		}
	})
}

// Spans of two sizes over one series without a point are gaps.
func TestColumnsOfSpansOfTwoSizes(t *testing.T) {
	m := newBucket(t)
	m.load("b", key(t, "m"), 0, nil)
	e := (query.Engine{Source: sourceOf(adder{m}), Now: time.Now}).WithRounds(1)
	for _, text := range []string{"avg(m BUCKET b, 16s), m BUCKET b",
		"m BUCKET b, avg(m BUCKET b, 16s)"} {
		r, err := e.Query(t.Context(), "SELECT "+text+" BETWEEN 16000 AND 33000", query.Options{Width: 1})
		if err != nil {
			t.Fatal(err)
		}
		for i, s := range r.Series {
			if s.Values[0] == s.Values[0] || s.Min[0] == s.Min[0] {
				t.Errorf("%s: series %d without a point has the column %v from %v on", text, i, s.Values, s.Min)
			}
		}
	}
}

// compareColumns computes the columns of whole the obvious way: the average of
// all values.
func compareColumns(t *rapid.T, text string, whole, got query.Series, width int, sure bool) {
	n := len(whole.Values)
	if len(got.Values) > width || got.Resolution%whole.Resolution != 0 {
		t.Fatalf("%s: %d columns of %d ms for a width of %d", text, len(got.Values), got.Resolution,
			width)
	}
	step := int(got.Resolution / whole.Resolution)
	first := step // values in the first column
	if got.Start != whole.Start {
		first = step - int((whole.Start/whole.Resolution*whole.Resolution-got.Start)/whole.Resolution)
		// Another field of the text may be the one that is shifted.
		if step < 1440 || step%720 != 0 || got.Start > whole.Start || first < 1 ||
			!strings.Contains(text, "SHIFT") && got.Start%got.Resolution != 0 {
			t.Fatalf("%s: columns of %d values begin at %d, the range at %d", text, step, got.Start,
				whole.Start)
		}
	} else if step > 1 && step%720 != 0 && (n+step-2)/(step-1) <= width {
		t.Fatalf("%s: %d values per column, %d would fit into %d", text, step, step-1, width)
	}
	var avg, low, high, conf []float64
	for from, to := 0, min(first, n); from < n; from, to = to, min(to+step, n) {
		a, l, h, c, k := 0.0, math.Inf(1), math.Inf(-1), 0.0, 0.0
		for i := from; i < to; i++ {
			c += whole.Confidence[i]
			if v := whole.Values[i]; v == v {
				a, l, h, k = a+v, min(l, v), max(h, v), k+1
			}
		}
		if k == 0 {
			l, h = math.NaN(), math.NaN()
		}
		avg, low, high, conf = append(avg, a/k), append(low, l), append(high, h),
			append(conf, c/float64(to-from))
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
	m := newBucket(t)
	m.load("b", key(t, "x"), 0, nil)
	e := &query.Engine{Source: sourceOf(m), Now: func() time.Time {
		return time.UnixMilli(4_000_000)
	}, Limits: query.Limits{MaxOutput: 30}}
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
