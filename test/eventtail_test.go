package test

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
)

// TestEventTail: follow=1 gives the events that are written from then on and meet the filter, each
// once and in order, and ends when the node stops.
func TestEventTail(t *testing.T) {
	t.Parallel()
	n := startNode(t, t.TempDir())
	postEvents(t, n, `{"name":"before"}`)
	resp, err := http.Get("http://" + n.http + "/events?bucket=log&follow=1&filter=" +
		url.QueryEscape("name != debug"))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if kind := resp.Header.Get("Content-Type"); resp.StatusCode != http.StatusOK ||
		kind != "text/event-stream" {
		t.Fatalf("%s, %s", resp.Status, kind)
	}
	lines, done := make(chan string), make(chan struct{})
	defer close(done)
	go func() {
		defer close(lines)
		for in := bufio.NewScanner(resp.Body); in.Scan(); {
			if in.Text() == "" {
				continue
			}
			select {
			case lines <- in.Text():
			case <-done:
				return
			}
		}
	}()
	expect := func(want string) {
		t.Helper()
		if got := awaitLine(t, lines); got != want {
			t.Fatalf("the tail has %q, want %q", got, want)
		}
	}
	expect(": events from now on")
	for i := range 20 {
		at := shopStart*int64(1e9) + int64(i)
		postEvents(t, n, fmt.Sprintf(`{"time":%d,"name":"debug"}`, at),
			fmt.Sprintf(`{"time":%d,"name":"e%d"}`, at, i))
		expect(fmt.Sprintf(`data: {"timestamp":%d,"event":{"name":"e%d"}}`, at, i))
	}
	n.stop()
	for line := range lines {
		t.Errorf("behind the last event: %q", line)
	}
}

// awaitLine returns the next line.
func awaitLine(t *testing.T, lines <-chan string) string {
	t.Helper()
	select {
	case line, ok := <-lines:
		if !ok {
			t.Fatal("the tail has ended")
		}
		return line
	case <-time.After(patience):
		t.Fatalf("no line in %v", patience)
	}
	return ""
}

// postEvents stores events in bucket log.
func postEvents(t *testing.T, n *node, events ...string) {
	t.Helper()
	resp, err := http.Post("http://"+n.http+"/events/log", "application/json",
		strings.NewReader(strings.Join(events, "\n")))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if text, err := io.ReadAll(resp.Body); err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s, %v", resp.Status, text, err)
	}
}
