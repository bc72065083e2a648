package query_test

import (
	"slices"
	"testing"
	"time"

	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/query"
)

// Integers that doubles do not hold are exact where a metric is shown as it is, and only there.
func TestExactIntegers(t *testing.T) {
	m := newBucket(t)
	m.load("b", key(t, "m"), 0, []uint64{point.FromInt(1<<53 + 1), 0, point.FromInt(1 << 54),
		point.FromInt(-1<<54 - 1), point.FromFloat(1e300), point.FromInt(point.MaxInt), point.FromInt(7)})
	e := query.Engine{Source: sourceOf(m), Now: func() time.Time {
		return time.UnixMilli(20_000)
	}, Readers: query.NewReaders(1)}
	for _, c := range []struct {
		text string
		want []query.Exact
	}{
		{"SELECT m BUCKET b BETWEEN 0 AND 7000",
			[]query.Exact{{At: 0, Int: 1<<53 + 1}, {At: 3, Int: -1<<54 - 1}, {At: 5, Int: point.MaxInt}}},
		{"SELECT m BUCKET b BETWEEN 3000 AND 5000", []query.Exact{{At: 0, Int: -1<<54 - 1}}},
		{"SELECT m BUCKET b SHIFT BY 2s BETWEEN 2000 AND 4000", []query.Exact{{At: 0, Int: 1<<53 + 1}}},
		{"SELECT max(m BUCKET b, 1s) BETWEEN 0 AND 7000", nil},
		{"SELECT m BUCKET b + 0 BETWEEN 0 AND 7000", nil},
	} {
		got, err := e.Query(t.Context(), c.text, query.Options{})
		if err != nil {
			t.Fatalf("%s: %v", c.text, err)
		}
		if !slices.Equal(got.Series[0].Exact, c.want) {
			t.Errorf("%s: %v, want %v", c.text, got.Series[0].Exact, c.want)
		}
	}
}
