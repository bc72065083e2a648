package query_test

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"dalmatiner/internal/codec/chunk"
	"dalmatiner/internal/query"
	"dalmatiner/internal/query/reference"
	"dalmatiner/internal/query/source"
)

// Push-down on = off = the reference, whatever else is asked for: the same values
// and confidences, bit by bit, and the same of what a result says of itself.
func TestAggregatesChangeNothing(t *testing.T) {
	for range 10 {
		rapid.Check(t, checkSpans(t))
	}
}

// spanField draws a field of sums and other aggregates of one span or of several series.
func spanField(t *rapid.T, span int) string {
	fn := rapid.SampledFrom([]string{"sum", "avg", "sum", "avg", "min", "max", "count", "first",
		"last", "empty", "increase", "rate", "increase"}).Draw(t, "fn")
	of := rapid.SampledFrom([]string{"m.0 BUCKET b", "m.1 BUCKET b", "m.* BUCKET b",
		"m.0 BUCKET b SHIFT BY 97s", "m.1 BUCKET b SHIFT BY 1000s", "m.2 BUCKET c"}).Draw(t, "of")
	field := fmt.Sprintf("%s(%s, %ds)", fn, of, span)
	switch rapid.IntRange(0, 7).Draw(t, "form") {
	case 0:
		return fmt.Sprintf("%s(m.* BUCKET b, m.0 BUCKET b SHIFT BY 9s)",
			rapid.SampledFrom([]string{"sum", "avg", "min", "max"}).Draw(t, "combine"))
	case 1:
		return fmt.Sprintf("%s(%s, %s(m.* BUCKET b, %ds), sum(m.* BUCKET b, %ds))",
			rapid.SampledFrom([]string{"sum", "avg"}).Draw(t, "combine"), field, fn, span, span)
	}
	return field
}

// asReference reports whether values are those of the reference: bit by bit, but for the growth of
// counters, which the reference knows without rounding.
func asReference(text string, values []float64, want reference.Series, exact bool) bool {
	grows := strings.Contains(text, "increase") || strings.Contains(text, "rate")
	if !grows || exact && !strings.Contains(text, "rate") {
		return sameBits(values, want.Values)
	}
	allowed := 0.0
	if strings.Contains(text, "(increase(") || strings.Contains(text, "(rate(") ||
		strings.Contains(text, ", increase(") {
		// what it is combined with may be negative
		allowed = float64(want.Slots+100) * 0x1p-40 * (want.Scale + 1)
	}
	return slices.EqualFunc(values, want.Values, func(a, b float64) bool {
		return a == b || a != a && b != b || math.Abs(a-b) <= allowed+0x1p-50*math.Abs(b)
	})
}

