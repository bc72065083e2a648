package query_test

import (
	"context"
	"fmt"
	"testing"

	"dalmatiner/internal/query"
	"dalmatiner/internal/query/dql"
)

const nwait = "SELECT max(cloud.zones.cpu.nwait.e2be6f6c-2005-4f2d-aff9-f427b9 BUCKET tachyon, " +
	"1m) LAST 1h"

// benchQuery reports the time per point that the query covers.
func benchQuery(b *testing.B, m *memory, text string) {
	e := engine(m, 366*86400*1000)
	var slots int64
	b.ReportAllocs()
	for b.Loop() {
		r, err := e.Query(context.Background(), text, query.Options{})
		if err != nil {
			b.Fatal(err)
		}
		slots = r.Stats.Slots
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(slots), "ns/point")
}

func days(b *testing.B, n int) []uint64 {
	b.Helper()
	return ints(n*86400, func(i int64) int64 { return i * 7919 % 1000 })
}

func BenchmarkMaxOfAnHour(b *testing.B) {
	m := newMemory(b)
	m.addBucket("tachyon", 1000, 0)
	m.load("tachyon", key(b, "cloud", "zones", "cpu", "nwait", "e2be6f6c-2005-4f2d-aff9-f427b9"),
		365*86400, days(b, 1))
	benchQuery(b, m, nwait)
}

func BenchmarkMaxOfADayOfSeven(b *testing.B) {
	m := newMemory(b)
	m.addBucket("tachyon", 1000, 0)
	text := "SELECT"
	for i := range 7 {
		m.load("tachyon", key(b, "cloud", fmt.Sprint(i)), 365*86400, days(b, 1))
		text += fmt.Sprintf("%s max(cloud.%d BUCKET tachyon, 1h)",
			map[bool]string{true: ",", false: ""}[i > 0], i)
	}
	benchQuery(b, m, text+" LAST 1d")
}

func BenchmarkAverageOf2000Series(b *testing.B) {
	m := newMemory(b)
	m.addBucket("dalmatinerdb", 1000, 0)
	words := days(b, 1)
	for i := range 2000 {
		m.load("dalmatinerdb", key(b, fmt.Sprint(i), "mps"), 365*86400, words)
	}
	b.Run("sum then avg", func(b *testing.B) {
		benchQuery(b, m, "SELECT avg(sum(*.mps BUCKET dalmatinerdb), 5m) AS 'metrics/s' LAST 1h")
	})
	b.Run("avg per series", func(b *testing.B) {
		benchQuery(b, m, "SELECT avg(avg(*.mps BUCKET dalmatinerdb, 1m)) LAST 1h")
	})
}

func BenchmarkMaxOfAYear(b *testing.B) {
	m := newBucket(b)
	m.load("b", key(b, "a"), 86400, days(b, 365))
	benchQuery(b, m, "SELECT max(a BUCKET b, 1d) LAST 365d")
}

// BenchmarkFunctions takes a day of seven series, or of one.
func BenchmarkFunctions(b *testing.B) {
	m := newBucket(b)
	for i := range 7 {
		m.load("b", key(b, "a", fmt.Sprint(i)), 365*86400, days(b, 1))
	}
	for _, f := range []string{
		"avg(x, 1m)", "percentile(x, 0.9, 1m)", "percentile(x, 0.9, 1h)", "stddev(x, 1m)",
		"first_above(x, 500, 1m)", "increase(x, 1m)",
		"max(derivate(x), 1m)", "max(mavg(x, 1m), 1m)", "max(ewma(x, 0.1), 1m)",
		"max(fill(x, linear), 1m)", "mean(histogram(x, 1000, 3, 1m))",
		"max(quantile(a.* BUCKET b, 0.9), 1m)", "max(topk(a.* BUCKET b, 2), 1m)",
	} {
		b.Run(f, func(b *testing.B) { benchQuery(b, m, "SELECT "+f+" ALIAS a.0 BUCKET b AS x LAST 1d") })
	}
}

func BenchmarkParse(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := dql.Parse(nwait); err != nil {
			b.Fatal(err)
		}
	}
}
