package query_test

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/model/metric"
	"dalmatiner/internal/query"
	"dalmatiner/internal/query/resultcache"
)

// dump writes out all of an answer that does not depend on the clock and on what had to be
// read for it, floats bit by bit.
func dump(r *query.Result, err error) string {
	if err != nil {
		return "error: " + err.Error()
	}
	var b strings.Builder
	fmt.Fprintln(&b, r.Start, r.Stats.Reads, r.Stats.Slots, r.Stats.Set, r.Missing, r.Compat, r.Older)
	bits := func(name string, list []float64) {
		fmt.Fprintf(&b, "  %s %v", name, list != nil)
		for _, v := range list {
			if v != v {
				v = math.NaN()
			}
			fmt.Fprintf(&b, " %x", math.Float64bits(v))
		}
		b.WriteString("\n")
	}
	for _, s := range r.Series {
		fmt.Fprintln(&b, s.Name, s.Start, s.Resolution, s.Points, s.LastPoint, r.Ended(&s),
			math.Float64bits(s.Coverage), s.Metadata, s.Bucket, metric.Text(s.Metric), s.Stars, s.Interval,
			s.BucketResolution)
		bits("values", s.Values)
		fmt.Fprintln(&b, "  exact", s.Exact)
		bits("min", s.Min)
		bits("max", s.Max)
		bits("confidence", s.Confidence)
		if s.Unknown != nil {
			fmt.Fprintf(&b, "  unknown %+v\n", *s.Unknown)
		}
	}
	return b.String()
}

// cacheTrial is an engine with a cache over data that changes between its questions.
type cacheTrial struct {
	*rapid.T
	generator
	source *historied
	engine *query.Engine
	now    int64
	asked  []*trialQuery
}

// trialQuery is a query that is asked of a range and of later ones.
type trialQuery struct {
	text  func(shift int64) string
	opt   query.Options
	step  int64 // s
	shift int64 // s, of the last time
}

// TestCacheChangesNothing asks the same again and again, at the same and at later times,
// while points come on time and late, series come, go and outlive their bucket: an answer is
// always what an engine without a cache gives, bit by bit.
func TestCacheChangesNothing(t *testing.T) {
	hits := make([]int64, 4)
	for range 20 {
		rapid.Check(t, func(rt *rapid.T) {
			c := newCacheTrial(t, rt)
			for range rapid.IntRange(2, 25).Draw(rt, "steps") {
				c.step()
			}
			for i := range hits {
				hits[i] += c.engine.Cache.Counted(resultcache.Outcome(i))
			}
		})
	}
	t.Logf("whole %d, steps %d, missed %d, changed %d", hits[0], hits[1], hits[2], hits[3])
	for i, what := range []string{"whole results", "steps", "misses", "changes"} {
		if hits[i] == 0 {
			t.Errorf("no question met %s", what)
		}
	}
}

func newCacheTrial(t *testing.T, rt *rapid.T) *cacheTrial {
	c := &cacheTrial{T: rt, generator: generator{t: rt},
		now: rapid.Int64Range(1, 3_000_000).Draw(rt, "now")}
	c.source = newHistoried(c.generator.source(t))
	if rapid.Bool().Draw(rt, "all of it is past") {
		c.now += 2_000_000
	}
	c.source.memory.now = c.now
	if b := c.source.buckets["b"]; rapid.IntRange(0, 3).Draw(rt, "lifetime") == 0 {
		b.TTL = max(1, c.now/1000-rapid.Int64Range(0, 500).Draw(rt, "oldest"))
		c.source.buckets["b"] = b
	}
	for i := range rapid.IntRange(0, 3).Draw(rt, "dense") {
		key, n := key(t, "m", fmt.Sprint(i)), rapid.SampledFrom([]int{300, 1200, 2000}).Draw(rt, "slots")
		every := rapid.SampledFrom([]int64{1, 1, 7, 10}).Draw(rt, "every")
		beyond := rapid.SampledFrom([]int64{0, 0, 1 << 54}).Draw(rt, "beyond the doubles")
		words := ints(n, func(i int64) int64 { return beyond + i*i%1009 })
		odd := rapid.SampledFrom([]int{0, 0, 0, 30, 500}).Draw(rt, "NaN")
		for i := range words {
			if int64(i)%every != 0 {
				words[i] = 0
			} else if odd > 0 && i < odd {
				words[i] = point.FromFloat(math.NaN())
			}
		}
		c.source.load("b", key, rapid.SampledFrom([]int64{0, 0, 450}).Draw(rt, "begin"), words)
	}
	c.fix()
	c.engine = (&query.Engine{Source: sourceOf(c.source), Now: func() time.Time {
		return time.UnixMilli(c.now)
	},
		Cache: query.NewCache(rapid.SampledFrom([]int64{20_000, 1 << 20, 1 << 20, 1 << 20}).Draw(rt,
			"limit"))}).WithRounds(rapid.Int64Range(1, 300).Draw(rt, "rounds"))
	for range rapid.IntRange(1, 3).Draw(rt, "queries") {
		c.asked = append(c.asked, c.newQuery())
	}
	return c
}

