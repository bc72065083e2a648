package node

import (
	"fmt"
	"testing"
	"time"

	"dalmatiner/internal/config"
	"dalmatiner/internal/metric"
	"dalmatiner/internal/monitor"
	"dalmatiner/internal/point"
	"dalmatiner/internal/query"
	"dalmatiner/internal/store"
	"dalmatiner/internal/storetest"
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
	text := fmt.Sprintf("SELECT avg(avg('series'.* BUCKET b, 1m)) BEFORE %q FOR 1h", time.Unix(end, 0).UTC().Format(time.DateTime))
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
// they end, in Unix seconds.
func loadMany(b *testing.B, dir string) int64 {
	b.Helper()
	s, err := store.Open(benchOptions(dir))
	if err != nil {
		b.Fatal(err)
	}
	info, err := s.EnsureBucket("b")
	if err != nil {
		b.Fatal(err)
	}
	x, err := s.NewSession(info)
	if err != nil {
		b.Fatal(err)
	}
	const hours = 2
	from := time.Now().Unix()/daySeconds*daySeconds - 2*daySeconds
	var data []byte
	for at := from; at < from+hours*3600; at += 600 {
		for i := range int64(manySeries) {
			data = data[:0]
			for j := range int64(600) {
				v := (at+j)*7919%1000 + i // of every second series it changes every now and then
				if i%2 == 0 {
					v = (at + j) / (30 + i%50)
				}
				data = point.Append(data, point.FromInt(v))
			}
			key, err := metric.Key("series", fmt.Sprint(i))
			if err != nil {
				b.Fatal(err)
			}
			x.Points(key, uint64(at), data)
		}
	}
	x.Point([]byte("\x05later"), uint64(from+daySeconds), point.FromInt(1)) // the window is over
	if err := x.Close(); err != nil {
		b.Fatal(err)
	}
	if _, err := s.Flush(b.Context()); err != nil {
		b.Fatal(err)
	}
	if m, err := s.Merge(b.Context()); err != nil || m.Windows == 0 {
		b.Fatal(m, err)
	}
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
	return from + hours*3600
}
