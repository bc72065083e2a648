package query_test

import (
	"context"
	"errors"
	"testing"

	"dalmatiner/internal/query"
	"dalmatiner/internal/query/dql"
)

// FuzzQuery runs texts against a small source: whatever they say, the answer
// is a result of the promised shape or an error that tells the place.
func FuzzQuery(f *testing.F) {
	f.Add("SELECT avg(sum(*.x BUCKET b), 7s) - 2 / a.x BUCKET b SHIFT BY -9999999999999w LAST 5m")
	f.Add("SELECT count(y, 1m), min(y, y) AS $2.n METADATA {a: $1} ALIAS a.* BUCKET c SHIFT BY 3s " +
		"AS y BETWEEN 1 AND NOW")
	f.Add(
		`SELECT max(avg(*.x BUCKET b, 1d), 1mo), sum(count(a.* BUCKET c, 2w)) / 3 AFTER "2026-03-28" FOR 1y6mo TZ "Europe/Zagreb" TOP 1 BY avg()`)
	f.Add("SELECT confidence(a.x BUCKET c + avg(a.x BUCKET b, 7s)) BEFORE 900s AGO FOR -1w")
	f.Add(
		`SELECT max(a.x BUCKET b, 9999999999999999w) AFTER "9999-12-31 23:59:59" FOR 9999999999999999w`)
	f.Add("SELECT topk(a.* BUCKET b, 1), bottomk(a.x BUCKET b, a.x BUCKET c, 2), quantile(a.* " +
		"BUCKET b, 0.5) LAST 9s TOP 1 BY percentile(0.9)")
	f.Add("SELECT fill(avg(a.x BUCKET b SHIFT BY 30s, 3s), linear), mavg(fill(a.y BUCKET b, null), " +
		"5s), ewma(derivate(a.x BUCKET c), 0.1) BEFORE 950000 FOR 99s BOTTOM 2 BY first_above(3)")
	f.Add("SELECT m ALIAS a.* BUCKET b AS m LAST 1m BOTTOM 2 BY first_above(m, other, 3)")
	f.Add("SELECT max(h(a.x BUCKET b)), percentile(histogram(a.x BUCKET b, 100, 3, 5s), 99.9), " +
		"stddev(histogram(a.x BUCKET b, 2, 1, 1s)) LAST 1m")
	f.Add("EXPLAIN SELECT rate(a.x BUCKET b, 7s), increase(a.x BUCKET b), last(a.x BUCKET b, 7s) / " +
		"variance(a.x BUCKET b, 7s), empty(a.* BUCKET b, 9s) LAST 1m")
	f.Add("SELECT last_below_conf(a.x BUCKET b, 0.5, 7s), count_above(a.x BUCKET b, -1, 7s), " +
		"replace_below_confidence(a.x BUCKET b, 0, 1) LAST 1m")
	f.Fuzz(func(t *testing.T, text string) {
		m := newBucket(t)
		m.addBucket("c", 7000, 30)
		for _, bucket := range []string{"b", "c"} {
			m.load(bucket, key(t, "a", "x"), 900, ints(50, func(i int64) int64 { return i }))
			m.load(bucket, key(t, "a", "y"), 0, ints(50, func(i int64) int64 { return i }))
		}
		e := engine(m, 1_000_000)
		e.Limits = query.Limits{MaxPoints: 100_000, MaxSeries: 100, MaxOutput: 10_000, MaxMemory: 4 << 20}
		for _, compat := range []bool{false, true} {
			r, err := e.Query(context.Background(), text, query.Options{Compat: compat})
			if err == nil {
				checkShape(t, text, r)
			} else if de := (*dql.Error)(nil); !errors.As(err, &de) && !errors.Is(err, query.ErrNoResults) {
				t.Fatalf("%q: %v", text, err)
			}
		}
	})
}

func checkShape(t *testing.T, text string, r *query.Result) {
	if r.Plan != nil && (len(r.Series) > 0 || r.Plan.String() == "") {
		t.Fatalf("%q: a plan with %d series", text, len(r.Series))
	}
	for _, s := range r.Series {
		if s.Resolution <= 0 || s.Values == nil || s.Coverage < 0 || s.Coverage > 1 {
			t.Fatalf("%q: %+v", text, s)
		}
	}
}
