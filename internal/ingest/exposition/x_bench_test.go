package exposition

import (
	"bytes"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"dalmatiner/internal/disk/wal"
	"dalmatiner/internal/ingest/acked/ackedtest"
	"dalmatiner/internal/store"
)

const (
	benchSeries  = 50_000
	benchRequest = 1000 // lines
)

// BenchmarkWrite is the processor time of a point of known series, from the text to the log, that
// of the flushes that follow included.
func BenchmarkWrite(b *testing.B) {
	o := store.DefaultOptions(b.TempDir())
	o.WALSync = wal.Off // no request waits for a tick
	_, s := newServer(b, o)
	var bodies [][]byte
	for from := 0; from < benchSeries; from += benchRequest {
		var body bytes.Buffer
		for i := from; i < from+benchRequest; i++ {
			fmt.Fprintf(&body, "cpu_usage_%d{cpu=\"cpu%d\",host=\"web-%04d\"} %d.%d\n", i%10, i/10%16,
				i/160, i%97, i%7)
		}
		bodies = append(bodies, body.Bytes())
	}
	r := Request{Time: time.Now().UnixMilli() - 3_600_000}
	round := func() time.Duration {
		r.Time += 1000
		start := ackedtest.ProcessorTime()
		for _, r.Body = range bodies {
			if _, err := s.Write(b.Context(), "b", netip.AddrPort{}, &r); err != nil {
				b.Fatal(err)
			}
		}
		return ackedtest.ProcessorTime() - start
	}
	round()
	var took time.Duration
	for b.Loop() {
		took += round()
	}
	b.ReportMetric(float64(took.Nanoseconds())/float64(b.N)/benchSeries, "cpu-ns/point")
}

// BenchmarkParse is the time of a line until it is taken apart.
func BenchmarkParse(b *testing.B) {
	src := []byte(`cpu_usage_idle{cpu="cpu0",host="web-0001"} 18.25 1346846400000`)
	var s sample
	b.ReportAllocs()
	for b.Loop() {
		if err := s.parse(src, Text); err != nil {
			b.Fatal(err)
		}
	}
}
