package columns_test

import (
	"bytes"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"pgregory.net/rapid"

	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/store/drivetest"
	"dalmatiner/internal/store/storetest"
)

// TestMetricsOfAPrefix lists names by prefixes that lie within, at and beyond what the names of
// a group have in common.
func TestMetricsOfAPrefix(t *testing.T) {
	part := rapid.SampledFrom([]string{"a", "b", "aa", "ab", "host", "hostess"})
	rapid.Check(t, func(rt *rapid.T) {
		s := storetest.Start(rt, storetest.OptionsAt(vfs.NewMem(), drivetest.NewClock()))
		defer s.Crash()
		x := drivetest.Session(rt, s, "b")
		var keys [][]byte
		for range rapid.IntRange(0, 20).Draw(rt, "series") {
			var key []byte
			for _, p := range rapid.SliceOfN(part, 1, 3).Draw(rt, "parts") {
				key = append(append(key, byte(len(p))), p...)
			}
			x.Point(key, epoch, point.FromInt(1))
			keys = append(keys, key)
		}
		if _, err := x.Commit(); err != nil {
			rt.Fatal(err)
		}
		slices.SortFunc(keys, bytes.Compare)
		keys = slices.CompactFunc(keys, bytes.Equal)
		h, err := s.Bucket("b")
		if err != nil {
			rt.Fatal(err)
		}
		for range 5 {
			var prefix []byte
			if len(keys) > 0 {
				key := rapid.SampledFrom(keys).Draw(rt, "key")
				prefix = key[:rapid.IntRange(0, len(key)).Draw(rt, "length")]
			}
			prefix = append(slices.Clip(prefix), rapid.SampledFrom([]string{"", "a", "\x01"}).Draw(rt,
				"more")...)
			var got, want [][]byte
			if err := h.Metrics(t.Context(), prefix, func(key []byte) bool {
				got = append(got, bytes.Clone(key))
				return true
			}); err != nil {
				rt.Fatal(err)
			}
			for _, key := range keys {
				if bytes.HasPrefix(key, prefix) {
					want = append(want, key)
				}
			}
			slices.SortFunc(got, bytes.Compare)
			if !slices.EqualFunc(got, want, bytes.Equal) {
				rt.Fatalf("with %q: %q, want %q", prefix, got, want)
			}
		}
	})
}
