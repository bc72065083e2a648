package query_test

import (
	"context"
	"errors"
	"testing"

	"dalmatiner/internal/dql"
	"dalmatiner/internal/query"
)

// FuzzQuery runs texts against a small source: whatever they say, the answer
// is a result of the promised shape or an error that tells the place.
func FuzzQuery(f *testing.F) {
	f.Add("SELECT avg(sum(*.x BUCKET b), 7s) - 2 / a.x BUCKET b SHIFT BY -9999999999999w LAST 5m")
	f.Add("SELECT count(y, 1m), min(y, y) AS $2.n METADATA {a: $1} ALIAS a.* BUCKET c SHIFT BY 3s AS y BETWEEN 1 AND NOW")
	f.Add("SELECT confidence(a.x BUCKET c + avg(a.x BUCKET b, 7s)) BEFORE 900s AGO FOR -1w")
	f.Add(`SELECT max(a.x BUCKET b, 9999999999999999w) AFTER "9999-12-31 23:59:59" FOR 9999999999999999w`)
	f.Fuzz(func(t *testing.T, text string) {
		m := newMemory(t)
		m.addBucket("b", 1000, 0)
		m.addBucket("c", 7000, 30)
		for _, bucket := range []string{"b", "c"} {
			m.load(bucket, key(t, "a", "x"), 900, ints(50, func(i int64) int64 { return i }))
			m.load(bucket, key(t, "a", "y"), 0, ints(50, func(i int64) int64 { return i }))
		}
		e := engine(m, 1_000_000)
		e.Limits = query.Limits{MaxPoints: 100_000, MaxSeries: 100, MaxOutput: 10_000}
		r, err := e.Query(context.Background(), text, query.Options{})
		if err != nil {
			if de := (*dql.Error)(nil); !errors.As(err, &de) && !errors.Is(err, query.ErrNoResults) {
				t.Fatalf("%q: %v", text, err)
			}
			return
		}
		for _, s := range r.Series {
			if s.Resolution <= 0 || s.Values == nil || s.Coverage < 0 || s.Coverage > 1 {
				t.Fatalf("%q: %+v", text, s)
			}
		}
	})
}
