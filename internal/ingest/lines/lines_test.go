package lines

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"dalmatiner/internal/host/loglimit"
	"dalmatiner/internal/host/memory"
	"dalmatiner/internal/ingest/conns"
	"dalmatiner/internal/ingest/unacked"
	"dalmatiner/internal/model/account"
)

// listener is a sender that keeps lines. Begin and Commit must stand around them.
type listener struct {
	lines []string
	open  bool
	ended chan []string
}

func (l *listener) Begin() error {
	if l.open {
		return errors.New("begun twice")
	}
	l.open = true
	return nil
}

func (l *listener) Line(line []byte) bool {
	l.lines = append(l.lines, string(line))
	return l.open && string(line) != "bye"
}

func (l *listener) Commit() error {
	l.open = false
	return nil
}

func (l *listener) Close() error {
	l.ended <- l.lines
	return nil
}

// start serves a listener until the end of the test.
func start(t *testing.T) (addr string, acc *account.Account, ended chan []string) {
	t.Helper()
	acc, ended = account.New(), make(chan []string, 1)
	log := loglimit.New(slog.New(slog.DiscardHandler), time.Now)
	s := New(Options{Listener: "test", Limit: 1, LimitKey: "test.max_connections",
		Memory: memory.New(0, time.Now, nil), Log: log, Refusals: unacked.NewRefusals("test", acc, log),
		Open: func(*conns.Conn) Sender { return &listener{ended: ended} }})
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(ln) }()
	t.Cleanup(func() {
		_ = ln.Close()
		s.Shutdown()
		if err := <-served; err != nil {
			t.Error(err)
		}
		log.Close()
	})
	return ln.Addr().String(), acc, ended
}

func dial(t *testing.T, addr string) net.Conn {
	t.Helper()
	nc, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	if err := nc.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = nc.Close() })
	return nc
}

// Whatever the pieces in which they come, lines are whole, and long ones cost the next ones
// nothing.
func TestPieces(t *testing.T) {
	var want []string
	var text strings.Builder
	for i := range 3000 {
		line := fmt.Sprintf("line %d %s", i, strings.Repeat("x", i%200))
		want = append(want, line)
		text.WriteString(line + []string{"\n", "\r\n", "\n\n"}[i%3])
		if i%1000 == 500 {
			text.WriteString(strings.Repeat("y", MaxLine+1+i*20) + "\n")
		}
	}
	longest := strings.Repeat("z", MaxLine)
	want = append(want, longest)
	text.WriteString(longest + "\n1")
	for _, piece := range []int{7, 1000, 16 << 10, 1 << 20} {
		addr, acc, ended := start(t)
		nc := dial(t, addr)
		for part := range slices.Chunk([]byte(text.String()), piece) {
			if _, err := nc.Write(part); err != nil {
				t.Fatal(err)
			}
		}
		_ = nc.Close()
		if got := <-ended; !slices.Equal(got, want) {
			t.Errorf("pieces of %d: %d lines, want %d", piece, len(got), len(want))
		}
		if got := acc.Requests(); got["test_line_too_long"] != 3 || got["test_line_cut"] != 1 {
			t.Errorf("pieces of %d: %v", piece, got)
		}
	}
}

// A sender that is done is closed, and one beyond the limit is counted.
func TestEnds(t *testing.T) {
	addr, acc, ended := start(t)
	nc := dial(t, addr)
	if _, err := nc.Write([]byte("a\n")); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(dial(t, addr)); err != nil && !errors.Is(err, net.ErrClosed) {
		t.Log(err) // it may be reset
	}
	if got := acc.Requests()["test_too_many_connections"]; got != 1 {
		t.Errorf("%d connections are beyond the limit", got)
	}
	if _, err := nc.Write([]byte("bye\nb\n")); err != nil {
		t.Fatal(err)
	}
	if got := <-ended; !slices.Equal(got, []string{"a", "bye"}) {
		t.Errorf("%q", got)
	}
}
