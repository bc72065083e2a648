package query_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"dalmatiner/internal/query"
	"dalmatiner/internal/query/resultcache"
)

// TestOneStepLater asks for an hour of minutes, and for the same one minute later: 59 of 60
// steps come from the cache, and the answer is that of an engine without one.
func TestOneStepLater(t *testing.T) {
	m := newBucket(t)
	for i := range 5 {
		m.load("b", key(t, "m", fmt.Sprint(i)), 0, ints(8000, func(n int64) int64 {
			return n * int64(i+1) % 1009
		}))
	}
	h := newHistoried(m)
	e := &query.Engine{Source: sourceOf(h), Now: func() time.Time {
		return time.Unix(9000, 0)
	}, Cache: query.NewCache(1 << 20)}
	for i := range 3 {
		text := fmt.Sprintf("SELECT avg(avg(m.* BUCKET b, 1m)) AFTER %d FOR 1h", (10+i)*60_000)
		got := dump(e.Query(t.Context(), text, query.Options{}))
		if want := dump(e.Query(t.Context(), text, query.Options{NoCache: true})); got != want {
			t.Fatalf("%s:\n%s\nwant\n%s", text, got, want)
		}
		if hits := e.Cache.Counted(resultcache.HitSteps); hits != int64(i) {
			t.Errorf("%s: %d answers are made of steps, want %d", text, hits, i)
		}
	}
	r, err := e.Query(t.Context(), "EXPLAIN SELECT avg(avg(m.* BUCKET b, 1m)) AFTER 900000 FOR 1h",
		query.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := strings.Split(r.Plan.String(), "\n")[1],
		"from the cache: 57 of 60 steps"; got != want {
		t.Errorf("EXPLAIN says %q, want %q", got, want)
	}
}

// TestStepsOfAll asks queries of each kind again for later ranges: those of which steps are kept
// are answered with steps, and all as by an engine without a cache.
func TestStepsOfAll(t *testing.T) {
	m := newBucket(t)
	for i := range 5 {
		words := ints(8000, func(n int64) int64 { return n * int64(i+1) % 1009 })
		for n := range words {
			if i == 4 && n%10 != 0 { // a slow sender
				words[n] = 0
			}
		}
		m.load("b", key(t, "m", fmt.Sprint(i)), 0, words)
	}
	for _, c := range []struct {
		field string
		width int
		steps bool
	}{
		{"m.* BUCKET b", 0, true},
		{"m.* BUCKET b", 60, true},
		{"m.* BUCKET b", 10, true},
		{"avg(m.* BUCKET b, 1m)", 10, true},
		{"avg(m.* BUCKET b, 10s)", 0, true},
		{"sum(rate(m.* BUCKET b, 1m))", 0, true},
		{"max(rate(m.* BUCKET b), 1m)", 0, true},
		{"increase(m.* BUCKET b, 1m)", 10, true},
		{"derivate(avg(m.* BUCKET b, 20s))", 0, true},
		{"avg(percentile(m.* BUCKET b, 0.9, 1m))", 0, true},
		{"quantile(m.* BUCKET b, 0.5)", 0, true},
		{"fill(m.* BUCKET b, zero)", 0, true},
		{"mavg(m.* BUCKET b, 5m)", 0, true},
		{"ewma(m.* BUCKET b, 5m)", 0, false},
		{"fill(m.* BUCKET b, linear)", 0, false},
		{"topk(m.* BUCKET b, 2)", 0, false},
	} {
		h := newHistoried(m)
		h.fixed = 5970 // the end of the range is live
		e := &query.Engine{Source: sourceOf(h), Now: func() time.Time {
			return time.Unix(9000, 0)
		}, Cache: query.NewCache(1 << 22)}
		for i := range 3 {
			text := fmt.Sprintf("SELECT %s AFTER %d FOR 1h", c.field, (40+6*i)*60_000)
			opt := query.Options{Width: c.width}
			got := dump(e.Query(t.Context(), text, opt))
			opt.NoCache = true
			if want := dump(e.Query(t.Context(), text, opt)); got != want {
				t.Fatalf("%s:\n%s\nwant\n%s", text, got, want)
			}
		}
		want := int64(0)
		if c.steps {
			want = 2
		}
		if hits := e.Cache.Counted(resultcache.HitSteps); hits != want {
			t.Errorf("%s, width %d: %d answers are made of steps, want %d", c.field, c.width, hits, want)
		}
	}
}

// TestOneTextForAll: many ask the same texts of a moving range beside each other, which share one
// tree, and have the answers of an engine without a cache.
func TestOneTextForAll(t *testing.T) {
	m := newBucket(t)
	for i := range 5 {
		m.load("b", key(t, "m", fmt.Sprint(i)), 0, ints(8000, func(n int64) int64 {
			return n * int64(i+1) % 1009
		}))
	}
	var now atomic.Int64
	now.Store(6000)
	clock := func() time.Time { return time.Unix(now.Load(), 0) }
	e := &query.Engine{Source: sourceOf(newHistoried(m)), Now: clock, Cache: query.NewCache(1 << 20)}
	texts := []string{
		"SELECT avg(avg(m.* BUCKET b, 1m)) AFTER 600000 FOR 1h",
		"SELECT m.1 BUCKET b, sum(rate(m.* BUCKET b)) AS x METADATA {a: $1} LAST 10m",
		"SELECT max(m.* BUCKET b, 20s) AS $1 LAST 30m", "SELECT m.* BUCKET b LAST 5m TOP 2 BY max()",
	}
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for i := range 100 {
				text, opt := texts[i%len(texts)], query.Options{Align: true}
				if r, err := e.Query(t.Context(), text, opt); err != nil || len(r.Series) == 0 {
					t.Errorf("%s: %v", text, err)
				}
				now.Add(1)
			}
		})
	}
	all.Wait()
	for _, text := range texts {
		got := dump(e.Query(t.Context(), text, query.Options{Align: true}))
		if want := dump(e.Query(t.Context(), text,
			query.Options{Align: true, NoCache: true})); got != want {
			t.Errorf("%s:\n%s\nwant\n%s", text, got, want)
		}
	}
}

