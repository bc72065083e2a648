package store

import (
	"context"
	"io"
	"log/slog"
	"math/rand/v2"
	"syscall"
	"testing"
	"time"

	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/store/flush"
)

// BenchmarkFlush is what a point costs from a sealed block to the segment when there are
// so many series that a flush has one piece of each, and when it has some.
func BenchmarkFlush(b *testing.B) {
	b.Run("a piece", func(b *testing.B) { benchmarkFlush(b, 500_000, 60) })
	b.Run("four pieces", func(b *testing.B) { benchmarkFlush(b, 125_000, 240) })
}

func benchmarkFlush(b *testing.B, series, rows int) {
	o := DefaultOptions(b.TempDir())
	o.Logger, o.MinFree, o.MaxFuture = slog.New(slog.NewTextHandler(io.Discard, nil)), 0,
		1000*time.Hour
	o.BackgroundMerge, o.FlushBytes, o.FlushInterval = false, 1<<40, 1000*time.Hour
	var took time.Duration // of processors
	o.flushStep = func(step int) {
		switch step {
		case flush.StepLogSynced: // all is sealed
			took -= processorTime(b)
			b.StartTimer()
		case flush.StepSegmentSynced:
			took += processorTime(b)
			b.StopTimer()
		}
	}
	s, err := Open(o)
	if err != nil {
		b.Fatal(err)
	}
	defer s.Crash()
	x := mustSession(b, s, "b")
	keys := make([][]byte, series)
	for i := range keys {
		keys[i] = key(i)
	}
	r := rand.New(rand.NewPCG(1, 2))
	slot := uint64(time.Now().Unix()) / 720 * 720
	send := func(rows int) {
		for range rows {
			for _, k := range keys {
				x.Point(k, slot, point.FromInt(r.Int64N(1000)))
			}
			slot++
		}
		if _, err := x.Commit(); err != nil {
			b.Fatal(err)
		}
		if _, err := s.Flush(context.Background()); err != nil {
			b.Fatal(err)
		}
	}
	send(1) // the series are named
	b.StopTimer()
	b.ResetTimer()
	took = 0
	n := 0
	for slot += 719; n < b.N; n += series * rows {
		send(rows)
	}
	b.ReportMetric(float64(took)/float64(n), "cpu-ns/op")
}

// processorTime is what the process has used of processors.
func processorTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