// newQuery draws a query that can be asked of a range and of later ones.
func (c *cacheTrial) newQuery() *trialQuery {
	if rapid.Bool().Draw(c.T, "plain") {
		return c.newPlainQuery()
	}
	opt := query.Options{Compat: rapid.IntRange(0, 9).Draw(c.T, "compat") == 0,
		Confidence: rapid.Bool().Draw(c.T, "sure")}
	if rapid.IntRange(0, 5).Draw(c.T, "columns") == 0 {
		opt.Width = rapid.IntRange(1, 50).Draw(c.T, "width")
	}
	if rapid.IntRange(0, 5).Draw(c.T, "any") == 0 {
		text := c.query()
		return &trialQuery{text: func(int64) string { return text }, opt: opt}
	}
	size := rapid.SampledFrom([]int{20, 20, 40, 60, 5}).Draw(c.T, "size")
	text, limit := "SELECT "+c.steps(size), ""
	for range rapid.IntRange(0, 2).Draw(c.T, "more") {
		text += ", " + c.steps(size)
	}
	if rapid.IntRange(0, 9).Draw(c.T, "top") == 0 {
		limit = " TOP 1 BY max()"
	}
	from, span := rapid.Int64Range(0, 900).Draw(c.T, "from"),
		rapid.Int64Range(1, 900).Draw(c.T, "span")
	return &trialQuery{step: int64(size), opt: opt, text: func(shift int64) string {
		return fmt.Sprintf("%s AFTER %d FOR %ds%s", text, 1000*(from+shift), span, limit)
	}}
}

// newPlainQuery draws a query of which steps can be kept, if its reads allow it.
func (c *cacheTrial) newPlainQuery() *trialQuery {
	size := rapid.SampledFrom([]int{16, 20, 60, 5, 1}).Draw(c.T, "size")
	of := "m.* BUCKET b" + c.oneOf("", "", " SHIFT BY 7s")
	field := fmt.Sprintf("%s(%s, %ds)", c.oneOf("avg", "sum", "max", "count", "first", "last", "rate",
		"rate", "increase", "percentile"), of, size)
	switch {
	case strings.HasPrefix(field, "percentile"):
		field = fmt.Sprintf("percentile(%s, 0.9, %ds)", of, size)
	case size == 1:
		field = fmt.Sprintf(c.oneOf("%s", "%s", "rate(%s)", "derivate(%s)", "abs(%s)", "fill(%s, zero)",
			"increase(rate(%s))", "max(derivate(%s), 4s)"), of)
	case rapid.IntRange(0, 9).Draw(c.T, "twice") == 0:
		field = fmt.Sprintf("increase(%s, %ds)", field, 2*size)
		size *= 2
	}
	if rapid.Bool().Draw(c.T, "joined") {
		field = fmt.Sprintf(c.oneOf("sum(%s)", "avg(%s)", "max(%s)", "quantile(%s, 0.5)"), field)
	}
	from, span := rapid.Int64Range(0, 400).Draw(c.T, "from"),
		rapid.Int64Range(int64(2*size), 600).Draw(c.T, "span")
	opt := query.Options{Confidence: rapid.Bool().Draw(c.T, "sure"),
		NoAggregates: rapid.IntRange(0, 3).Draw(c.T, "slot by slot") == 0}
	if strings.Contains(field, "4s") {
		size = 4
	}
	step := int64(size)
	if rapid.IntRange(0, 2).Draw(c.T, "columns") == 0 {
		values := rapid.Int64Range(1, 8).Draw(c.T, "values of a column")
		columns := rapid.Int64Range(2, 20).Draw(c.T, "columns")
		step *= values
		opt.Width, span = int(columns), step*columns-rapid.SampledFrom([]int64{0, 0, 1}).Draw(c.T, "less")
	}
	return &trialQuery{step: step, opt: opt, text: func(shift int64) string {
		return fmt.Sprintf("SELECT %s AFTER %d FOR %ds", field, 1000*(from+shift), span)
	}}
}

