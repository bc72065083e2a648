package httpapi

import (
	"bufio"
	"io"
	"testing"

	"dalmatiner/internal/query"
)

// BenchmarkEncode reports the cost of a value in each form.
func BenchmarkEncode(b *testing.B) {
	whole, fraction := make([]float64, 10_000), make([]float64, 10_000)
	for i := range whole {
		whole[i], fraction[i] = float64(i*7%1000), float64(i)/3
	}
	for _, c := range []struct {
		name   string
		encode func(*bufio.Writer, *query.Result) error
		values []float64
	}{
		{"json/whole", encodeJSON, whole},
		{"json/fraction", encodeJSON, fraction},
		{"msgpack", encodeMsgpack, whole},
	} {
		b.Run(c.name, func(b *testing.B) {
			r := &query.Result{Series: []query.Series{{Name: "'x'", Resolution: 1000, Values: c.values}}}
			w := bufio.NewWriterSize(io.Discard, replyBuffer)
			b.ReportAllocs()
			for b.Loop() {
				if err := c.encode(w, r); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(c.values)), "ns/value")
		})
	}
}
