package api

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// TestSendersReadWhyTheyAreRefused: some of them send all of a body before they look for an answer.
func TestSendersReadWhyTheyAreRefused(t *testing.T) {
	const body = 64 << 20
	for what, c := range map[string]struct {
		expect string
		read   int64 // by the server, before it refuses
		sent   int64
	}{
		"at once":                   {"", 0, body},
		"in the middle":             {"", body / 2, body},
		"who waits":                 {"Expect: 100-continue\r\n", 0, 0},
		"who waited, in the middle": {"Expect: 100-continue\r\n", body / 2, body},
	} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
			u := receives(w, q)
			defer u.drain()
			_, _ = io.CopyN(io.Discard, u, c.read) // the sender may end
			w.WriteHeader(http.StatusInsufficientStorage)
		}))
		t.Cleanup(s.Close)
		conn, err := net.Dial("tcp", s.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if err := conn.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(conn, "PUT / HTTP/1.1\r\nHost: x\r\n%sContent-Length: %d\r\n\r\n", c.expect, body)
		answers := bufio.NewReader(conn)
		if c.expect != "" && c.sent > 0 {
			if r, err := http.ReadResponse(answers, nil); err != nil || r.StatusCode != http.StatusContinue {
				t.Fatalf("%s: %v, %v", what, r, err)
			}
		}
		if n, err := io.CopyN(conn, zeros{}, c.sent); err != nil {
			t.Errorf("%s: %d bytes were sent: %v", what, n, err)
		}
		if r, err := http.ReadResponse(answers, nil); err != nil ||
			r.StatusCode != http.StatusInsufficientStorage {
			t.Errorf("%s: %v, %v", what, r, err)
		}
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }
