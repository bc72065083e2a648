package store

import (
	"io"
	"log/slog"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"dalmatiner/internal/point"
)

// BenchmarkSessionPoint is what a point of a known series costs on its way from
// a sender that keeps its order to cells, log and account.
func BenchmarkSessionPoint(b *testing.B) {
	const series = 20_000
	o := DefaultOptions(b.TempDir())
	o.FS, o.Logger, o.MinFree, o.MaxFuture = vfs.Default, slog.New(slog.NewTextHandler(io.Discard, nil)), 0, 1000*time.Hour
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
	slot := uint64(time.Now().Unix())
	for i := range keys {
		x.Point(keys[i], slot, point.FromInt(int64(i)))
	}
	b.ResetTimer()
	for n := 0; n < b.N; {
		slot++
		for i := 0; i < series && n < b.N; i++ {
			x.Point(keys[i], slot, point.FromInt(int64(i&1023)))
			n++
		}
	}
	if _, err := x.Commit(); err != nil {
		b.Fatal(err)
	}
}
