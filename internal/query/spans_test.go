package query_test

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"dalmatiner/internal/chunk"
	"dalmatiner/internal/point"
	"dalmatiner/internal/query"
	"dalmatiner/internal/query/reference"
)

// spanSeries draws runs and gaps of integers, of floats, or of both with NaN.
func spanSeries(t *rapid.T, exact bool) (words []uint64, scale float64) {
	for range rapid.IntRange(0, 8).Draw(t, "runs") {
		words = append(words, make([]uint64, rapid.SampledFrom([]int{0, 1, 5, 30, 200}).Draw(t, "gap"))...)
		n := rapid.SampledFrom([]int{1, 2, 20, 100}).Draw(t, "set")
		v := rapid.Int64Range(-1_000_000, 1_000_000).Draw(t, "value")
		for i := range n {
			w := point.FromInt(v + int64(i*i%17))
			switch {
			case exact:
			case i%5 == 0 && v%7 == 0:
				w = point.FromFloat(math.NaN())
			case v%2 == 0:
				// Of magnitudes so far apart that every other order gives another sum.
				w = point.FromFloat(float64(v) / 7 * float64(int64(1)<<(i*i%50)))
			}
			if f := point.Float(w); f == f {
				scale = max(scale, math.Abs(f))
			}
			words = append(words, w)
		}
	}
	return words, scale
}

// Push-down on = off = the reference: the same values, confidences and
// coverage, integers bit by bit and floats within n × 2^-52 of what was added.
func TestAggregatesChangeNothing(t *testing.T) {
	for range 10 {
		rapid.Check(t, checkSpans(t))
	}
}

func checkSpans(t *testing.T) func(rt *rapid.T) {
	return func(rt *rapid.T) {
		exact := rapid.Bool().Draw(rt, "exact")
		m := newMemory(t)
		m.reads = nil
		m.addBucket("b", 1000, rapid.SampledFrom([]int64{0, 0, 300}).Draw(rt, "ttl"))
		scale := 0.0
		for i := range 3 {
			words, s := spanSeries(rt, exact)
			m.load("b", key(t, "m", fmt.Sprint(i)), rapid.Int64Range(0, 300).Draw(rt, "from"), words)
			scale = max(scale, s)
		}
		span := rapid.IntRange(14, 250).Draw(rt, "span")
		var fields []string
		for range rapid.IntRange(1, 4).Draw(rt, "fields") {
			fn := rapid.SampledFrom([]string{"sum", "avg", "min", "max", "count", "first", "last", "empty"}).Draw(rt, "fn")
			of := rapid.SampledFrom([]string{"m.0 BUCKET b", "m.1 BUCKET b", "m.* BUCKET b", "m.0 BUCKET b SHIFT BY 97s"}).Draw(rt, "of")
			fields = append(fields, fmt.Sprintf("%s(%s, %ds)", fn, of, span))
		}
		shared := rapid.IntRange(0, 4).Draw(rt, "slots too") == 0
		if shared {
			fields = append(fields, "m.0 BUCKET b")
		}
		from := rapid.Int64Range(1, 600_000).Draw(rt, "start")
		text := fmt.Sprintf("SELECT %s BETWEEN %d AND %d", strings.Join(fields, ", "), from, from+rapid.Int64Range(0, 1_500_000).Draw(rt, "length"))
		now := time.UnixMilli(1_000_000)
		m.now = now.UnixMilli()
		e := (query.Engine{Source: adder{m}, Now: func() time.Time { return now }}).WithRounds(rapid.Int64Range(1, 60).Draw(rt, "rounds"))
		e.Readers = query.NewReaders(rapid.IntRange(0, 3).Draw(rt, "readers"))
		opt := query.Options{Confidence: rapid.Bool().Draw(rt, "confidence")}
		on, err := e.Query(context.Background(), text, opt)
		if err != nil {
			rt.Fatalf("%s: %v", text, err)
		}
		opt.NoAggregates = true
		off, err := e.Query(context.Background(), text, opt)
		if err != nil {
			rt.Fatalf("%s: %v", text, err)
		}
		want, err := reference.Evaluate(context.Background(), m, text, now, reference.Old{})
		if err != nil {
			rt.Fatalf("%s: %v", text, err)
		}
		allowed := 0.0
		if !exact && (shared || span < 16 || from < 98_000) {
			// Of few slots, of a range that begins before 1970, and where slots are read as
			// well, floats are added up one by one.
			allowed = float64(span) * 0x1p-52 * float64(span) * scale
		}
		for i, s := range on.Series {
			if s.Coverage != off.Series[i].Coverage || !near(s.Confidence, off.Series[i].Confidence, 0) {
				rt.Fatalf("%s: series %d: coverage %v and confidences %v, want %v and %v", text, i,
					s.Coverage, s.Confidence, off.Series[i].Coverage, off.Series[i].Confidence)
			}
			if !near(s.Values, off.Series[i].Values, allowed) || !near(s.Values, want[i].Values, allowed) {
				rt.Fatalf("%s: series %d ± %v\n%v, slot by slot\n%v, reference\n%v", text, i, allowed, s.Values, off.Series[i].Values, want[i].Values)
			}
		}
	}
}

