package store

import (
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"dalmatiner/internal/codec/chunk"
	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/model/buckets"
)

// Points that come on time are accepted and not late, whatever the resolution.
func TestOnTimeIsNotLate(t *testing.T) {
	t.Parallel()
	for _, step := range []time.Duration{100 * time.Millisecond, time.Second, 10 * time.Second,
		time.Minute, 15 * time.Minute, 6 * time.Hour} {
		clock := newTestClock()
		s := mustOpen(t, testOptions(vfs.NewMem(), clock))
		info, err := s.CreateBucket(buckets.Info{Name: "b", Resolution: step.Milliseconds(), PPF: 1000})
		if err != nil {
			t.Fatal(err)
		}
		x, err := s.NewSession(info)
		if err != nil {
			t.Fatal(err)
		}
		const rows = 200
		for row := range rows {
			for series := range 3 { // spread over the step
				x.Point(key(series), uint64(clock.Now().UnixNano()/int64(step)), point.FromInt(int64(row)))
				if _, err := x.Commit(); err != nil {
					t.Fatal(err)
				}
				clock.Advance(step / 3)
				s.clock.Advance()
				s.upkeep.EverySecond()
			}
		}
		if err := x.Close(); err != nil {
			t.Fatal(err)
		}
		// The clock stands at thirds of a step, so a few rows begin twice.
		if c := s.Account().Total(info.ID); c.Late != 0 || c.ReceivedPoints() != 3*rows {
			t.Errorf("a point every %v: %+v", step, c)
		}
		s.Crash()
	}
}

func TestBlockHeight(t *testing.T) {
	t.Parallel()
	o := DefaultOptions("/data")
	f := func(cachePoints int, resolution time.Duration, want int) {
		t.Helper()
		o.CachePoints = cachePoints
		if got := o.blockHeight(resolution.Milliseconds()); got != want || chunk.Slots%got != 0 {
			t.Errorf("cache_points %d, a point every %v: height %d, want %d", cachePoints, resolution, got,
				want)
		}
	}
	f(60, time.Second, 60)
	f(120, time.Second, 120)
	f(600, time.Second, 720)
	f(60, 100*time.Millisecond, 720)
	f(1, time.Millisecond, 720)
	f(60, 10*time.Second, 60)
	f(60, time.Minute, 60)
	f(60, 10*time.Minute, 6)
	f(60, 24*time.Hour, 1)
}
