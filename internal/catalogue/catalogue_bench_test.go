package catalogue

import (
	"log/slog"
	"testing"

	"dalmatiner/internal/segment"

	"github.com/cockroachdb/pebble/v2/vfs"
)

const million = 1_000_000

// BenchmarkPutFlush makes a million new identities durable.
func BenchmarkPutFlush(b *testing.B) {
	series := testSeries(million)
	for b.Loop() {
		c, err := Open(vfs.Default, b.TempDir(), slog.New(slog.DiscardHandler))
		if err != nil {
			b.Fatal(err)
		}
		if err := c.Put(series); err != nil {
			b.Fatal(err)
		}
		if err := c.Flush(); err != nil {
			b.Fatal(err)
		}
		closed(b, c)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/million, "ns/series")
}

// BenchmarkOpenLoad opens a catalogue of a million identities and reads it.
func BenchmarkOpenLoad(b *testing.B) {
	dir := b.TempDir()
	c, err := Open(vfs.Default, dir, slog.New(slog.DiscardHandler))
	if err != nil {
		b.Fatal(err)
	}
	if err := c.Put(testSeries(million)); err != nil {
		b.Fatal(err)
	}
	if err := c.Flush(); err != nil {
		b.Fatal(err)
	}
	closed(b, c)
	for b.Loop() {
		c, err := Open(vfs.Default, dir, slog.New(slog.DiscardHandler))
		if err != nil {
			b.Fatal(err)
		}
		n := 0
		if err := c.Load(func(segment.Series) error { n++; return nil }); err != nil || n != million {
			b.Fatalf("%d series: %v", n, err)
		}
		closed(b, c)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/million, "ns/series")
}
