package reader_test

import (
	"math/rand/v2"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/store/drivetest"
	"dalmatiner/internal/store/storetest"
)

// No point lies outside of the extent, whatever is in memory, in flushes and in
// windows, and an unknown metric has none.
func TestExtentHoldsEveryPoint(t *testing.T) {
	t.Parallel()
	for seed := range uint64(12) {
		r := rand.New(rand.NewPCG(seed, 5))
		clock := drivetest.NewClock()
		o := storetest.OptionsAt(vfs.NewMem(), clock)
		storetest.ByHand(&o)
		s := storetest.Start(t, o)
		x := drivetest.Session(t, s, "rows")
		info, err := s.BucketByName("rows")
		if err != nil {
			t.Fatal(err)
		}
		set := map[[2]int64]bool{}
		for range 60 {
			w := drivetest.RandCall(r, clock.Now().Unix()-int64(r.IntN(3)*100_000))
			w.Send(x)
			for i, word := range w.Words {
				if word != point.Unset {
					set[[2]int64{int64(w.Series), w.Slot + int64(i)}] = true
				}
			}
			if r.IntN(20) == 0 {
				if _, err := s.Flush(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
		}
		if _, err := x.Commit(); err != nil {
			t.Fatal(err)
		}
		now := clock.Now().Unix()
		for range 100 {
			series := int64(r.IntN(drivetest.CallSeries))
			from, n := now-int64(r.IntN(250_000)), 1+int64(r.IntN(300_000))
			first, past, err := s.Extent(t.Context(), info, key(int(series)), from, n)
			if err != nil || first < from || past > from+n || first > past {
				t.Fatalf("seed %d: [%d,%d) of [%d,%d): %v", seed, first, past, from, from+n, err)
			}
			for p := range set {
				if p[0] == series && p[1] >= from && p[1] < from+n && (p[1] < first || p[1] >= past) {
					t.Fatalf("seed %d: series %d has slot %d, outside of [%d,%d) of [%d,%d)", seed, series, p[1],
						first, past, from, from+n)
				}
			}
		}
		const most = 1 << 32
		if first, past, err := s.Extent(t.Context(), info, key(99), 0, most); first != past ||
			err != nil {
			t.Errorf("an unknown metric: [%d,%d) %v", first, past, err)
		}
		// What may hold points is narrow beside what was asked for.
		if first, past, err := s.Extent(t.Context(), info, key(0), 0, most); err != nil ||
			past-first > 400_000 {
			t.Errorf("seed %d: all time: [%d,%d) %v", seed, first, past, err)
		}
		if first, past, err := s.Extent(t.Context(), info, key(0), 10, 1000); first != past ||
			err != nil {
			t.Errorf("seed %d: long ago: [%d,%d) %v", seed, first, past, err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
