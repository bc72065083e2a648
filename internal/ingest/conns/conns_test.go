package conns

import (
	"errors"
	"io"
	"log/slog"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"dalmatiner/internal/host/loglimit"
	"dalmatiner/internal/host/memory"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const patience = time.Minute

func newSet(limit int, full func(net.Conn)) *Set {
	return New(Options{Listener: "test", Limit: limit, Log: quiet(), Full: full})
}

func quiet() *loglimit.Logger { return loglimit.New(slog.New(slog.DiscardHandler), time.Now) }

// untilEnd is a connection that reads until it cannot.
func untilEnd(nc *Conn) { _, _ = io.Copy(io.Discard, nc) }

func TestTheLimitHoldsAndIsFreedAgain(t *testing.T) {
	var turned atomic.Int64
	s := newSet(2, func(nc net.Conn) {
		turned.Add(1)
		_, _ = nc.Write([]byte("full"))
	})
	dial := func() net.Conn {
		here, there := net.Pipe()
		go s.Start(there, untilEnd)
		t.Cleanup(func() { _ = here.Close() })
		return here
	}
	wait := func(what string, ok func() bool) {
		t.Helper()
		deadline := time.Now().Add(patience)
		for tick := time.NewTicker(time.Millisecond); !ok(); <-tick.C {
			if time.Now().After(deadline) {
				t.Fatalf("not within %v: %s", patience, what)
			}
		}
	}
	first := dial()
	dial()
	wait("two are open", func() bool { return s.Open() == 2 })
	if text, err := io.ReadAll(dial()); string(text) != "full" || err != nil {
		t.Errorf("the third is told %q, %v", text, err)
	}
	_ = first.Close()
	wait("one has ended", func() bool { return s.Open() == 1 })
	dial()
	wait("there is room again", func() bool { return s.Open() == 2 })
	if turned.Load() != 1 || s.Accepted() != 3 || s.Limit() != 2 {
		t.Errorf("%d turned away, %d accepted", turned.Load(), s.Accepted())
	}
	s.Shutdown()
	if s.Open() != 0 || !s.ShuttingDown() {
		t.Errorf("%d open after the shutdown", s.Open())
	}
	if text, err := io.ReadAll(dial()); len(text) != 0 || err != nil {
		t.Errorf("after the shutdown one is told %q, %v", text, err)
	}
}

// flaky fails a few times, then for good.
type flaky struct {
	net.Listener
	left int
	end  error
}

type temporary struct{ error }

func (temporary) Temporary() bool { return true }

func (f *flaky) Accept() (net.Conn, error) {
	if f.left--; f.left >= 0 {
		return nil, temporary{errors.New("too many open files")}
	}
	return nil, f.end
}

func TestServeOutlastsAWant(t *testing.T) {
	s := newSet(1, func(net.Conn) {})
	if err := s.Serve(&flaky{left: 3, end: net.ErrClosed}, untilEnd); err != nil {
		t.Errorf("a closed listener: %v", err)
	}
	broken := errors.New("broken")
	if err := s.Serve(&flaky{left: 1, end: broken}, untilEnd); !errors.Is(err, broken) {
		t.Errorf("a broken listener: %v", err)
	}
	s.Shutdown()
}

func TestBuffers(t *testing.T) {
	b := memory.New(1600, time.Now, nil)
	u := NewBuffers(b, "tcp")
	u.Add(60)
	if !u.Room(40) || u.Room(41) {
		t.Error("the room for 100 bytes")
	}
	want := memory.Usage{Name: "tcp-buffers", Use: 60, Limit: 100}
	got := b.Pools()[0]
	if got.Holds = ""; got != want {
		t.Errorf("the pool is %+v", got)
	}
	if u.Add(-60); b.Pools()[0].Use != 0 {
		t.Error("a buffer that was given back counts")
	}
}
