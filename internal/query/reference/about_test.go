package reference

import (
	"fmt"
	"testing"
	"time"
)

func TestR12About(t *testing.T) {
	ten := ""
	for slot := 1000; slot < 1100; slot += 10 {
		ten += fmt.Sprintf(" @%d 1", slot)
	}
	long := "b x @1000 1 1 1 @3000 1 @3010 1 @3020 1"
	for _, c := range []struct {
		data, query string
		points      int64
		coverage    float64
		last        int64 // in s
		interval    int64
		ended       bool
	}{
		{"b x @1000 1 1 NaN 1 1", "x BUCKET b AFTER 1000000 FOR 5s", 5, 1, 1004, 1000, false},
		{"b x @1000 1 1 _ 1 1", "x BUCKET b AFTER 1000000 FOR 5s", 4, 0.8, 1004, 1000, false},
		{"b x" + ten, "x BUCKET b AFTER 1000000 FOR 100s", 10, 1, 1090, 10_000, false},
		{"b x" + ten, "x BUCKET b AFTER 1000000 FOR 200s", 10, 0.5, 1090, 10_000, true},
		{"b x" + ten, "x BUCKET b AFTER 1000000 FOR 115s", 10, 10. / 11, 1090, 10_000, false},
		{"b x" + ten, "x BUCKET b AFTER 1000000 FOR 151s", 10, 10. / 15, 1090, 10_000, true},
		// More than promised: 11 of ⌊105 ÷ 10⌋ count as 10.
		{"b x" + ten + " @1100 1", "x BUCKET b AFTER 1000000 FOR 105s", 11, 1, 1100, 10_000, false},
		// Distances 2, 3, 3, 2: the shorter of equals.
		{"b x @1000 1 _ 1 _ _ 1 _ _ 1 _ 1", "x BUCKET b AFTER 1000000 FOR 11s", 5, 1, 1010, 2000, false},
		{"b x @1000 1", "x BUCKET b AFTER 1000000 FOR 10s", 1, 0.1, 1000, 0, false},
		{"b x @1000 1", "x BUCKET b AFTER 1000000 FOR 300s", 1, 1. / 300, 1000, 0, false},
		{"b x @1000 1", "x BUCKET b AFTER 1000000 FOR 301s", 1, 1. / 301, 1000, 0, true},
		{"b x @990 1", "x BUCKET b AFTER 1000000 FOR 10s", 0, 0, 0, 0, true},
		// The sample are the slots 1581 to 3020: its distance is 10.
		{long, "x BUCKET b AFTER 1000000 FOR 2021s", 6, 6. / 202, 3020, 10_000, false},
		// One point in the sample: (4000 - 1000) ÷ 2.
		{"b x @1000 1 @2500 1 @4000 1", "x BUCKET b AFTER 1000000 FOR 3001s", 3, 1, 4000, 1_500_000,
			false},
		// Each metric once, also when it is read twice; a shift makes another one.
		{"b x @1000 1 1", "x BUCKET b + sum(x BUCKET b, x BUCKET b) AFTER 1000000 FOR 4s", 2, 0.5, 1001,
			1000, false},
		{"b x @999 1 1 1", "x BUCKET b - x BUCKET b SHIFT BY 3s AFTER 1000000 FOR 4s", 4, 0.5, 1003, 1000,
			false},
		{"b x @990 1 1", "x BUCKET b SHIFT BY 10s AFTER 1000000 FOR 4s", 2, 0.5, 1001, 1000, false},
		// Of several the interval of the one with the most points, of equal ones the shorter.
		{"b x @1000 1 _ 1\nb y @1000 1 _ _ 1 _ _ 1", "sum(x BUCKET b, y BUCKET b) AFTER 1000000 FOR 9s",
			5, 5. / 7, 1006, 3000, false},
		{"b x @1000 1 _ _ 1\nb y @1000 1 _ 1", "sum(x BUCKET b, y BUCKET b) AFTER 1000000 FOR 9s", 4,
			4. / 7, 1003, 2000, false},
		// Ended when all are.
		{"b x @1000 1 1 1\nb y @1000 1", "max(x BUCKET b, 5s) AFTER 1000000 FOR 63s", 3, 3. / 63, 1002,
			1000, true},
		{"b x @1000 1 1 1\nb y @1000 1", "sum(x BUCKET b, y BUCKET b) AFTER 1000000 FOR 20s", 4, 0.1,
			1002, 1000, false},
	} {
		s := evaluate(t, c.data, c.query)[0]
		if s.Points != c.points || s.Coverage() != c.coverage || s.HasPoint != (c.points > 0) ||
			s.LastPoint != c.last*1000 || s.Interval != c.interval || s.Ended != c.ended {
			t.Errorf("%s\n%s\npoints %d, coverage %v, last %d, interval %d, ended %v, want %+v", c.data,
				c.query,
				s.Points, s.Coverage(), s.LastPoint, s.Interval, s.Ended, c)
		}
	}
}

// A series has not ended when the range goes on into the future.
func TestR12EndedNow(t *testing.T) {
	data := fakeOf(t, "b x @1000 1 1 1 1")
	for now, want := range map[int64]bool{1063: false, 1064: true} {
		list, err := Evaluate(data, "SELECT x BUCKET b AFTER 1000000 FOR 1h", time.UnixMilli(now*1000),
			Old{})
		if err != nil || list[0].Ended != want {
			t.Errorf("now %d s: ended is %v, want %v, error %v", now, list[0].Ended, want, err)
		}
	}
}
