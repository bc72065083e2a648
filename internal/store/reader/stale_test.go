package reader_test

import (
	"slices"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"dalmatiner/internal/codec/chunk"
	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/store/drivetest"
	"dalmatiner/internal/store/storetest"
)

// staleSlots are those of the markers that TestSeriesOfStaleMarkers sends, one in each of 30
// chunks: so many that a window has rollups of them.
func staleSlots() (slots []int64) {
	for i := range int64(30) {
		slots = append(slots, epoch+i*chunk.Slots+7*i)
	}
	return slots
}

// Of a series with stale markers alone there is no point for anybody but who asks for markers, in
// memory, in flushes, in windows and their rollups. One with values before them has these.
func TestSeriesOfStaleMarkers(t *testing.T) {
	t.Parallel()
	clock := drivetest.NewClock()
	o := storetest.OptionsAt(vfs.NewMem(), clock)
	storetest.ByHand(&o)
	s := storetest.Start(t, o)
	defer func() { s.Crash() }()
	x := drivetest.Session(t, s, "b")
	for _, slot := range staleSlots() {
		clock.Set((slot + 10) * int64(time.Second))
		s.Follow(t, clock)
		x.Point(key(0), uint64(slot), point.Stale)
		x.Point(key(1), uint64(slot), point.FromInt(slot-epoch))
		x.Point(key(1), uint64(slot)+1, point.Stale)
		x.Point(key(1), uint64(slot), point.Stale) // a value is there
	}
	if _, err := x.Commit(); err != nil {
		t.Fatal(err)
	}
	points := int64(3 * len(staleSlots()))
	checkStale(t, s, "in memory")
	drivetest.Flush(t, s)
	checkStale(t, s, "flushed")
	if n := s.Stats().Segments.Points; n != points {
		t.Errorf("the segments hold %d points, want %d with the stale markers", n, points)
	}
	s.Pass(t, clock, 48*time.Hour)
	x.Point(key(2), uint64(clock.Now().Unix()), point.FromInt(1)) // which closes the windows
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
	drivetest.Flush(t, s)
	if _, err := s.Merge(t.Context()); err != nil {
		t.Fatal(err)
	}
	if s.Stats().Merges.Count == 0 {
		t.Fatal("nothing was merged")
	}
	checkStale(t, s, "merged")
	if n := s.Stats().Segments.Points; n != points+1 {
		t.Errorf("the windows hold %d points, want %d with the stale markers", n, points+1)
	}
	s.CheckSound(t)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = storetest.Start(t, o)
	checkStale(t, s, "opened again")
	info, err := s.BucketByName("b")
	if err != nil {
		t.Fatal(err)
	}
	if c := s.Account().Total(info.ID); c.ReceivedPoints() != uint64(4*len(staleSlots())+1) ||
		c.Unset != 0 {
		t.Errorf("the account: %+v", c)
	}
}

func checkStale(t *testing.T, s *storetest.Store, when string) {
	t.Helper()
	b, err := s.Bucket("b")
	if err != nil {
		t.Fatal(err)
	}
	slots := staleSlots()
	first, n := slots[0]-100, slots[len(slots)-1]+200-slots[0]
	plain, marked := [2][]uint64{make([]uint64, n), make([]uint64, n)},
		[2][]uint64{make([]uint64, n), make([]uint64, n)}
	want := [2][]uint64{make([]uint64, n), make([]uint64, n)}
	for _, slot := range slots {
		want[0][slot-first] = point.Stale
		want[1][slot-first], want[1][slot-first+1] = point.FromInt(slot-epoch), point.Stale
	}
	for i := range want {
		h := b.Series(key(i))
		if err := h.Read(t.Context(), first, plain[i]); err != nil {
			t.Fatal(err)
		}
		if err := h.WithStale().Read(t.Context(), first, marked[i]); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(marked[i], want[i]) {
			t.Fatalf("%s: the markers of series %d are not as they were sent", when, i)
		}
		if point.HideStale(want[i]); !slices.Equal(plain[i], want[i]) {
			t.Fatalf("%s: series %d has other points than its values", when, i)
		}
		for _, step := range []int64{n, 7200, chunk.Slots, chunk.Lane, 7} {
			dst := make([]chunk.Header, (n+step-1)/step)
			if _, err := h.Aggregate(t.Context(), first, step, dst); err != nil {
				t.Fatal(err)
			}
			for k, got := range dst {
				at := int64(k) * step
				want := drivetest.Aggregates(want[i][at:min(at+step, n)], first+at)
				if err := drivetest.EqualAggregates(got, want); err != nil {
					t.Fatalf("%s: series %d, step %d of %d slots: %v", when, i, k, step, err)
				}
			}
		}
	}
	has := make([]bool, 2)
	for _, past := range []int64{slots[3] + 1, slots[len(slots)-1] + chunk.Slots} {
		err := b.Have(t.Context(), [][]byte{key(0), key(1)}, slots[3]-5, past, has)
		if err != nil || has[0] || !has[1] && past > slots[4] { // of a part of a block nothing is said
			t.Fatalf("%s: series have points: %v, %v", when, has, err)
		}
	}
}
