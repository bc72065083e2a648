package opentsdb

import (
	"bytes"
	"fmt"
	"net/netip"
	"strconv"
	"testing"
	"time"

	"dalmatiner/internal/disk/wal"
	"dalmatiner/internal/ingest/acked/ackedtest"
	"dalmatiner/internal/store"
)

const (
	benchSeries  = 50_000
	benchRequest = 1000 // points
)

// benchBodies returns requests with one point of each series, of one second.
func benchBodies(second int64) (list [][]byte) {
	for from := 0; from < benchSeries; from += benchRequest {
		body := []byte{'['}
		for i := from; i < from+benchRequest; i++ {
			body = fmt.Appendf(body, `{"metric":"cpu_usage_%d","timestamp":%d,"value":%d.%d,`+
				`"tags":{"cpu":"cpu%d","host":"web-%04d"}},`, i%10, second, i%97, i%7, i/10%16, i/160)
		}
		body[len(body)-1] = ']'
		list = append(list, body)
	}
	return list
}

// BenchmarkPut is the processor time of a point of known series, from the JSON to the log, that
// of the flushes that follow included.
func BenchmarkPut(b *testing.B) {
	o := store.DefaultOptions(b.TempDir())
	o.WALSync = wal.Off // no request waits for a tick
	_, s := newServer(b, o)
	now := time.Now().Unix() - 3600
	bodies := benchBodies(now)
	old := strconv.AppendInt(nil, now, 10)
	round := func() (took time.Duration) {
		now++
		next := strconv.AppendInt(nil, now, 10)
		for i := range bodies {
			bodies[i] = bytes.ReplaceAll(bodies[i], old, next)
		}
		old = next
		start := ackedtest.ProcessorTime()
		for _, body := range bodies {
			if _, err := s.Put(b.Context(), "b", netip.AddrPort{}, body); err != nil {
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

// BenchmarkScanner is the time of a point until it is taken apart.
func BenchmarkScanner(b *testing.B) {
	src := []byte(`{"metric":"cpu_usage_idle","timestamp":1346846400,"value":18.25,` +
		`"tags":{"cpu":"cpu0","host":"web-0001"}}`)
	var d datapoint
	b.ReportAllocs()
	for b.Loop() {
		s := scanner{src: src}
		if _, err := s.datapoint(&d); err != nil {
			b.Fatal(err)
		}
		number(d.value)
		nanoseconds(d.time)
	}
}
