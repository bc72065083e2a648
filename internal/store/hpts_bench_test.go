package store

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/store/drivetest"
)

// BenchmarkTimestampedSize says what a point costs in a flushed segment with
// different kinds of timestamps. The values, integers below 1000, cost the same
// in all of them; plain is a bucket without timestamps.
func BenchmarkTimestampedSize(b *testing.B) {
	kinds := []struct {
		name      string
		timestamp func(r *rand.Rand, series int) uint64 // nanoseconds behind the slot's begin
	}{
		{"plain", nil},
		{"begin of the slot", func(*rand.Rand, int) uint64 { return 0 }},
		{"a phase per series", func(_ *rand.Rand, series int) uint64 {
			return uint64(series) * 7_654_321 % second
		}},
		{"jitter of 100 us", func(r *rand.Rand, series int) uint64 {
			return uint64(series)*1e6 + r.Uint64N(100_000)
		}},
		{"jitter of 1 ms", func(r *rand.Rand, series int) uint64 {
			return uint64(series)*1e6 + r.Uint64N(1_000_000)
		}},
		{"random in the slot", func(r *rand.Rand, _ int) uint64 { return r.Uint64N(second) }},
	}
	const series, slots = 200, 1440
	var keys [series][]byte
	for i := range keys {
		keys[i] = key(i)
	}
	for _, k := range kinds {
		b.Run(k.name, func(b *testing.B) {
			for b.Loop() {
				clock := newTestClock()
				clock.Advance(slots * time.Second)
				s := mustOpen(b, testOptions(vfs.NewMem(), clock))
				if k.timestamp != nil {
					drivetest.TimestampedBucket(b, s)
				}
				x := mustSession(b, s, "b")
				r := rand.New(rand.NewPCG(1, 2))
				start := time.Now()
				for slot := uint64(epoch); slot < epoch+slots; slot++ {
					for i, key := range keys {
						w := point.FromInt(r.Int64N(1000))
						if k.timestamp == nil {
							x.Point(key, slot, w)
						} else {
							x.TimestampedPoint(key, slot, w, slot*second+k.timestamp(r, i))
						}
					}
				}
				if err := x.Close(); err != nil {
					b.Fatal(err)
				}
				took := time.Since(start)
				f, err := s.Flush(context.Background())
				if err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(float64(f.Bytes*8)/float64(f.Points), "bits/point")
				b.ReportMetric(float64(took.Nanoseconds())/(series*slots), "ns/point")
				if err := s.Close(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
