package query_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/query"
	"dalmatiner/internal/query/reference"
)

// The columns of a series have the same bits whether the source adds its slots up or
// they are read, and whatever else is asked for. Whole columns from the first one on
// are averages over their length.
func TestColumnsHaveOneSum(t *testing.T) {
	for range 3 {
		rapid.Check(t, checkColumnSums(t))
	}
}

func checkColumnSums(t *testing.T) func(rt *rapid.T) {
	return func(rt *rapid.T) {
		m := newBucket(t)
		words := spanSeries(rt, false)
		m.load("b", key(t, "m"), rapid.Int64Range(0, 3000).Draw(rt, "from"), words)
		nan := false
		for _, w := range words {
			nan = nan || point.Float(w) != point.Float(w)
		}
		shift := rapid.SampledFrom([]string{"", "", " SHIFT BY 777s"}).Draw(rt, "shift")
		begin := rapid.Int64Range(1, 3_000_000).Draw(rt, "begin")
		times := fmt.Sprintf(" BETWEEN %d AND %d", begin,
			begin+rapid.Int64Range(1000, 9_000_000).Draw(rt, "length"))
		opt := query.Options{Confidence: rapid.Bool().Draw(rt, "sure"),
			Width: rapid.IntRange(1, 100).Draw(rt, "width")}
		now := time.UnixMilli(90_000_000)
		ask := func(what string, slots bool) query.Series {
			opt.NoAggregates = slots
			e := engine(adder{m}, now.UnixMilli()).WithRounds(
				rapid.SampledFrom([]int64{1, 100, 7000}).Draw(rt, "rounds"))
			r, err := e.Query(context.Background(), "SELECT m BUCKET b"+shift+what+times, opt)
			if err != nil {
				rt.Fatal(err)
			}
			return r.Series[0]
		}
		first := ask("", false)
		for _, what := range []string{"", ", derivate(m BUCKET b" + shift + ")", ", sum(m BUCKET b" +
			shift + ", 5s), m BUCKET b SHIFT BY 1s"} {
			for _, slots := range []bool{false, true} {
				got := ask(what, slots)
				if got.Start != first.Start || got.Resolution != first.Resolution ||
					!sameBits(got.Values, first.Values) ||
					!sameBits(got.Min, first.Min) || !sameBits(got.Max, first.Max) ||
					!sameBits(got.Confidence, first.Confidence) {
					rt.Fatalf("%s with %+v beside %q:\n%+v, alone\n%+v", times, opt, what, got, first)
				}
			}
		}
		if nan || first.Start != begin {
			return
		}
		text := fmt.Sprintf("SELECT avg(m BUCKET b%s, %dms)%s", shift, first.Resolution, times)
		want, err := reference.Evaluate(plain{m}, text, now, reference.Old{})
		if err != nil {
			rt.Fatal(err)
		}
		if whole := len(first.Values) - 1; !sameBits(first.Values[:whole], want[0].Values[:whole]) {
			rt.Fatalf("%s: columns\n%v, averages\n%v", text, first.Values, want[0].Values)
		}
	}
}

// Of a column with NaN what lies before the first point does not count either.
func TestColumnWithNaNBehindAGap(t *testing.T) {
	m := newBucket(t)
	m.load("b", key(t, "m"), 500, []uint64{point.FromFloat(8), point.FromFloat(math.NaN()),
		point.FromFloat(1), point.FromFloat(3)})
	e := query.Engine{Source: sourceOf(adder{m}), Now: time.Now}
	for _, slots := range []bool{false, true} {
		r, err := e.Query(t.Context(), "SELECT m BUCKET b BETWEEN 1 AND 504000",
			query.Options{Width: 1, NoAggregates: slots})
		if err != nil || r.Series[0].Values[0] != 4 {
			t.Errorf("without aggregates %v: average %v, want 4, error %v", slots, r.Series[0].Values, err)
		}
	}
}

// Of 0 and -0 a column shows the first, whether it is read or added up.
func TestColumnsKeepTheFirstZero(t *testing.T) {
	minus := math.Copysign(0, -1)
	for _, zeros := range [][]float64{{0, minus}, {minus, 0}} {
		m := newBucket(t)
		m.load("b", key(t, "m"), 0, []uint64{point.FromFloat(zeros[0]), point.FromFloat(zeros[1])})
		e := query.Engine{Source: sourceOf(adder{m}), Now: time.Now}
		for _, slots := range []bool{false, true} {
			r, err := e.Query(t.Context(), "SELECT m BUCKET b BETWEEN 0 AND 2000",
				query.Options{Width: 1, NoAggregates: slots})
			if err != nil {
				t.Fatal(err)
			}
			if s := r.Series[0]; !sameBits(s.Min, zeros[:1]) || !sameBits(s.Max, zeros[:1]) {
				t.Errorf("%v without aggregates %v: from %v to %v, want the first", zeros, slots, s.Min, s.Max)
			}
		}
	}
}

// Of many series several share every part of the tree.
func TestManySeriesHaveOneSum(t *testing.T) {
	m := newBucket(t)
	r := rand.New(rand.NewPCG(3, 1))
	for i := range 3000 {
		words := make([]uint64, 20)
		for j := range words {
			words[j] = point.FromFloat(math.Ldexp(r.NormFloat64(), r.IntN(100)))
		}
		m.load("b", key(t, "m", fmt.Sprint(i)), 0, words)
	}
	now := time.UnixMilli(20_000)
	for _, of := range []string{"m.*", "sum(m.*, 3s)", "m.*, m.7, max(m.*)",
		"sum(m.*), m.1 - m.2, avg(m.*), m.3 - m.4, m.5"} {
		for _, fn := range []string{"sum", "avg"} {
			text := "SELECT " + fn + "(" + of + ") BETWEEN 1 AND 20000"
			text = strings.NewReplacer("m.*", "m.* BUCKET b", "m.1", "m.1 BUCKET b", "m.2", "m.2 BUCKET b",
				"m.3", "m.3 BUCKET b",
				"m.4", "m.4 BUCKET b", "m.5", "m.5 BUCKET b", "m.7", "m.7 BUCKET b").Replace(text)
			want, err := reference.Evaluate(plain{m}, text, now, reference.Old{})
			if err != nil {
				t.Fatal(err)
			}
			e := (query.Engine{Source: sourceOf(adder{m}), Now: func() time.Time {
				return now
			}, Readers: query.NewReaders(2)}).WithRounds(7)
			got, err := e.Query(t.Context(), text, query.Options{Confidence: true})
			if err != nil {
				t.Fatal(err)
			}
			if !sameBits(got.Series[0].Values, want[0].Values) ||
				!sameBits(got.Series[0].Confidence, want[0].Confidence) {
				t.Errorf("%s:\n%v, want\n%v", text, got.Series[0].Values, want[0].Values)
			}
		}
	}
}
