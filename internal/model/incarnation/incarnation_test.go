package incarnation

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"dalmatiner/internal/model/metric"
)

// Clocks grow, whatever the wall clock does.
func TestClocksOnlyGrow(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var last uint64
		for range rapid.IntRange(1, 50).Draw(rt, "deletions") {
			now := time.Unix(0, rapid.Int64().Draw(rt, "now"))
			next := Next(last, now)
			if next <= last {
				rt.Fatalf("%d comes behind %d at %v", next, last, now)
			}
			if ns := now.UnixNano(); ns > 0 && next < uint64(ns) {
				rt.Fatalf("%d is before the wall clock %d", next, ns)
			}
			last = next
		}
	})
}

// A deletion is remembered for 30 days, and for at most an hour more.
func TestExpiredIsBehindTheTTL(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		now := time.Unix(rapid.Int64Range(0, 1<<33).Draw(rt, "now"),
			rapid.Int64Range(0, 1e9-1).Draw(rt, "ns"))
		at := int64(ExpiredUpTo(now))
		late := now.Add(-TTL).UnixNano()
		if at > max(late, 0) || late-at >= int64(time.Hour) {
			rt.Fatalf("at %v deletions up to %v are forgotten", now, time.Unix(0, at))
		}
	})
}

// A set is a map whose values grow until they are forgotten.
func TestSetIsTheModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var s Set
		var model [8]uint64
		series := rapid.IntRange(0, len(model)-1)
		clock := rapid.Uint64Range(0, 9)
		id := func(n int) metric.SeriesID { return metric.SeriesID{15: byte(n)} }
		for range rapid.IntRange(0, 40).Draw(rt, "steps") {
			if rapid.IntRange(0, 3).Draw(rt, "step") > 0 {
				n, to := series.Draw(rt, "series"), clock.Draw(rt, "to")
				s.Raise(id(n), to)
				model[n] = max(model[n], to)
			} else {
				upTo, keep := clock.Draw(rt, "up to"), series.Draw(rt, "kept")
				s.Forget(upTo, func(of metric.SeriesID) bool { return of == id(keep) })
				for n := range model {
					if n != keep && model[n] <= upTo {
						model[n] = 0
					}
				}
			}
			var some int64
			for n, want := range model {
				if got := s.Get(id(n)); got != want {
					rt.Fatalf("series %d: %d, want %d", n, got, want)
				}
				if want != 0 {
					some++
				}
			}
			if s.Len() != some || s.Bytes() != some*entrySize {
				rt.Fatalf("%d entries, want %d", s.Len(), some)
			}
		}
	})
}