// TestNamesOfOthers: a new series drops the results whose patterns take it, and no others.
func TestNamesOfOthers(t *testing.T) {
	m := newBucket(t)
	words := ints(100, func(n int64) int64 { return n })
	for _, k := range [][]byte{key(t, "web", "1", "load"), key(t, "web", "2", "load"),
		key(t, "db", "load")} {
		m.load("b", k, 0, words)
	}
	h := newHistoried(m)
	e := &query.Engine{Source: sourceOf(h), Now: func() time.Time {
		return time.Unix(9000, 0)
	}, Cache: query.NewCache(1 << 20)}
	fields := []string{"web.*.load BUCKET b", "db.load BUCKET b", "*.load BUCKET b",
		"web.1.load BUCKET b"}
	ask := func() (found []bool) {
		for _, field := range fields {
			before := e.Cache.Counted(resultcache.HitWhole)
			text := fmt.Sprintf("SELECT %s AFTER 0 FOR 60s", field)
			got := dump(e.Query(t.Context(), text, query.Options{}))
			if want := dump(e.Query(t.Context(), text, query.Options{NoCache: true})); got != want {
				t.Fatalf("%s:\n%s\nwant\n%s", text, got, want)
			}
			found = append(found, e.Cache.Counted(resultcache.HitWhole) > before)
		}
		return found
	}
	ask()
	for _, c := range []struct {
		name []byte
		want []bool
	}{
		{key(t, "web", "3", "disk"), []bool{true, true, true, true}},
		{key(t, "web", "3", "load"), []bool{false, true, true, true}},
		{key(t, "mail", "load"), []bool{true, true, false, true}},
		{key(t, "web", "4"), []bool{false, true, true, true}}, // it is the begin of names that are taken
		{key(t, "web", "1", "load", "cpu"), []bool{true, true, true, true}},
		{key(t, "x", "load"), []bool{true, true, false, true}},
	} {
		if h.write("b", string(c.name), 500, words[:1]); !slices.Equal(ask(), c.want) {
			t.Errorf("behind the new series %q: not as wanted, %v", c.name, c.want)
		}
	}
	h.blurred = 5 // of which only the begin is known
	for _, c := range []struct {
		name []byte
		want []bool
	}{
		{key(t, "web", "5", "disk"), []bool{false, true, true, true}},
		{key(t, "db", "load", "disk"), []bool{true, false, false, true}},
		{key(t, "tape", "disk"), []bool{true, true, false, true}},
	} {
		if h.write("b", string(c.name), 500, words[:1]); !slices.Equal(ask(), c.want) {
			t.Errorf("behind a new series that begins as %q: not as wanted, %v", c.name, c.want)
		}
	}
}

