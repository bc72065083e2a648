package syslog

import (
	"fmt"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"dalmatiner/internal/model/term"
	"dalmatiner/internal/testkit/golden"
)

// now is when the messages of the tests come.
var now = time.Date(2026, 1, 1, 0, 0, 30, 0, time.UTC)

// maxFuture is how far ahead times of the tests may be.
const maxFuture = 10 * time.Minute

func eventOf(t testing.TB, src []byte, c clock) (time.Time, string) {
	t.Helper()
	m := parse(src, c)
	body := m.appendTerm(nil, netip.Addr{})
	if _, err := term.Normalize(body); err != nil {
		t.Fatalf("%q gives no term: %v", src, err)
	}
	return m.time, string(term.Root(body).AppendJSON(nil))
}

// TestGolden reads files of testdata: messages, each followed by its time and its event.
func TestGolden(t *testing.T) {
	for file, now := range map[string]time.Time{
		"testdata/messages.txt": now,
		"testdata/makers.txt":   time.Date(2026, 11, 29, 1, 40, 0, 0, time.UTC),
	} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		golden.Same(t, file, eventsOf(t, string(text), clock{now, time.UTC, maxFuture}))
	}
}

// eventsOf gives each message of a golden file its time and its event.
func eventsOf(t *testing.T, text string, c clock) string {
	t.Helper()
	var out strings.Builder
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "  ") {
			continue
		}
		out.WriteString(line)
		line = strings.TrimSuffix(line, "\n")
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		src, err := strconv.Unquote(`"` + strings.ReplaceAll(line, `"`, `\"`) + `"`)
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		at, event := eventOf(t, []byte(src), c)
		when := "no time"
		if !at.IsZero() {
			when = at.UTC().Format(time.RFC3339Nano)
		}
		fmt.Fprintf(&out, "  %s\n  %s\n", when, event)
	}
	return out.String()
}

func TestZone(t *testing.T) {
	zone := time.FixedZone("", 2*3600)
	for src, want := range map[string]string{
		"<13>Jan  1 02:00:00 h a: x":         "2026-01-01T00:00:00Z",
		"<13>2025-12-31T02:00:00Z h a: x":    "2025-12-31T02:00:00Z",
		"<13>1 2026-01-01T02:00:00Z h a - -": "0001-01-01T00:00:00Z", // the data is missing
	} {
		at, _ := eventOf(t, []byte(src), clock{now, zone, maxFuture})
		if at.UTC().Format(time.RFC3339) != want {
			t.Errorf("%s: %s", src, at)
		}
	}
}

// TestYear: a time without a year is the latest that is not ahead by more than zones differ.
func TestYear(t *testing.T) {
	for _, c := range []struct{ now, text, want string }{
		{"2026-01-01T00:00:00Z", "Dec 31 23:59:59", "2025-12-31T23:59:59Z"},
		{"2025-12-31T23:55:00Z", "Jan  1 00:00:01", "2026-01-01T00:00:01Z"},
		{"2026-06-30T00:00:00Z", "Jan  1 00:00:01", "2026-01-01T00:00:01Z"},
		{"2026-11-29T00:00:00Z", "Jan  1 00:00:12", "2026-01-01T00:00:12Z"},
		{"2026-11-29T00:00:00Z", "May  3 10:00:00", "2026-05-03T10:00:00Z"},
		{"2026-11-29T00:00:00Z", "Nov 30 03:00:00", "2025-11-30T03:00:00Z"},
		{"2024-03-01T00:00:00Z", "Feb 29 00:00:01", "2024-02-29T00:00:01Z"},
		{"2025-01-01T00:00:00Z", "Feb 29 00:00:01", "2024-02-29T00:00:01Z"},
	} {
		at, _ := eventOf(t, []byte("<13>"+c.text+" h a: x"), clock{timeOf(t, c.now), time.UTC, maxFuture})
		if at.Format(time.RFC3339) != c.want {
			t.Errorf("%s at %s is %s", c.text, c.now, at)
		}
	}
	now := time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)
	at, event := eventOf(t, []byte("<13>Feb 29 00:00:01 h a: x"), clock{now, time.UTC, maxFuture})
	if !at.IsZero() || !strings.Contains(event, `"message":"Feb 29 00:00:01 h a: x"`) {
		t.Errorf("a day that is in none of three years: %s, %s", at, event)
	}
}

