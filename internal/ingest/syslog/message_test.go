package syslog

import (
	"fmt"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"dalmatiner/internal/golden"
	"dalmatiner/internal/term"
)

// now is when the messages of the tests come.
var now = time.Date(2026, 1, 1, 0, 0, 30, 0, time.UTC)

func eventOf(t testing.TB, src []byte, c clock) (time.Time, string) {
	t.Helper()
	m := parse(src, c)
	body := m.appendTerm(nil, netip.Addr{})
	if _, err := term.Plain(body); err != nil {
		t.Fatalf("%q gives no term: %v", src, err)
	}
	return m.time, string(term.Root(body).AppendJSON(nil))
}

// TestGolden reads testdata/messages.txt: messages, each followed by its time and its event.
func TestGolden(t *testing.T) {
	text, err := os.ReadFile("testdata/messages.txt")
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	for line := range strings.Lines(string(text)) {
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
		at, event := eventOf(t, []byte(src), clock{now, time.UTC})
		fmt.Fprintf(&out, "  %s\n  %s\n", map[bool]string{true: "no time", false: at.UTC().Format(time.RFC3339Nano)}[at.IsZero()], event)
	}
	golden.Same(t, "testdata/messages.txt", out.String())
}

func TestZone(t *testing.T) {
	zone := time.FixedZone("", 2*3600)
	for src, want := range map[string]string{
		"<13>Jan  1 02:00:00 h a: x":         "2026-01-01T00:00:00Z",
		"<13>2026-01-01T02:00:00Z h a: x":    "2026-01-01T02:00:00Z",
		"<13>1 2026-01-01T02:00:00Z h a - -": "0001-01-01T00:00:00Z", // the data is missing
	} {
		if at, _ := eventOf(t, []byte(src), clock{now, zone}); at.UTC().Format(time.RFC3339) != want {
			t.Errorf("%s: %s", src, at)
		}
	}
}

// TestYear: a time without a year is the nearest one.
func TestYear(t *testing.T) {
	for _, c := range []struct{ now, text, want string }{
		{"2026-01-01", "Dec 31 23:59:59", "2025-12-31"},
		{"2025-12-31", "Jan  1 00:00:01", "2026-01-01"},
		{"2026-06-30", "Jan  1 00:00:01", "2026-01-01"},
		{"2024-03-01", "Feb 29 00:00:01", "2024-02-29"},
		{"2025-01-01", "Feb 29 00:00:01", "2024-02-29"},
	} {
		now, err := time.Parse(time.DateOnly, c.now)
		if err != nil {
			t.Fatal(err)
		}
		if at, _ := eventOf(t, []byte("<13>"+c.text+" h a: x"), clock{now, time.UTC}); at.Format(time.DateOnly) != c.want {
			t.Errorf("%s on %s is %s", c.text, c.now, at)
		}
	}
	now := time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)
	at, event := eventOf(t, []byte("<13>Feb 29 00:00:01 h a: x"), clock{now, time.UTC})
	if !at.IsZero() || !strings.Contains(event, `"message":"Feb 29 00:00:01 h a: x"`) {
		t.Errorf("a day that is in none of three years: %s, %s", at, event)
	}
}

func TestRepeatedData(t *testing.T) {
	_, event := eventOf(t, []byte(`<13>1 - - - - - [a ip="1" ip="2" x="3"][b][a ip="4"] hi`), clock{now, time.UTC})
	if want := `{"facility":1,"severity":5,"level":"notice","data":{"a":[{"ip":["1","2"],"x":"3"},{"ip":"4"}],"b":{}},"message":"hi"}`; event != want {
		t.Errorf("got %s", event)
	}
}

// FuzzMessage: every message is an event, and its last bytes are in it.
func FuzzMessage(f *testing.F) {
	text, err := os.ReadFile("testdata/messages.txt")
	if err != nil {
		f.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "<") {
			f.Add([]byte(strings.TrimSpace(line)))
		}
	}
	f.Add([]byte(`<13>1 - - - - - [` + strings.Repeat(`a x="1" `, 1000) + `]` + strings.Repeat(`[b]`, 1000)))
	f.Fuzz(func(t *testing.T, src []byte) {
		if len(src) > MaxMessage {
			return
		}
		at, _ := eventOf(t, src, clock{now, time.UTC})
		if !at.IsZero() && at.UnixNano() < 1 {
			t.Fatalf("%q is at %s", src, at)
		}
		m := parse(src, clock{now, time.UTC})
		if !strings.HasSuffix(strings.TrimRight(string(src), "\r\n\x00 "), string(m.text)) {
			t.Fatalf("%q has the text %q", src, m.text)
		}
	})
}