func near(a, b []float64, allowed float64) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		// Results lose their last bit.
		if math.Abs(a[i]-b[i]) > allowed+math.Abs(a[i])*allowedBit(allowed) || math.IsNaN(a[i]) != math.IsNaN(b[i]) {
			return false
		}
	}
	return true
}

func allowedBit(allowed float64) float64 {
	if allowed == 0 {
		return 0
	}
	return 0x1p-51
}

// Series are read by several goroutines; what one of them meets ends the query.
func TestAnErrorOfOneSeriesEndsTheQuery(t *testing.T) {
	m := newMemory(t)
	m.reads = nil
	m.addBucket("b", 1000, 0)
	for i := range 50 {
		m.load("b", key(t, "m", fmt.Sprint(i)), 0, ints(100, func(i int64) int64 { return i }))
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	e := (query.Engine{Source: adder{m}, Now: time.Now, Readers: query.NewReaders(3)}).WithRounds(1000)
	if _, err := e.Query(ctx, "SELECT max(m.* BUCKET b, 20s) BETWEEN 1 AND 100000", query.Options{}); err == nil || !strings.Contains(err.Error(), "given up") {
		t.Fatalf("a query whose client is gone: %v", err)
	}
}

// EXPLAIN tells what aggregates cost.
func TestExplainTellsOfAggregates(t *testing.T) {
	m := newMemory(t)
	m.reads = nil
	m.addBucket("b", 1000, 0)
	m.load("b", key(t, "m"), 0, ints(100, func(i int64) int64 { return i }))
	e := query.Engine{Source: adder{m}, Now: func() time.Time { return time.UnixMilli(1) }}
	r, err := e.Query(context.Background(), "SELECT max(m BUCKET b, 20s) BETWEEN 1 AND 100000", query.Options{Explain: true})
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
}

func (c *counting) Aggregate(ctx context.Context, b query.Bucket, key []byte, from, step int64, dst []chunk.Header) (query.Cost, error) {
	c.calls++
	return c.adder.Aggregate(ctx, b, key, from, step, dst)
}

// A range that fits into a round is asked for at once, wherever it begins.
func TestAShortRangeIsOneRound(t *testing.T) {
	m := newMemory(t)
	m.addBucket("b", 1000, 0)
	m.load("b", key(t, "m"), 0, ints(100_000, func(i int64) int64 { return i }))
	for from := int64(1000); from < 80_000_000; from += 777_000 {
		c := &counting{adder: adder{m}}
		e := query.Engine{Source: c, Now: time.Now}
		r, err := e.Query(t.Context(), fmt.Sprintf("SELECT max(m BUCKET b, 1m) BETWEEN %d AND %d", from, from+3_600_000), query.Options{})
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
	m := newMemory(t)
	m.reads = nil
	m.addBucket("b", 1000, 0)
	m.load("b", key(t, "m"), 0, ints(500_000, func(i int64) int64 { return i * 7919 % 10_007 }))
	for text, calls := range map[string]int{
		"SELECT max(m BUCKET b, 2h) BETWEEN 1 AND 500000000":                          4, // of 32 × 10 chunks, and one for what is left
		"SELECT max(m BUCKET b, 2h), sum(m BUCKET b, 4h) BETWEEN 1 AND 500000000":     8,
		"SELECT max(m BUCKET b, 12m) BETWEEN 1 AND 500000000":                         23, // of 32 chunks
		"SELECT max(m BUCKET b, 2h), sum(m BUCKET b, 1m) BETWEEN 1 AND 500000000":     46,
		"SELECT avg(max(m BUCKET b, 2h), 4h), m BUCKET b BETWEEN 1 AND 500000000":     0, // read slot by slot
		"SELECT max(m BUCKET b, 99999999999s) BETWEEN 1 AND 500000000":                1,
		"SELECT max(m BUCKET b, 2h) + max(m BUCKET b, 2h) BETWEEN 7000 AND 400000000": 3,
	} {
		c := &counting{adder: adder{m}}
		e := (query.Engine{Source: c, Now: time.Now}).WithRounds(720)
		on, err := e.Query(t.Context(), text, query.Options{})
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		off, err := e.Query(t.Context(), text, query.Options{NoAggregates: true})
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		for i := range on.Series {
			if !near(on.Series[i].Values, off.Series[i].Values, 0) {
				t.Errorf("%s: series %d differs from that of slots", text, i)
			}
		}
		if c.calls != calls {
			t.Errorf("%s: %d calls, want %d", text, c.calls, calls)
		}
	}
}
