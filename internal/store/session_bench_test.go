package store

import (
	"io"
	"log/slog"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"dalmatiner/internal/codec/point"
)

// BenchmarkSessionPoint is what a point of a known series costs on its way from
// a sender that keeps its order to cells, log and account.
func BenchmarkSessionPoint(b *testing.B) { benchmarkSession(b, func([]int) {}) }

// BenchmarkSessionShuffled is the same from a sender whose names come in another
// order each time, so that none is predicted.
func BenchmarkSessionShuffled(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 2))
	benchmarkSession(b, func(order []int) {
		r.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	})
}

// benchmarkSession sends rows of points in orders that next changes.
func benchmarkSession(b *testing.B, next func(order []int)) {
	const series = 20_000
	o := DefaultOptions(b.TempDir())
	o.FS, o.Logger, o.MinFree, o.MaxFuture = vfs.Default,
		slog.New(slog.NewTextHandler(io.Discard, nil)), 0, 1000*time.Hour
	s, err := Open(o)
	if err != nil {
		b.Fatal(err)
	}
	defer s.Crash()
	x := mustSession(b, s, "b")
	keys := make([][]byte, series)
	order := make([]int, series)
	for i := range keys {
		keys[i], order[i] = key(i), i
	}
	slot := uint64(time.Now().Unix())
	for i := range keys {
		x.Point(keys[i], slot, point.FromInt(int64(i)))
	}
	b.ResetTimer()
	for n := 0; n < b.N; {
		slot++
		b.StopTimer()
		next(order)
		b.StartTimer()
		for _, i := range order[:min(series, b.N-n)] {
			x.Point(keys[i], slot, point.FromInt(int64(i&1023)))
		}
		n += series
	}
	if _, err := x.Commit(); err != nil {
		b.Fatal(err)
	}
}
