package httpapi

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"math/rand/v2"
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
		encode func(context.Context, *bufio.Writer, *query.Result) error
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
				if err := c.encode(context.Background(), w, r); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(c.values)),
				"ns/value")
		})
	}
}

// BenchmarkPack reports the time and the share of the size that compression
// leaves, per value of a JSON answer.
func BenchmarkPack(b *testing.B) {
	source := rand.New(rand.NewPCG(1, 2))
	smooth, random := make([]float64, 10_000), make([]float64, 10_000)
	for i := range smooth {
		smooth[i], random[i] = float64(i/10), float64(source.IntN(1000))
	}
	for name, values := range map[string][]float64{"smooth": smooth, "random": random} {
		b.Run(name, func(b *testing.B) {
			var text bytes.Buffer
			w := bufio.NewWriter(&text)
			if err := encodeJSON(context.Background(), w,
				&query.Result{Series: []query.Series{{Values: values}}}); err != nil || w.Flush() != nil {
				b.Fatal(err)
			}
			all := newPackers()
			var packed bytes.Buffer
			b.SetBytes(int64(text.Len()))
			for b.Loop() {
				packed.Reset()
				z := all.take(&packed)
				if _, err := z.Write(text.Bytes()); err != nil || z.Close() != nil {
					b.Fatal(err)
				}
				all.give(z)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(values)), "ns/value")
			b.ReportMetric(float64(packed.Len())/float64(text.Len()), "left")
		})
	}
}