// steps draws a field of which steps can be kept, mostly.
func (c *cacheTrial) steps(size int) string {
	if rapid.IntRange(0, 9).Draw(c.T, "expression") == 0 {
		return c.expr(2)
	}
	if rapid.IntRange(0, 5).Draw(c.T, "twice") == 0 {
		size *= 2
	}
	window := fmt.Sprintf("%s(%s, %ds)", c.oneOf("avg", "avg", "sum", "max", "min", "count", "first",
		"last", "empty"), c.oneOf("m.* BUCKET b", "m.0 BUCKET b", "m.1 BUCKET b",
		"m.* BUCKET b SHIFT BY 7s", c.selector()), size)
	switch c.oneOf("window", "sum", "avg", "list", "scalar", "confidence") {
	case "sum", "avg":
		return fmt.Sprintf("%s(%s)", c.oneOf("sum", "avg", "max"), window)
	case "list":
		return fmt.Sprintf("sum(%s, %s)", window, window)
	case "scalar":
		return "(" + window + " * 0.5)"
	case "confidence":
		return "confidence(" + window + ")"
	}
	return window
}

// fix moves the slot below which points are late.
func (c *cacheTrial) fix() {
	c.source.fixed = rapid.SampledFrom([]int64{math.MaxInt64, math.MaxInt64, 400, 1000, 1500}).Draw(
		c.T, "fixed")
}

// step does one of what may happen.
func (c *cacheTrial) step() {
	names := slices.Sorted(maps.Keys(c.source.series[1]))
	name := string(metric.AppendPart(metric.AppendPart(nil, c.oneOf("m", "m", "m", "other")),
		fmt.Sprint(rapid.IntRange(0, 6).Draw(c.T, "name"))))
	if rapid.IntRange(0, 5).Draw(c.T, "longer") == 0 {
		name = string(metric.AppendPart([]byte(name), "part"))
	}
	c.source.blurred = rapid.SampledFrom([]int{0, 0, 1, 3}).Draw(c.T, "blurred")
	if len(names) > 0 && rapid.IntRange(0, 3).Draw(c.T, "known") > 0 {
		name = rapid.SampledFrom(names).Draw(c.T, "series")
	}
	words := func(most int) []uint64 {
		list := make([]uint64, rapid.IntRange(1, most).Draw(c.T, "words"))
		for i := range list {
			list[i] = c.word()
		}
		return list
	}
	switch c.oneOf("ask", "ask", "ask", "ask", "ask", "ask", "on time", "late", "remove", "clock",
		"fix") {
	case "ask":
		c.ask()
	case "on time":
		r := c.source.series[1][name]
		c.source.write("b", name, r.from+int64(len(r.words)), words(90))
	case "late":
		c.source.write("b", name, rapid.Int64Range(0, 1800).Draw(c.T, "slot"), words(5))
	case "remove":
		c.source.remove("b", name)
	case "clock":
		c.now += rapid.Int64Range(1, 30_000).Draw(c.T, "later")
		c.source.memory.now = c.now
	case "fix":
		c.fix()
	}
}

// ask asks both engines.
func (c *cacheTrial) ask() {
	q := rapid.SampledFrom(c.asked).Draw(c.T, "which")
	switch c.oneOf("again", "later", "later", "later", "anywhere") {
	case "later":
		q.shift += q.step * rapid.Int64Range(1, 3).Draw(c.T, "steps later")
	case "anywhere":
		q.shift = rapid.Int64Range(0, 240).Draw(c.T, "shift")
	}
	text := q.text(q.shift)
	without := q.opt
	without.NoCache = true
	got, want := dump(c.engine.Query(c.T.Context(), text, q.opt)),
		dump(c.engine.Query(c.T.Context(), text, without))
	if got != want {
		c.T.Fatalf("%s at %d with %+v:\n%s\nwant\n%s", text, c.now, q.opt, got, want)
	}
}

// TestEachGrammarIsKeptApart asks one text in both readings: 10 - 1 - 2 is 7, and was 11 to the
// original.
func TestEachGrammarIsKeptApart(t *testing.T) {
	m := newBucket(t)
	m.load("b", key(t, "m"), 0, ints(100, func(n int64) int64 { return n }))
	e := &query.Engine{Source: sourceOf(newHistoried(m)), Now: func() time.Time {
		return time.Unix(9000, 0)
	}, Cache: query.NewCache(1 << 20)}
	for i := range 6 {
		text, opt := "SELECT m BUCKET b - 1 - 2 AFTER 0 FOR 1m", query.Options{Compat: i/2%2 == 1}
		got := dump(e.Query(t.Context(), text, opt))
		opt.NoCache = true
		if want := dump(e.Query(t.Context(), text, opt)); got != want {
			t.Errorf("compat %v:\n%.200s\nwant\n%.200s", opt.Compat, got, want)
		}
	}
}
