package catalogue

import (
	"fmt"
	"log/slog"
	"testing"

	"dalmatiner/internal/disk/segment"
	"dalmatiner/internal/model/metric"

	"github.com/cockroachdb/pebble/v2/vfs"
)

const million = 1_000_000

// benchSeries is a million series as a first start defines them.
func benchSeries() []segment.Series {
	all, since := make([]segment.Series, million), uint64(0)
	for i := range all {
		key := fmt.Appendf(nil, "\x05cloud\x08host%04d\x03cpu\x04%04d", i/250, i%250)
		all[i] = segment.Series{Bucket: 7, Hash: segment.Hash(metric.Series(7, key)),
			Group: uint32(i / 256), Column: uint16(i % 256), Since: since, Key: key}
		since += uint64(len(key) + 20)
	}
	return all
}

// BenchmarkPutFlush makes a million new identities durable.
func BenchmarkPutFlush(b *testing.B) {
	series := benchSeries()
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
		closeChecked(b, c)
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
	if err := c.Put(benchSeries()); err != nil {
		b.Fatal(err)
	}
	if err := c.Flush(); err != nil {
		b.Fatal(err)
	}
	closeChecked(b, c)
	for b.Loop() {
		c, err := Open(vfs.Default, dir, slog.New(slog.DiscardHandler))
		if err != nil {
			b.Fatal(err)
		}
		n := 0
		if err := c.Load(func(segment.Series) error { n++; return nil }); err != nil || n != million {
			b.Fatalf("%d series: %v", n, err)
		}
		closeChecked(b, c)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/million, "ns/series")
}
