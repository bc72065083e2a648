package query_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/query"
	"dalmatiner/internal/query/reference"
)

// With a millisecond a slot every millisecond of a range counts: ranges of all
// kinds give the slots that the reference gives, no more and no fewer.
func TestRangesOfMilliseconds(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		m := newMemory(t)
		m.addBucket("b", 1, 0)
		m.load("b", key(t, "m"), 0, ints(3000, func(i int64) int64 { return 1000 + i }))
		now := time.UnixMilli(rapid.Int64Range(0, 2000).Draw(rt, "now"))
		at := func(name string) string {
			n := rapid.Int64Range(0, 2500).Draw(rt, name)
			return rapid.SampledFrom([]string{"NOW", fmt.Sprint(n), fmt.Sprint(n % 3),
				fmt.Sprintf("%dms AGO", n),
				`"1970-01-01 00:00:01"`, `"1970-01-01 01:00:02 +0100"`}).Draw(rt, name+" form")
		}
		span := fmt.Sprintf("%dms", rapid.IntRange(-2, 100).Draw(rt, "span"))
		text := "SELECT m BUCKET b " +
			rapid.SampledFrom([]string{"LAST " + span, "AFTER " + at("after") + " FOR " + span,
				"BEFORE " + at("before") + " FOR " + span, "BETWEEN " + at("from") + " AND " + at("to")}).Draw(
				rt, "range")
		e := engine(m, now.UnixMilli())
		old := reference.Old{Compat: rapid.IntRange(0, 4).Draw(rt, "compat") == 0, Restart: 100_000}
		got, err := e.Query(t.Context(), text, query.Options{Compat: old.Compat, Confidence: true})
		if err != nil {
			rt.Fatalf("%s: %v", text, err)
		}
		want, err := reference.Evaluate(plain{m}, text, now, old)
		if err != nil {
			rt.Fatalf("%s: %v", text, err)
		}
		if err := (&generator{t: rt, exact: true}).compare(got, got.Series[0], want[0]); err != nil {
			rt.Fatalf("%s at %d: %v\ngot  %v\nwant %v", text, now.UnixMilli(), err, got.Series[0].Values,
				want[0].Values)
		}
	})
}

// The ends of ranges, written out.
func TestEndsOfRanges(t *testing.T) {
	m := newMemory(t)
	m.addBucket("b", 1, 0)
	m.load("b", key(t, "m"), 0, ints(3000, func(i int64) int64 { return i }))
	e := engine(m, 2000)
	for times, want := range map[string]string{
		"BEFORE 10 FOR 3ms":        "7 8 9",
		"BEFORE 10 FOR 1ms":        "9",
		"BEFORE 10 FOR 0ms":        "9",
		"BEFORE 10 FOR -5ms":       "9",
		"BEFORE 3 FOR 1s":          "1 2",
		"BEFORE 2s AGO FOR 5ms":    "",
		"BEFORE 1 FOR 5ms":         "",
		"AFTER 10 FOR 3ms":         "10 11 12",
		"AFTER 10 FOR 0ms":         "10",
		"AFTER 0 FOR 2ms":          "1 2",
		"LAST 3ms":                 "1997 1998 1999",
		"LAST 0ms":                 "1999",
		"BETWEEN 10 AND 12":        "10 11",
		"BETWEEN 12 AND 10":        "10 11",
		"BETWEEN 10 AND 10":        "",
		"BETWEEN 1995ms AGO AND 7": "5 6",
	} {
		r, err := e.Query(t.Context(), "SELECT m BUCKET b "+times, query.Options{})
		if err != nil {
			t.Errorf("%s: %v", times, err)
			continue
		}
		if got := strings.Trim(fmt.Sprint(r.Series[0].Values), "[]"); got != want {
			t.Errorf("%s: %s, want %s", times, got, want)
		}
	}
}

// The original takes every time ago for the beginning of time.
func TestAgoWithCompat(t *testing.T) {
	m := newMemory(t)
	m.addBucket("b", 1, 0)
	m.load("b", key(t, "m"), 0, ints(3000, func(i int64) int64 { return i }))
	e := engine(m, 2000)
	for ago, want := range map[string]string{"1500ms": "[500 501]", "3s": "[1 2]"} {
		for compat, want := range map[bool]string{false: want, true: "[1 2]"} {
			text := "SELECT m BUCKET b AFTER " + ago + " AGO FOR 2ms"
			r, err := e.Query(t.Context(), text, query.Options{Compat: compat})
			if err != nil {
				t.Errorf("%s: %v", text, err)
			} else if got := fmt.Sprint(r.Series[0].Values); got != want {
				t.Errorf("%s, compat %t: %s, want %s", text, compat, got, want)
			}
		}
	}
}

// The end of the year 9999 is the last time there is.
func TestTheLatestTime(t *testing.T) {
	const latest = 253402300799999
	m := newMemory(t)
	m.addBucket("b", 1, 0)
	m.load("b", key(t, "m"), latest-3, []uint64{point.FromInt(1), point.FromInt(2), point.FromInt(3),
		point.FromInt(4)})
	e := engine(m, latest+10)
	for times, want := range map[string]string{
		fmt.Sprintf("AFTER %d FOR 2ms", latest-2):            "[2 3]",
		fmt.Sprintf("BEFORE %d FOR 2ms", latest):             "[2 3]",
		fmt.Sprintf("BETWEEN %d AND NOW", latest-2):          "[2 3]",
		fmt.Sprintf("BETWEEN %d AND %d", latest-1, latest-2): "[2]",
	} {
		r, err := e.Query(t.Context(), "SELECT m BUCKET b "+times, query.Options{})
		if err != nil {
			t.Errorf("%s: %v", times, err)
		} else if got := fmt.Sprint(r.Series[0].Values); got != want {
			t.Errorf("%s: %s, want %s", times, got, want)
		}
	}
	_, err := e.Query(t.Context(), fmt.Sprintf("SELECT m BUCKET b AFTER %d FOR 3ms", latest-2),
		query.Options{})
	if err == nil || !strings.Contains(err.Error(), "year 9999") {
		t.Errorf("a range that ends behind it: %v", err)
	}
}
