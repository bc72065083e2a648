package statsd

import (
	"fmt"
	"testing"
	"time"

	"dalmatiner/internal/store/storetest"
)

// BenchmarkSamples is the time of a sample of 10,000 known series with tags, eight in a datagram,
// that of a flush for every million of them included.
func BenchmarkSamples(b *testing.B) {
	for _, kind := range []string{"c", "g", "ms", "s"} {
		b.Run(kind, func(b *testing.B) {
			s := newServer(b, storetest.Open(b, storetest.Options()))
			s.table.limits.series = 1 << 20
			var packets [][]byte
			for i := 0; i < 10_000; i += 8 {
				var p []byte
				for j := i; j < i+8; j++ {
					p = fmt.Appendf(p, "api.requests.time%d:%d|%s|#host:web-%d,path:/home\n", j%10, j%997,
						kind, j/10)
				}
				packets = append(packets, p)
			}
			from, at, samples := sender{s: s}, time.Now().Add(-time.Hour), 0
			for b.Loop() {
				for _, p := range packets {
					from.packet(p)
				}
				if samples += 10_000; samples%1_000_000 == 0 {
					at = at.Add(time.Second)
					if err := s.flush(at); err != nil {
						b.Fatal(err)
					}
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(samples), "ns/sample")
			b.ReportAllocs()
		})
	}
}
