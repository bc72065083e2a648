package node

import (
	"fmt"
	"testing"
	"time"

	"dalmatiner/internal/host/config"
	"dalmatiner/internal/host/monitor"
	"dalmatiner/internal/query"
	"dalmatiner/internal/store/storetest"
)

// manySeries are as many as the published figures have in a query.
const manySeries = 2048

// BenchmarkMany asks the engine for the average over many series per minute of an hour, which
// comes from a merged window in memory: what a series costs beside its points.
func BenchmarkMany(b *testing.B) {
	dir := b.TempDir()
	end := loadMany(b, dir)
	n := &node{cfg: config.Default(), rec: monitor.New(), store: storetest.Open(b, benchOptions(dir))}
	engine := n.engine()
	text := fmt.Sprintf("SELECT avg(avg('series'.* BUCKET b, 1m)) BEFORE %q FOR 1h",
		time.Unix(end, 0).UTC().Format(time.DateTime))
	b.ReportAllocs()
	for b.Loop() {
		r, err := engine.Query(b.Context(), text, query.Options{NoCache: true})
		if err != nil || r.Stats.Reads != manySeries || r.Series[0].Coverage != 1 {
			b.Fatal(r, err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/(manySeries*3600), "ns/point")
}

// loadMany writes two hours of many series into a directory, merges them, and returns where
// they end, in Unix seconds. Every second series changes every now and then.
func loadMany(b *testing.B, dir string) int64 {
	return loadSlots(b, dir, manySeries, 2*3600, 600, func(slot, series int64) int64 {
		if series%2 == 0 {
			return slot / (30 + series%50)
		}
		return slot*7919%1000 + series
	})
}
