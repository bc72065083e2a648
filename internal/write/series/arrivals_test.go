package series

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"dalmatiner/internal/model/metric"
)

func (r *RecentSeries) hasID(id metric.SeriesID) bool {
	var isNew [1]bool
	r.HasAll([]metric.SeriesID{id}, isNew[:], new(Lookup))
	return isNew[0]
}

// What is new is what a list of all arrivals says.
func TestArrivalsEqualAList(t *testing.T) {
	type arrival struct {
		n    int
		hour int64
	}
	rapid.Check(t, func(t *rapid.T) {
		var a Arrivals
		id := func(n int) metric.SeriesID { return metric.Series(1, key(n)) }
		a.Add(id(1000), 99*hourNS) // before it begins
		clock := int64(100)
		highest := clock
		a.Begin(clock*hourNS+7, 1<<30)
		var came []arrival
		for i := range rapid.IntRange(0, 60).Draw(t, "arrivals") {
			clock += int64(rapid.SampledFrom([]int{0, 0, 0, 0, 1, 1, 2, 5, -1, -2}).Draw(t, "hours"))
			a.Add(id(i), clock*hourNS+int64(i)+8)
			// One that comes more than an hour behind the newest is none.
			if highest = max(highest, clock); highest-clock < 2 {
				came = append(came, arrival{i, clock})
			}
		}
		now := highest + int64(rapid.IntRange(0, 3).Draw(t, "later"))
		r := a.RecentSeries(now * hourNS)
		want := 0
		for i := range 61 {
			is := false
			for _, c := range came {
				// Kept are the hours of the newest two.
				is = is || c.n == i && c.hour >= now-1 && c.hour >= highest-1
			}
			if is {
				want++
			}
			if r.hasID(id(i)) != is {
				t.Fatalf("series %d at hour %d: new is %v, of %v", i, now, !is, came)
			}
		}
		if r.Missed || r.Empty() && want > 0 {
			t.Fatalf("%d are new: %+v", want, r)
		}
		if since := time.Unix(0, max(100*hourNS+7, (now-1)*hourNS)); !r.Since.Equal(since) {
			t.Fatalf("since %v, want %v", r.Since, since)
		}
	})
}

// Too many are not remembered, and that is said.
func TestArrivalsAreBounded(t *testing.T) {
	var a Arrivals
	const bytes = 1 << 20
	a.Begin(0, bytes)
	for i := range 100_000 {
		a.Add(metric.Series(1, key(i)), hourNS*int64(i/50_000))
	}
	if got := a.Bytes(); got > bytes || got < bytes/4 {
		t.Errorf("%d bytes, the limit is %d", got, bytes)
	}
	r := a.RecentSeries(hourNS)
	if !r.Missed || !r.hasID(metric.Series(1, key(0))) || !r.hasID(metric.Series(1, key(50_000))) ||
		r.hasID(metric.Series(1, key(99_999))) {
		t.Errorf("what came first is remembered, and that others came, too: %v", r.Missed)
	}
	if r = a.RecentSeries(3 * hourNS); r.Missed || !r.Empty() {
		t.Errorf("hours later: %+v", r)
	}
}
