package store

import (
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"dalmatiner/internal/codec/point"
)

// BenchmarkMarkAndSince is a mark of a bucket of 200,000 series, and the question what has not
// changed since an older one.
func BenchmarkMarkAndSince(b *testing.B) {
	o := testOptions(vfs.NewMem(), newTestClock())
	byHand(&o)
	s := mustOpen(b, o)
	defer s.Crash()
	x := mustSession(b, s, "b")
	for series := range 200_000 {
		x.Point(key(series), epoch, point.FromInt(1))
	}
	if err := x.Close(); err != nil {
		b.Fatal(err)
	}
	h, err := s.Bucket("b")
	if err != nil {
		b.Fatal(err)
	}
	old := h.Mark()
	for b.Loop() {
		h.Mark()
		if u := h.Since(old, 0); len(u.Names) > 0 {
			b.Fatal(u)
		}
	}
}
