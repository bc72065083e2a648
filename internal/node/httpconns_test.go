package node

import (
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"dalmatiner/internal/host/loglimit"
	"dalmatiner/internal/ingest/conns"
)

// TestHTTPConnectionsHaveALimit: while all are busy one beyond it is closed, and its
// place is free again when another one ends or has answered and is idle.
func TestHTTPConnectionsHaveALimit(t *testing.T) {
	c := newHTTPConns(2, loglimit.New(slog.New(slog.DiscardHandler), time.Now))
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("ok"))
	}))
	s.Listener = c.Listener(s.Listener)
	s.Start()
	defer s.Close()
	ask := func() (net.Conn, error) {
		nc, err := net.Dial("tcp", s.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = nc.Close() })
		if err := nc.SetDeadline(time.Now().Add(patience)); err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(nc, "GET / HTTP/1.1\r\nHost: a\r\n\r\n") // a closed one fails here or below
		_, err = nc.Read(make([]byte, 1))
		return nc, err
	}
	first, err := ask()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ask(); err != nil {
		t.Fatal(err)
	}
	if _, err := ask(); err == nil || c.turned.Load() != 1 {
		t.Errorf("a connection beyond the limit is answered; %d were refused", c.turned.Load())
	}
	_ = first.Close()
	deadline := time.Now().Add(patience)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for c.Open() != 1 {
		if <-tick.C; time.Now().After(deadline) {
			t.Fatalf("%d connections are open", c.Open())
		}
	}
	if _, err := ask(); err != nil {
		t.Errorf("after one has ended: %v", err)
	}
	for { // both are idle now, and the one that is for longer makes room after a moment
		if _, err := ask(); err == nil {
			break
		}
		if <-tick.C; time.Now().After(deadline) {
			t.Fatal("idle connections lock a new one out")
		}
	}
	if c.Open() > 2 || c.Cuts(conns.CutRoom) == 0 {
		t.Errorf("%d connections are open, %d made room", c.Open(), c.Cuts(conns.CutRoom))
	}
}
