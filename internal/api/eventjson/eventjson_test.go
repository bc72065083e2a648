package eventjson

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"dalmatiner/internal/model/term"
	"dalmatiner/internal/query/filter"
	"dalmatiner/internal/store/events"
)

// TestTimes: times of events to the nanosecond, with every unit, offset and bound.
func TestTimes(t *testing.T) {
	for _, c := range []struct {
		field string
		unit  time.Duration
		want  int64 // 0: an error
	}{
		{`"2026-11-20T12:00:00.000000001Z"`, 1, 1795176000000000001},
		{`"2026-11-20T13:30:00+01:30"`, 1, 1795176000000000000},
		{`"2016-12-31T23:59:60Z"`, 1, 1483228800000000000},
		{`"2017-01-01T01:59:60.5+02:00"`, 1, 1483228800500000000},
		{`"2016-12-31T12:59:60Z"`, 1, 0},
		{`"2016-12-31T23:58:60Z"`, 1, 0},
		{`"2017-01-01T00:30:60Z"`, 1, 0},
		{`"2016-12-31T23:59:61Z"`, 1, 0},
		{`"2016-12-31T23:59:60"`, 1, 0},
		{`"2016-12-31T23:59:6"`, 1, 0},
		{`"1970-01-01T00:00:00.5Z"`, 1, 0},
		{`"2261-12-31T23:59:59Z"`, 1, 9214646399000000000},
		{`"2262-01-01T00:00:00Z"`, 1, 0},
		{`"yesterday"`, 1, 0},
		{`1`, 1, 1},
		{`0`, 1, 0},
		{`-1`, 1, 0},
		{`1.9`, 1, 1},
		{`1795176000.123456789`, time.Second, 1795176000123456789},
		{`1795176000.1234567899`, time.Second, 1795176000123456789},
		{`1795176000123.5`, time.Millisecond, 1795176000123500000},
		{`1795176000123456789`, time.Second, 0},
		{`1e3`, time.Second, 1000e9},
		{`1e-3`, time.Millisecond, 1000},
		{`1e-9`, time.Nanosecond, 0},
		{`1e99`, time.Second, 0},
		{`9223372036854775807`, 1, 0},
		{`9223372036854775806`, 1, 9223372036854775806},
	} {
		_, at, err := AppendLine(nil, []byte(`{"time":`+c.field+`}`), c.unit)
		if at != c.want || (err != nil) != (c.want == 0) {
			t.Errorf("%s in units of %v: %d, %v, want %d", c.field, c.unit, at, err, c.want)
		}
	}
	if _, at, err := AppendLine(nil, []byte(`{"a":1}`), 1); at != 0 || err != nil {
		t.Errorf("without a time: %d, %v", at, err)
	}
}

// TestTheUnitThatWasMeant: a number that is in 1970, and today in a coarser unit, is refused with
// both readings.
func TestTheUnitThatWasMeant(t *testing.T) {
	for _, c := range []struct {
		field, unit, want string // "": it is taken
	}{
		{"1795176000", "",
			"is 1970-01-01 00:00:01 UTC, since times are in nanoseconds: if seconds are meant, which " +
				"would be 2026-11-20 12:00:00 UTC, give ?unit=s"},
		{"1795176000.25", "", "give ?unit=s; if 1970 is meant, write \"1970-01-01T00:00:01.795176Z\""},
		{"1.795176e9", "ns", "give ?unit=s"},
		{"1795176000123", "",
			"if milliseconds are meant, which would be 2026-11-20 12:00:00 UTC, give ?unit=ms"},
		{"1795176000123456", "ns",
			"is 1970-01-21 18:39:36 UTC, since times are in nanoseconds: if microseconds are meant, which " +
				"would be 2026-11-20 12:00:00 UTC, give ?unit=us"},
		{"1795176000", "us", "since times are in microseconds: if seconds are meant"},
		{"1795176000123", "us", "if milliseconds are meant"},
		{"1795176000", "ms", "since times are in milliseconds: if seconds are meant"},
		{"999999999", "", ""}, {"1000000000", "", "?unit=s"}, {"9999999999", "", "?unit=s"},
		{"10000000000", "", ""},
		{"1795176000123456789", "", ""}, {"1795176000", "s", ""}, {"1795176000123", "ms", ""},
		{"1795176000123456", "us", ""},
	} {
		unit, err := Unit(c.unit)
		if err == nil {
			_, _, err = AppendLine(nil, []byte(`{"time":`+c.field+`}`), unit)
		}
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s in %q: %v, want %q", c.field, c.unit, err, c.want)
		}
	}
	if _, err := Unit("h"); err == nil {
		t.Error("an hour is taken as a unit")
	}
}

// TestParseTime: start and end are in milliseconds, or dates.
func TestParseTime(t *testing.T) {
	for text, want := range map[string]int64{
		"0": 0, "1795176000000": 1795176000000000000, "9223372036854": 9223372036854000000,
		"2026-11-20T12:00:00.000000001Z": 1795176000000000001, "1970-01-01T00:00:00Z": 0,
		"2016-12-31T23:59:60Z": 1483228800000000000,
		"-1":                   -1, "9223372036855": -1, "2262-06-01T00:00:00Z": -1, "x": -1,
	} {
		got, err := ParseTime(text)
		if want >= 0 && (got != want || err != nil) || want < 0 && err == nil {
			t.Errorf("%s: %d, %v, want %d", text, got, err, want)
		}
	}
}

// TestTail: pieces of about a size, what meets the filter only, and what was missed at the end.
func TestTail(t *testing.T) {
	var list []events.Event
	for i := range 10 {
		body, err := term.AppendFromJSON(nil, fmt.Appendf(nil, `{"i":%d}`, i))
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, events.Event{Time: int64(i + 1), Body: body})
	}
	want, err := filter.FromText("i >= 4")
	if err != nil {
		t.Fatal(err)
	}
	var pieces []string
	send := func(p []byte) error { pieces = append(pieces, string(p)); return nil }
	sent, err := Tail(nil, list, 3, want, 50, send)
	text := strings.Join(pieces, "")
	if !sent || err != nil || len(pieces) != 4 || strings.Count(text, "data: {\"timestamp\"") != 6 ||
		!strings.HasPrefix(text, "data: {\"timestamp\":5,\"event\":{\"i\":4}}\n\n") ||
		!strings.HasSuffix(text, "\n\nevent: missed\ndata: {\"events\":3}\n\n") {
		t.Errorf("%v, %v: %q", sent, err, pieces)
	}
	if sent, err := Tail(nil, list[:4], 0, want, 50, func([]byte) error {
		return errors.New("nothing was to be sent")
	}); sent || err != nil {
		t.Errorf("nothing: %v, %v", sent, err)
	}
	if _, err := Tail(nil, list, 0, want, 50, func([]byte) error {
		return errors.New("gone")
	}); err == nil {
		t.Error("a failed send is no error")
	}
}
