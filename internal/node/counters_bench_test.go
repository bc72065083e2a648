package node

import (
	"fmt"
	"testing"
	"time"

	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/host/config"
	"dalmatiner/internal/host/monitor"
	"dalmatiner/internal/model/metric"
	"dalmatiner/internal/query"
	"dalmatiner/internal/store"
)

const (
	counterDays   = 365
	counterSeries = 5
)

// BenchmarkCounters asks for the growth of five counters in a year of seconds, which restart once a
// month, and of what is no counter: it falls in every chunk.
func BenchmarkCounters(b *testing.B) {
	s, end := openYear(b)
	n := &node{cfg: config.Default(), rec: monitor.New(), store: s}
	engine := n.engine()
	before := fmt.Sprintf(" BEFORE %q FOR ", time.Unix(end, 0).UTC().Format(time.DateTime))
	for _, c := range []struct {
		name, text string
		without    bool
	}{
		{"year-by-day", "SELECT increase('counter'.* BUCKET b, 1d)" + before + "365d", false},
		{"year-by-hour", "SELECT rate('counter'.* BUCKET b, 1h)" + before + "365d", false},
		{"month-by-minute", "SELECT rate('counter'.* BUCKET b, 1m)" + before + "30d", false},
		{"month-by-day-slotwise", "SELECT increase('counter'.* BUCKET b, 1d)" + before + "30d", true},
		{"gauge-month-by-day", "SELECT increase('gauge'.'0' BUCKET b, 1d)" + before + "30d", false},
		{"sum-of-year-by-day", "SELECT sum('counter'.* BUCKET b, 1d)" + before + "365d", false},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				r, err := engine.Query(b.Context(), c.text, query.Options{NoAggregates: c.without})
				if err != nil || r.Series[0].Coverage != 1 {
					b.Fatal(r.Series[0].Coverage, err)
				}
			}
		})
	}
}

// openYear opens a store with a year of counters, and a month of a gauge, merged day by day. It
// returns where they end, in Unix seconds.
func openYear(b *testing.B) (s *store.Store, end int64) {
	b.Helper()
	o := benchOptions(b.TempDir())
	from := int64(1_600_000_000 / daySeconds * daySeconds)
	o.Now = func() time.Time { return time.Unix(from+(counterDays+2)*daySeconds, 0) }
	s, err := store.Open(o)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := s.Close(); err != nil {
			b.Error(err)
		}
	})
	info, err := s.EnsureBucket("b")
	if err != nil {
		b.Fatal(err)
	}
	x, err := s.NewSession(info)
	if err != nil {
		b.Fatal(err)
	}
	keyOf := func(name string, i int64) []byte {
		key, err := metric.Key(name, fmt.Sprint(i))
		if err != nil {
			b.Fatal(err)
		}
		return key
	}
	const step = 3600
	var data []byte
	for at := from; at < from+(counterDays+1)*daySeconds; at += step {
		for i := range int64(counterSeries) {
			data = data[:0]
			for j := at; j < at+step; j++ {
				since := (j + i*100_003) % (30 * daySeconds)
				data = point.Append(data, point.FromInt(since*(3+i)+j*7919%(3+i)))
			}
			x.Points(keyOf("counter", i), uint64(at), data)
		}
		if at >= from+(counterDays-31)*daySeconds {
			data = data[:0]
			for j := at; j < at+step; j++ {
				data = point.Append(data, point.FromInt(j*7919%1000))
			}
			x.Points(keyOf("gauge", 0), uint64(at), data)
		}
		if (at+step)%(10*daySeconds) == 0 || at+step == from+(counterDays+1)*daySeconds {
			_, err := s.Flush(b.Context())
			if err == nil {
				_, err = s.Merge(b.Context())
			}
			if err != nil {
				b.Fatal(err)
			}
		}
	}
	if err := x.Close(); err != nil {
		b.Fatal(err)
	}
	return s, from + counterDays*daySeconds
}