func checkSpans(t *testing.T) func(rt *rapid.T) {
	return func(rt *rapid.T) {
		exact := rapid.IntRange(0, 4).Draw(rt, "exact") == 0
		m := newMemory(t)
		m.addBucket("b", 1000, rapid.SampledFrom([]int64{0, 0, 300}).Draw(rt, "ttl"))
		m.addBucket("c", 1000, 0)
		for i := range rapid.IntRange(3, 9).Draw(rt, "series") {
			m.load("b", key(t, "m", fmt.Sprint(i)), rapid.Int64Range(0, 300).Draw(rt, "from"),
				spanSeries(rt, exact))
		}
		m.load("c", key(t, "m", "2"), 0, spanSeries(rt, exact))
		span := rapid.SampledFrom([]int{1, 2, 7, 14, 15, 16, 17, 59, 60, 61, 720, 2000, 0}).Draw(rt,
			"span")
		if span == 0 {
			span = rapid.IntRange(1, 250).Draw(rt, "any span")
		}
		var fields []string
		for range rapid.IntRange(1, 4).Draw(rt, "fields") {
			fields = append(fields, spanField(rt, span))
		}
		if rapid.IntRange(0, 4).Draw(rt, "slots too") == 0 {
			fields = append(fields, "m.0 BUCKET b")
		}
		if rapid.IntRange(0, 4).Draw(rt, "other spans too") == 0 {
			fields = append(fields, "sum(m.* BUCKET b, 33s)", "avg(m.0 BUCKET b, 5s)")
		}
		from := rapid.Int64Range(1, 600_000).Draw(rt, "start")
		text := fmt.Sprintf("SELECT %s BETWEEN %d AND %d", strings.Join(fields, ", "), from,
			from+rapid.Int64Range(0, 2_500_000).Draw(rt, "length"))
		// of others rounding may decide
		if exact && !strings.Contains(text, "avg") && !strings.Contains(text, "rate") &&
			rapid.IntRange(0, 1).Draw(rt, "top") == 0 {
			text += rapid.SampledFrom([]string{" TOP 2 BY sum()", " BOTTOM 1 BY avg()"}).Draw(rt, "limit")
		}
		now := time.UnixMilli(1_000_000)
		m.now = now.UnixMilli()
		want, err := reference.Evaluate(plain{m}, text, now, reference.Old{})
		if err != nil {
			rt.Fatalf("%s: %v", text, err)
		}
		var before []query.Series
		for _, without := range []bool{false, true} {
			e := engine(adder{m}, now.UnixMilli()).WithRounds(rapid.Int64Range(1, 900).Draw(rt, "rounds"))
			e.Readers = query.NewReaders(rapid.IntRange(0, 3).Draw(rt, "readers"))
			got, err := e.Query(context.Background(), text,
				query.Options{Confidence: true, NoAggregates: without})
			if err != nil {
				rt.Fatalf("%s: %v", text, err)
			}
			if len(got.Series) != len(want) {
				rt.Fatalf("%s: %d series, want %d", text, len(got.Series), len(want))
			}
			for i, s := range got.Series {
				w := want[i]
				if aboutGot(got, s) != aboutWant(w) || !sameBits(s.Confidence, w.Confidence) {
					rt.Fatalf("%s: series %d, without aggregates %v: %+v and confidences %v, want %+v and %v",
						text, i, without, aboutGot(got, s), s.Confidence, aboutWant(w), w.Confidence)
				}
				if !asReference(text, s.Values, w, exact) || without && !sameBits(s.Values, before[i].Values) {
					rt.Fatalf("%s: series %d, without aggregates %v\n%v, reference\n%v", text, i, without,
						s.Values, w.Values)
				}
			}
			before = got.Series
		}
	}
}

