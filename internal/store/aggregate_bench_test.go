package store

import (
	"context"
	"io"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"dalmatiner/internal/codec/chunk"
	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/store/reader"
)

// yearStore holds some series at a second a slot, day after day, merged.
func yearStore(b *testing.B, days int) (*Store, buckets.Info) {
	b.Helper()
	var now atomic.Int64
	o := DefaultOptions(b.TempDir())
	now.Store(epoch * int64(time.Second))
	o.Now = func() time.Time { return time.Unix(0, now.Load()) }
	o.MinFree = 0
	o.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
	s, err := Open(o)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { s.Crash() })
	info, err := s.EnsureBucket("b")
	if err != nil {
		b.Fatal(err)
	}
	x, err := s.NewSession(info)
	if err != nil {
		b.Fatal(err)
	}
	var data []byte
	from := int64(epoch - epoch%daySlots + daySlots)
	for day := range int64(days + 1) {
		start := from + day*daySlots
		now.Store((start + daySlots) * int64(time.Second))
		s.clock.Advance()
		for at := start; at < start+daySlots; at += 7200 {
			for series := range 4 {
				data = data[:0]
				for i := range int64(7200) {
					data = point.Append(data, point.FromInt((at+i)*7919%1000+int64(series)))
				}
				x.Points(key(series), uint64(at), data)
			}
		}
		if day%10 == 9 || day == int64(days) {
			_, err := s.Flush(context.Background())
			if err == nil {
				_, err = s.Merge(context.Background())
			}
			if err != nil {
				b.Fatal(err)
			}
		}
	}
	if err := x.Close(); err != nil {
		b.Fatal(err)
	}
	return s, info
}

// BenchmarkAggregate reads from merged windows in the page cache.
func BenchmarkAggregate(b *testing.B) {
	const days = 40
	s, info := yearStore(b, days)
	first := int64(epoch - epoch%daySlots + daySlots)
	for _, tc := range []struct {
		name        string
		from, step  int64
		steps       int
		unalignment int64
	}{
		{"chunk", daySlots, chunk.Slots, 1, 0},
		{"ten-minutes-by-minute", 3600, 60, 10, 0},
		{"hour-by-minute", 3600, 60, 60, 0},
		{"day-by-hour", daySlots, 3600, 24, 0},
		{"day-by-hour-unaligned", daySlots, 3600, 24, 77},
		{"40days-by-day", 0, daySlots, days, 0},
		{"40days-by-day-unaligned", 0, daySlots, days - 1, 77},
		{"40days-by-minute", 0, 60, days * 1440, 0},
	} {
		b.Run(tc.name, func(b *testing.B) {
			dst := make([]chunk.Header, tc.steps)
			var stats reader.Stats
			of := s.Series(info, key(1))
			b.ReportAllocs()
			for b.Loop() {
				var err error
				if stats, err = of.Aggregate(context.Background(), first+tc.from+tc.unalignment, tc.step,
					dst); err != nil {
					b.Fatal(err)
				}
			}
			for i := range dst {
				if dst[i].Count != int(tc.step) {
					b.Fatalf("step %d has %d slots", i, dst[i].Count)
				}
			}
			b.ReportMetric(b.Elapsed().Seconds()*1e9/float64(b.N)/float64(tc.step)/float64(tc.steps),
				"ns/slot")
			b.ReportMetric(float64(stats.Rollups), "rollups")
			b.ReportMetric(float64(stats.Headers), "headers")
			b.ReportMetric(float64(stats.Points), "decoded")
		})
	}
}
