package store

import (
	"context"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"dalmatiner/internal/codec/point"
)

// BenchmarkStart is a start after a kill with a log of many series: until the store
// is in use, and until its points are in memory.
func BenchmarkStart(b *testing.B) {
	const series, rows = 1 << 18, 60
	o := DefaultOptions(b.TempDir())
	o.FS, o.MinFree, o.MaxFuture = vfs.Default, 0, 1000*time.Hour
	s, err := Open(o)
	if err != nil {
		b.Fatal(err)
	}
	x := mustSession(b, s, "b")
	keys := make([][]byte, series)
	for i := range keys {
		keys[i] = key(i)
	}
	slot := uint64(time.Now().Unix())
	for range rows {
		slot++
		for i := range keys {
			x.Point(keys[i], slot, point.FromInt(int64(i%1000)))
		}
	}
	if _, err := x.Commit(); err != nil {
		b.Fatal(err)
	}
	if err := s.disk.Log.Sync(); err != nil {
		b.Fatal(err)
	}
	s.Crash()
	for _, whole := range []bool{false, true} {
		name := "in-use"
		o.holdReplay = make(chan struct{})
		if whole {
			name, o.holdReplay = "in-memory", nil
		}
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				s, err := Open(o)
				if err != nil {
					b.Fatal(err)
				}
				if whole {
					if err := s.replay.All(context.Background()); err != nil {
						b.Fatal(err)
					}
				}
				b.StopTimer()
				s.Crash()
				b.StartTimer()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/series, "ns/series")
		})
	}
}