// Series are read by several goroutines; what one of them meets ends the query.
func TestAnErrorOfOneSeriesEndsTheQuery(t *testing.T) {
	m := newBucket(t)
	for i := range 50 {
		m.load("b", key(t, "m", fmt.Sprint(i)), 0, ints(100, func(i int64) int64 { return i }))
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	e := (query.Engine{Source: sourceOf(adder{m}), Now: time.Now,
		Readers: query.NewReaders(3)}).WithRounds(1000)
	if _, err := e.Query(ctx, "SELECT max(m.* BUCKET b, 20s) BETWEEN 1 AND 100000",
		query.Options{}); err == nil || !strings.Contains(err.Error(), "given up") {
		t.Fatalf("a query whose client is gone: %v", err)
	}
}

// EXPLAIN tells what aggregates cost.
func TestExplainTellsOfAggregates(t *testing.T) {
	m := newBucket(t)
	m.load("b", key(t, "m"), 0, ints(100, func(i int64) int64 { return i }))
	e := engine(adder{m}, 1)
	r, err := e.Query(context.Background(), "SELECT max(m BUCKET b, 20s) BETWEEN 1 AND 100000",
		query.Options{Explain: true})
	if err != nil {
		t.Fatal(err)
	}
	if text := r.Plan.String(); !strings.Contains(text, "set 100, decoded 100") {
		t.Fatal(text)
	}
}

// counting counts the calls of a source.
type counting struct {
	adder
	calls int
	read  int // slots
}

func (c *counting) Read(ctx context.Context, b source.Info, key []byte, from int64,
	dst []uint64) (source.Cost, error) {
	c.read += len(dst)
	return c.adder.Read(ctx, b, key, from, dst)
}

func (c *counting) Aggregate(ctx context.Context, b source.Info, key []byte, from, step int64,
	dst []chunk.Header) (source.Cost, error) {
	c.calls++
	return c.adder.Aggregate(ctx, b, key, from, step, dst)
}

// A range that fits into a round is asked for at once, wherever it begins.
func TestAShortRangeIsOneRound(t *testing.T) {
	m := newBucket(t)
	m.load("b", key(t, "m"), 0, ints(100_000, func(i int64) int64 { return i }))
	for from := int64(1000); from < 80_000_000; from += 777_000 {
		c := &counting{adder: adder{m}}
		e := query.Engine{Source: sourceOf(c), Now: time.Now}
		r, err := e.Query(t.Context(), fmt.Sprintf("SELECT max(m BUCKET b, 1m) BETWEEN %d AND %d", from,
			from+3_600_000), query.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if got, want := r.Series[0].Values[59], float64(from/1000+3599); c.calls != 1 || got != want {
			t.Fatalf("from %d on: %d calls, the last minute has %v, want 1 and %v", from, c.calls, got, want)
		}
	}
}

// A round has as many long spans as it would have chunks, and gives the same.
func TestLongSpansHaveLongRounds(t *testing.T) {
	m := newBucket(t)
	m.load("b", key(t, "m"), 0, ints(500_000, func(i int64) int64 { return i * 7919 % 10_007 }))
	for text, calls := range map[string]int{
		// of 32 × 10 chunks, and one for what is left
		"SELECT max(m BUCKET b, 2h) BETWEEN 1 AND 500000000":                      4,
		"SELECT max(m BUCKET b, 2h), sum(m BUCKET b, 4h) BETWEEN 1 AND 500000000": 8,
		"SELECT max(m BUCKET b, 12m) BETWEEN 1 AND 500000000":                     23, // of 32 chunks
		"SELECT max(m BUCKET b, 2h), sum(m BUCKET b, 1m) BETWEEN 1 AND 500000000": 46,
		// read slot by slot
		"SELECT avg(max(m BUCKET b, 2h), 4h), m BUCKET b BETWEEN 1 AND 500000000":     0,
		"SELECT max(m BUCKET b, 99999999999s) BETWEEN 1 AND 500000000":                1,
		"SELECT max(m BUCKET b, 2h) + max(m BUCKET b, 2h) BETWEEN 7000 AND 400000000": 3,
	} {
		c := &counting{adder: adder{m}}
		e := (query.Engine{Source: sourceOf(c), Now: time.Now}).WithRounds(720)
		on, err := e.Query(t.Context(), text, query.Options{})
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		off, err := e.Query(t.Context(), text, query.Options{NoAggregates: true})
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		for i := range on.Series {
			if !sameBits(on.Series[i].Values, off.Series[i].Values) {
				t.Errorf("%s: series %d differs from that of slots", text, i)
			}
		}
		if c.calls != calls {
			t.Errorf("%s: %d calls, want %d", text, c.calls, calls)
		}
	}
}

// Of a counter that was reset, aggregates of ever smaller parts are asked for, and slots where it
// was. The growth is that of all slots.
func TestResetsAreFoundInLongSpans(t *testing.T) {
	m := newBucket(t)
	resets := []int64{0, 77_777, 86_400, 200_000, 345_600, 345_601, 499_999}
	m.load("b", key(t, "m"), 0, ints(500_000, func(i int64) int64 {
		last := int64(0)
		for _, at := range resets {
			if at <= i {
				last = at
			}
		}
		return (i - last) * 3
	}))
	for _, text := range []string{
		"SELECT increase(m BUCKET b, 1d) BETWEEN 1 AND 500000000",
		"SELECT rate(m BUCKET b, 500000s) BETWEEN 1 AND 500000000",
		"SELECT increase(m BUCKET b, 1h) BETWEEN 70000000 AND 400123000",
		"SELECT increase(m BUCKET b, 3d) BETWEEN 7000 AND 460000000",
	} {
		c := &counting{adder: adder{m}}
		e := query.Engine{Source: sourceOf(c), Now: time.Now}
		r, err := e.Query(t.Context(), text, query.Options{})
		if err != nil {
			t.Fatal(err)
		}
		want, err := engine(adder{m}, 1).Query(t.Context(), text, query.Options{NoAggregates: true})
		if err != nil {
			t.Fatal(err)
		}
		if !sameBits(r.Series[0].Values, want.Series[0].Values) {
			t.Errorf("%s: %v, slot by slot %v", text, r.Series[0].Values, want.Series[0].Values)
		}
		if c.calls > 20 || c.read > 2*chunk.Slots*len(resets) {
			t.Errorf("%s: %d calls, %d slots", text, c.calls, c.read)
		}
	}
}