// An aligned range begins at a multiple of the longest distance of values, of whatever query.
func TestAlignedRanges(t *testing.T) {
	aligned := 0
	check := func(rt *rapid.T) {
		g := generator{t: rt}
		source := g.source(t)
		for _, bucket := range []string{"b", "c"} { // every pattern finds something
			source.load(bucket, key(t, "m", "1"), 0, ints(10, func(i int64) int64 { return i }))
		}
		opt := query.Options{Align: true}
		fields := g.expr(2)
		if rapid.Bool().Draw(rt, "columns") { // of one length
			opt.Width = rapid.IntRange(1, 50).Draw(rt, "width")
		} else {
			fields += ", " + g.expr(2)
		}
		e := engine(source, rapid.Int64Range(1_000_000, 3_000_000).Draw(rt, "now"))
		text := fmt.Sprintf("SELECT %s LAST %dms", fields, rapid.IntRange(1, 900_000).Draw(rt, "span"))
		r, err := e.Query(t.Context(), text, opt)
		// A field without series counts as well, and so do those that topk leaves out.
		if err != nil || len(r.Unmatched) > 0 || strings.Contains(text, "topk") ||
			strings.Contains(text, "bottomk") {
			return
		}
		opt.Align = false
		plain, err := e.Query(t.Context(), text, opt)
		if err != nil || plain.Start == r.Start {
			return
		}
		aligned++
		longest := int64(1)
		for _, s := range r.Series {
			longest = max(longest, s.Resolution)
		}
		for _, s := range r.Series {
			if r.Start%longest != 0 || r.Start > plain.Start || r.Start <= plain.Start-2*900_000 {
				rt.Fatalf("%s begins at %d, with %d ms between values; without alignment it is %d", text,
					r.Start, s.Resolution, plain.Start)
			}
		}
	}
	for range 10 {
		rapid.Check(t, check)
	}
	if aligned < 10 {
		t.Errorf("%d ranges were moved", aligned)
	}
}

// The ends of aligned ranges, written out.
func TestEndsOfAlignedRanges(t *testing.T) {
	m := newBucket(t)
	m.load("b", key(t, "m"), 0, ints(3000, func(i int64) int64 { return i }))
	e := engine(m, 1_000_500)
	for _, c := range []struct {
		text       string
		width      int
		start, end int64
	}{
		{"m BUCKET b LAST 1m", 0, 940_000, 1_001_000},
		{"sum(m BUCKET b, 1m) LAST 10m", 0, 360_000, 1_020_000},
		{"sum(m BUCKET b, 1m), sum(m BUCKET b, 90s) LAST 10m", 0, 360_000, 1_020_000},
		{"sum(m BUCKET b, 4m), sum(m BUCKET b, 3m) LAST 10m", 0, 240_000, 1_200_000}, // not 12 minutes
		// shorter than a step
		{"sum(m BUCKET b, 1m) LAST 30s", 0, 970_500, 1_000_500},
		{"m BUCKET b LAST 600s", 100, 399_000, 1_001_000},
		{"avg(max(m BUCKET b, 20s) * 2, 1m) AFTER 125000 FOR 2m", 0, 120_000, 245_000},
	} {
		r, err := e.Query(t.Context(), "SELECT "+c.text, query.Options{Align: true, Width: c.width})
		if err != nil {
			t.Fatal(err)
		}
		s := r.Series[0]
		if end := r.Start + int64(len(s.Values))*s.Resolution; r.Start != c.start || end != c.end &&
			end-c.end >= s.Resolution {
			t.Errorf("%s: from %d to %d, want %d to %d", c.text, r.Start, end, c.start, c.end)
		}
	}
}
