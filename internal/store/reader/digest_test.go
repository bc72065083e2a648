package reader_test

import (
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"dalmatiner/internal/codec/chunk"
	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/store/drivetest"
	"dalmatiner/internal/store/storetest"
)

// naiveDigest is the definition of a digest over the words that reads give.
func naiveDigest(t *testing.T, s *storetest.Store, info buckets.Info, key []byte, from,
	past int64) uint64 {
	t.Helper()
	return drivetest.Digest(t, info, key, 0, from, past,
		func(at int64, words, _ []uint64) error {
			return s.ReadWithStale(t.Context(), info, key, at, words, nil)
		})
}

func mustDigest(t *testing.T, s *storetest.Store, info buckets.Info, key []byte, from,
	past int64) uint64 {
	t.Helper()
	d, err := s.Series(info, key).Digest(t.Context(), from, past)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// The digest of a range does not change as its points go from the head to
// flushes, overlays and windows; that of another word does.
func TestDigestStaysAsPointsMove(t *testing.T) {
	t.Parallel()
	clock := drivetest.NewClock()
	o := storetest.OptionsAt(vfs.NewMem(), clock)
	storetest.ByHand(&o)
	s := storetest.Start(t, o)
	defer func() { s.Crash() }()
	x := drivetest.Session(t, s, "b")
	for i := range 20_000 {
		x.Point(key(0), uint64(epoch+i), point.FromInt(int64(i%1000)))
		if i%600 == 0 {
			clock.Set(int64(epoch+i) * 1e9)
			s.Follow(t, clock)
		}
	}
	info, err := s.BucketByName("b")
	if err != nil {
		t.Fatal(err)
	}
	number := int64(epoch / chunk.Slots)
	ranges := [][2]int64{{number, number + 28}, {number + 3, number + 17}, {number + 5, number + 6},
		{0, 1 << 50}, {-5, number + 1}}
	var want []uint64
	for _, r := range ranges {
		want = append(want, mustDigest(t, s, info, key(0), r[0], r[1]))
	}
	if want[0] != naiveDigest(t, s, info, key(0), number, number+28) || want[0] != want[3] ||
		want[0] == want[1] || want[2] == 0 {
		t.Fatalf("digests %x", want)
	}
	same := func(when string) {
		t.Helper()
		for i, r := range ranges {
			if got := mustDigest(t, s, info, key(0), r[0], r[1]); got != want[i] {
				t.Errorf("%s: digest %x of chunks %d, want %x", when, got, r, want[i])
			}
		}
	}
	drivetest.Flush(t, s)
	same("flushed")
	s.Pass(t, clock, 30*3600e9)
	x.Point(key(0), uint64(clock.Now().Unix()), point.FromInt(1))
	drivetest.Flush(t, s)
	ranges, want = ranges[:3], want[:3]
	if _, err := s.Merge(t.Context()); err != nil {
		t.Fatal(err)
	}
	same("merged")
	x.Point(key(0), epoch+7000, point.FromInt(7000%1000)) // the same value, late
	drivetest.Flush(t, s)
	same("rewritten with the same")
	x.Point(key(0), epoch+7000, point.FromInt(-1))
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
	if mustDigest(t, s, info, key(0), number, number+28) == want[0] {
		t.Error("another value in the head does not count")
	}
	if d := mustDigest(t, s, info, key(77), 0, number+28); d != 0 {
		t.Errorf("an unknown metric has the digest %x", d)
	}
}
