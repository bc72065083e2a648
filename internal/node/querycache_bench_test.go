package node

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"dalmatiner/internal/host/monitor"
	"dalmatiner/internal/query"
	"dalmatiner/internal/store/storetest"
)

// BenchmarkManyCached is the average of many series by minutes of an hour: without the cache,
// the same again, and the same one minute later. Beside the time on the clock it reports the
// processor time.
func BenchmarkManyCached(b *testing.B) {
	dir := b.TempDir()
	from := loadMany(b, dir) - 7200
	s := storetest.Open(b, benchOptions(dir))
	for _, c := range []struct {
		name  string
		opt   query.Options
		later int64 // s
	}{{"without", query.Options{NoCache: true}, 0}, {"again", query.Options{}, 0},
		{"later", query.Options{}, 60}} {
		b.Run(c.name, func(b *testing.B) {
			e := (&node{rec: monitor.New(), store: s, results: query.NewCache(64 << 20)}).engine()
			ask := func(at int64) {
				text := fmt.Sprintf("SELECT avg(avg('series'.* BUCKET b, 1m)) AFTER %d FOR 1h", at*1000)
				if r, err := e.Query(b.Context(), text, c.opt); err != nil || r.Series[0].Coverage != 1 {
					b.Fatal(r, err)
				}
			}
			at := from
			ask(at)
			b.ReportAllocs()
			before := processorTime(b)
			for b.Loop() {
				if at += c.later; at > from+7200-3600 {
					b.StopTimer()
					at = from
					e.Cache.Drop()
					ask(at)
					at += c.later
					b.StartTimer()
				}
				ask(at)
			}
			b.ReportMetric(float64(processorTime(b)-before)/float64(b.N), "cpu-ns/op")
		})
	}
}

func processorTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