func timeOf(t testing.TB, text string) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// TestAhead: a message whose time is too far ahead has the time of its arrival, and keeps its own.
func TestAhead(t *testing.T) {
	for _, c := range []struct{ now, src, sent string }{
		{"2026-11-29T00:00:00Z", "<13>Nov 29 00:10:00 h a: x", ""},
		{"2026-11-29T00:00:00Z", "<13>Nov 29 00:10:01 h a: x", "2026-11-29T00:10:01Z"},
		{"2026-11-29T00:00:00Z", "<13>Nov 29 02:00:00 h a: x", "2026-11-29T02:00:00Z"},
		{"2026-11-29T00:00:00Z", "<13>Nov 30 02:00:00 h a: x", "2026-11-30T02:00:00Z"},
		{"2025-12-31T22:00:00Z", "<13>Jan  1 00:00:00 h a: x", "2026-01-01T00:00:00Z"},
		{"2026-11-29T00:00:00Z", "<13>Nov 29 2036 00:00:00 h a: x", "2036-11-29T00:00:00Z"},
		{"2026-11-29T00:00:00Z", "<13>2026-11-29T02:00:00.5+01:00 h a: x", "2026-11-29T01:00:00.5Z"},
		{"2026-11-29T00:00:00Z", "<13>1 2026-11-29T01:00:00.01Z h a - - - x", "2026-11-29T01:00:00.01Z"},
	} {
		at, event := eventOf(t, []byte(c.src), clock{timeOf(t, c.now), time.UTC, maxFuture})
		if at.IsZero() != (c.sent != "") {
			t.Errorf("%s at %s has the time %s", c.src, c.now, at)
		}
		has := strings.Contains(event, `"sent":"`+c.sent+`"`)
		if has != (c.sent != "") || strings.Contains(event, `"sent"`) != has {
			t.Errorf("%s at %s gives %s", c.src, c.now, event)
		}
	}
}

// TestNoYearLeadsAhead: a time of the last year keeps its year, and none without a year is ahead.
func TestNoYearLeadsAhead(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now := time.Unix(rapid.Int64Range(1, 4e9).Draw(t, "now"), 0).UTC()
		most := time.Duration(rapid.Int64Range(1, 366*24*3600).Draw(t, "most")) * time.Second
		c := clock{now, time.UTC, most}
		ago := time.Duration(rapid.Int64Range(-365*24*3600, 365*24*3600).Draw(t, "ago")) * time.Second
		sent := now.Add(-ago)
		if sent.Unix() < 1 {
			return
		}
		m := parse([]byte("<13>"+sent.Format(time.Stamp)+" h a: x"), c)
		if m.time.After(now.Add(min(zones, c.maxFuture))) || m.sent.After(now.Add(zones)) {
			t.Fatalf("%s at %s is %s, sent %s", sent, now, m.time, m.sent)
		}
		if ago >= -min(zones, c.maxFuture) && ago < 365*24*time.Hour-zones && !m.time.Equal(sent) {
			t.Fatalf("%s at %s is %s", sent, now, m.time)
		}
	})
}

func TestRepeatedData(t *testing.T) {
	src := []byte(`<13>1 - - - - - [a ip="1" ip="2" x="3"][b][a ip="4"] hi`)
	_, event := eventOf(t, src, clock{now, time.UTC, maxFuture})
	if want :=
		`{"facility":1,"severity":5,"level":"notice","data":{"a":[{"ip":["1","2"],"x":"3"},{"ip":"4"}],"b":{}},"message":"hi"}`; event != want {
		t.Errorf("got %s", event)
	}
}

// FuzzMessage: every message is an event, and its last bytes are in it.
func FuzzMessage(f *testing.F) {
	for _, file := range []string{"testdata/messages.txt", "testdata/makers.txt"} {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			if strings.HasPrefix(line, "<") {
				f.Add([]byte(strings.TrimSpace(line)))
			}
		}
	}
	f.Add([]byte(`<13>1 - - - - - [` + strings.Repeat(`a x="1" `, 1000) + `]` +
		strings.Repeat(`[b]`, 1000)))
	f.Fuzz(func(t *testing.T, src []byte) {
		if len(src) > MaxMessage {
			return
		}
		checkMessage(t, src)
	})
}

// TestPartsInAnyOrder: parts of messages, in any order, are an event that keeps the last bytes.
func TestPartsInAnyOrder(t *testing.T) {
	parts := rapid.SampledFrom([]string{
		"237: ", "237:", "00076 ", ": ", ":", "*", ".", " ", "1 ", "- ", "x", "R1: ", "R1 ", "3w2d: ",
		"Nov 29 01:39:22", "Nov 29 2026 01:39:22.5", "2026 Nov 29 01:39:22", "Feb 29 01:39:22",
		"2026-11-29T01:39:22Z", " 2026 ", " 2025 ", "UTC: ", "CET: ", "%LINK-3-UPDOWN: ", "app: ",
		"app[1]: ", "date=2026-11-29 ", "time=01:39:22 ", `devname="a b" `, `devname="`, `tz="+0100" `,
	})
	rapid.Check(t, func(rt *rapid.T) {
		checkMessage(t, []byte("<13>"+strings.Join(rapid.SliceOf(parts).Draw(rt, "parts"), "")))
	})
}

// checkMessage fails where a message is no event, or its last bytes are not in it.
func checkMessage(t testing.TB, src []byte) {
	t.Helper()
	at, _ := eventOf(t, src, clock{now, time.UTC, maxFuture})
	if !at.IsZero() && at.UnixNano() < 1 {
		t.Fatalf("%q is at %s", src, at)
	}
	m := parse(src, clock{now, time.UTC, maxFuture})
	if !strings.HasSuffix(strings.TrimRight(string(src), "\r\n\x00 "), string(m.text)) {
		t.Fatalf("%q has the text %q", src, m.text)
	}
}
