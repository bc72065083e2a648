package store

import (
	"fmt"
	"log/slog"
	"testing"
	"time"

	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/model/metric"
)

// BenchmarkMetrics looks for the names of one sender of a hundred among 200,000, as each
// pattern of a query does.
func BenchmarkMetrics(b *testing.B) {
	o := DefaultOptions(b.TempDir())
	o.Logger, o.MinFree = slog.New(slog.DiscardHandler), 0
	s, err := Open(o)
	if err != nil {
		b.Fatal(err)
	}
	defer s.Crash()
	info, err := s.EnsureBucket("b")
	if err != nil {
		b.Fatal(err)
	}
	const senders, each = 100, 2000
	for sender := range senders {
		x, err := s.NewSession(info)
		if err != nil {
			b.Fatal(err)
		}
		for i := range each {
			x.Point(keyOf(b, fmt.Sprintf("host%02d", sender), fmt.Sprint("metric", i)),
				uint64(time.Now().Unix()), point.FromInt(1))
		}
		if err := x.Close(); err != nil {
			b.Fatal(err)
		}
	}
	h, err := s.Bucket("b")
	if err != nil {
		b.Fatal(err)
	}
	prefix := metric.AppendPart(nil, "host42")
	for b.Loop() {
		n := 0
		err := h.Metrics(b.Context(), prefix, func([]byte) bool { n++; return true })
		if err != nil || n != each {
			b.Fatal(n, err)
		}
	}
}

func keyOf(b *testing.B, parts ...string) []byte {
	key, err := metric.Key(parts...)
	if err != nil {
		b.Fatal(err)
	}
	return key
}
