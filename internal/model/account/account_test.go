package account

import (
	"reflect"
	"testing"

	"pgregory.net/rapid"
)

func drawCounts(t *rapid.T) Counts {
	n := rapid.Uint64Range(0, 1<<40)
	c := Counts{
		Accepted: n.Draw(t, "accepted"), Duplicate: n.Draw(t, "duplicate"),
		Conflicting: n.Draw(t, "conflicting"), Late: n.Draw(t, "late"), Unset: n.Draw(t, "unset"),
	}
	c.Refused[rapid.IntRange(0, NumReasons-1).Draw(t, "reason")] = n.Draw(t, "refused")
	return c
}

// I3: the rows of a bucket sum to its total while no minute has left.
func TestMinutesSumToTheTotal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := New()
		var want Counts
		for range rapid.IntRange(1, 50).Draw(t, "adds") {
			c := drawCounts(t)
			want.Add(&c)
			a.Add(7, rapid.Int64Range(-5, 20).Draw(t, "minute"), &c)
		}
		var sum Counts
		last := int64(-1 << 60)
		for _, r := range a.Minutes(7) {
			if r.Minute <= last {
				t.Fatalf("minute %d after %d", r.Minute, last)
			}
			last = r.Minute
			sum.Add(&r.Counts)
		}
		if sum != want || a.Total(7) != want {
			t.Fatalf("minutes sum to %+v, total %+v, want %+v", sum, a.Total(7), want)
		}
		if want.ReceivedPoints() != want.StoredPoints()+want.Unset+want.RefusedTotal() {
			t.Fatal("received is not the sum of its parts")
		}
	})
}

func TestOldMinutesLeaveTheTotalStays(t *testing.T) {
	a := New()
	for m := range int64(RetainedMinutes + 10) {
		a.Add(1, m, &Counts{Accepted: 1})
	}
	a.Add(1, 0, &Counts{Accepted: 1}) // the clock was set back
	if first := a.Minutes(1)[0]; first.Minute != 10 || first.Accepted != 1 {
		t.Errorf("the oldest minute is %+v, want one point in minute 10", first)
	}
	if n := len(a.Minutes(1)); n != RetainedMinutes {
		t.Errorf("%d minutes retained, want %d", n, RetainedMinutes)
	}
	if got := a.Total(1).Accepted; got != RetainedMinutes+11 {
		t.Errorf("total %d, want %d", got, RetainedMinutes+11)
	}
}

// Buckets without end keep fewer minutes each, never less than the last one, and no total
// changes. Bytes is what all of them have.
func TestMinutesOfManyBucketsAreBounded(t *testing.T) {
	a := New()
	const rows = 1000
	a.Bound(rows * rowBytes)
	check := func() {
		t.Helper()
		n := 0
		for _, l := range a.buckets {
			n += len(l.minutes)
		}
		if got := a.Bytes(); got != int64(n)*rowBytes {
			t.Fatalf("%d bytes, there are %d minutes", got, n)
		}
	}
	buckets, minute := uint64(0), int64(0)
	for buckets < 500 {
		buckets += 100
		for range 20 {
			minute++
			for b := range buckets {
				a.Add(b+1, minute, &Counts{Accepted: 1})
			}
		}
		a.Add(buckets, minute-1000, &Counts{Accepted: 1}) // the clock was set back
		if check(); a.Bytes() > rows*rowBytes {
			t.Fatalf("%d buckets have %d minutes, %d may be", buckets, a.Bytes()/rowBytes, rows)
		}
		if got := a.Minutes(1); got[len(got)-1].Minute != minute ||
			a.Total(1).Accepted != uint64(minute) {
			t.Fatalf("the first bucket has %+v, and %d points in %d minutes", got, a.Total(1).Accepted,
				minute)
		}
	}
	again := New()
	if err := again.Restore(a.Snapshot()); err != nil || again.Bytes() != a.Bytes() {
		t.Errorf("restored: %d bytes, were %d: %v", again.Bytes(), a.Bytes(), err)
	}
	for b := range buckets {
		if a.DeleteBucket(b + 1); a.Bytes() < 0 {
			t.Fatal("less than nothing")
		}
	}
	check()
	if a.Bytes() != 0 {
		t.Errorf("%d bytes without buckets", a.Bytes())
	}
	for b := range uint64(2 * rows) {
		a.Add(b+1, 1, &Counts{Accepted: 1})
		a.Add(b+1, 2, &Counts{Accepted: 1})
	}
	if check(); len(a.Minutes(2*rows)) != 1 || a.Total(2*rows).Accepted != 2 {
		t.Error("more buckets than minutes: each is to have its last one")
	}
}

func TestDeletedBucketsKeepTheirTotals(t *testing.T) {
	a := New()
	a.Add(3, 1, &Counts{Accepted: 5})
	a.Add(4, 1, &Counts{Late: 2})
	a.DeleteBucket(3)
	a.DeleteBucket(4)
	if got := a.Total(DeletedBuckets); got.Accepted != 5 || got.Late != 2 {
		t.Errorf("deleted buckets hold %+v", got)
	}
	if len(a.Totals()) != 1 {
		t.Errorf("totals: %v", a.Totals())
	}
}

func TestSnapshotRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := New()
		for range rapid.IntRange(0, 20).Draw(t, "adds") {
			c := drawCounts(t)
			a.Add(rapid.Uint64Range(1, 4).Draw(t, "bucket"), rapid.Int64Range(0, 9).Draw(t, "minute"), &c)
		}
		a.Lose("damage", 3)
		a.Recover("damage", 2)
		a.Recover("back", 1)
		a.RefuseRequest("dql")
		b := New()
		if err := b.Restore(a.Snapshot()); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(a.Totals(), b.Totals()) || !reflect.DeepEqual(a.Minutes(1), b.Minutes(1)) ||
			!reflect.DeepEqual(a.Losses(), b.Losses()) || !reflect.DeepEqual(a.Requests(), b.Requests()) {
			t.Fatal("the restored account differs")
		}
	})
}

// What was lost stays counted when it comes back: both counters only grow.
func TestRecoveredIsACounterOfItsOwn(t *testing.T) {
	a := New()
	a.Lose("a", 5)
	a.Recover("a", 5)
	a.Lose("a", 1)
	a.Recover("b", 2)
	a.Recover("c", 0)
	if got := a.Losses(); !reflect.DeepEqual(got, []Loss{{"a", 6, 5}, {"b", 0, 2}}) {
		t.Errorf("%+v", got)
	}
}

func FuzzRestore(f *testing.F) {
	a := New()
	a.Add(1, 2, &Counts{Accepted: 3, Refused: [NumReasons]uint64{DiskFull: 9}})
	a.Lose("x", 1)
	f.Add(a.Snapshot())
	f.Fuzz(func(t *testing.T, src []byte) {
		b := New()
		if b.Restore(src) != nil {
			return
		}
		c := New()
		if err := c.Restore(b.Snapshot()); err != nil || !reflect.DeepEqual(b.Totals(), c.Totals()) {
			t.Fatalf("a restored account does not survive its own snapshot: %v", err)
		}
	})
}

func BenchmarkAdd(b *testing.B) {
	a := New()
	c := Counts{Accepted: 256}
	for b.Loop() {
		a.Add(1, 100, &c)
	}
}
