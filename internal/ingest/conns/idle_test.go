package conns

import (
	"io"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"dalmatiner/internal/host/memory"
)

// room is a set with a clock of its own.
func room(t *testing.T, limit int, idle time.Duration) (s *Set, clock *atomic.Int64,
	dial func() (net.Conn, *Conn)) {
	clock = &atomic.Int64{}
	clock.Store(int64(time.Hour))
	var turnedAway bool // by the last Start, which calls Full before it returns
	s = New(Options{Listener: "test", Limit: limit, Log: quiet(), Full: func(net.Conn) {
		turnedAway = true
	}, Idle: idle,
		Now: func() time.Time { return time.Unix(0, clock.Load()) }})
	t.Cleanup(s.Shutdown)
	return s, clock, func() (net.Conn, *Conn) {
		here, there := net.Pipe()
		t.Cleanup(func() { _ = here.Close() })
		served := make(chan *Conn, 1)
		turnedAway = false
		s.Start(there, func(c *Conn) {
			served <- c
			untilEnd(c)
		})
		if turnedAway {
			return here, nil
		}
		return here, <-served
	}
}

func TestTheIdlestMakesRoomAtTheLimit(t *testing.T) {
	s, clock, dial := room(t, 3, 0)
	_, proven := dial()
	proven.Proven()
	_, first := dial()
	_, second := dial()
	if _, c := dial(); c != nil {
		t.Fatal("one makes room that has just come")
	}
	clock.Add(int64(unprovenGrace))
	first.touch()
	if _, c := dial(); c == nil || second.WhyCut() != CutRoom || first.WhyCut() != "" ||
		proven.WhyCut() != "" {
		t.Fatalf("the idlest unproven one: %q, %q, %q", first.WhyCut(), second.WhyCut(), proven.WhyCut())
	}
	first.Busy()
	if _, c := dial(); c != nil || proven.WhyCut() != "" {
		t.Fatal("a busy one, or a proven one within its grace, makes room")
	}
	s.mu.Lock() // the one that made room is closing
	for c := range s.open {
		c.Busy()
	}
	s.mu.Unlock()
	proven.Idle()
	clock.Add(int64(defaultGrace))
	if _, c := dial(); c == nil || proven.WhyCut() != CutRoom {
		t.Fatalf("the proven one after its grace: %q", proven.WhyCut())
	}
	if got := s.Cuts(CutRoom); got != 2 || s.Open() != 3 {
		t.Errorf("%d made room, %d are open", got, s.Open())
	}
}

func TestIdleConnectionsAreClosed(t *testing.T) {
	s, clock, dial := room(t, 10, time.Hour)
	here, idle := dial()
	_, busy := dial()
	busy.Busy()
	_, active := dial()
	clock.Add(int64(time.Hour) - 1)
	active.touch()
	s.closeIdle(s.o.Now())
	if s.Open() != 3 {
		t.Fatal("closed too early")
	}
	clock.Add(1)
	s.closeIdle(s.o.Now())
	if _, err := io.ReadAll(here); err != nil || idle.WhyCut() != CutIdle || busy.WhyCut() != "" ||
		active.WhyCut() != "" {
		t.Errorf("%v: idle %q, busy %q, active %q", err, idle.WhyCut(), busy.WhyCut(), active.WhyCut())
	}
}

// TestSingleBytesAreNoProgress: a client that sends a byte now and then of a message with leased
// memory is cut off after the stall time. A client that sends enough bytes is not. Time in which
// the node does not read counts for nobody.
func TestSingleBytesAreNoProgress(t *testing.T) {
	var clock atomic.Int64
	clock.Store(int64(time.Hour))
	b := memory.New(1<<30, func() time.Time { return time.Unix(0, clock.Load()) }, nil)
	pool := NewUnfinished(b, "unfinished", time.Minute, 0)
	for step, cut := range map[int]bool{1: true, progressBytes: false} {
		s := newSet(2, nil)
		here, there := net.Pipe()
		nc := s.admit(there, false)
		r := Reader{From: nc, Conn: nc, Lease: pool.Lease()}
		if err := r.Lease.GrowWhenFree(nc.Context(), 1); err != nil {
			t.Fatal(err)
		}
		go func() {
			for range 4 {
				_, _ = here.Write(make([]byte, step))
			}
		}()
		buf := make([]byte, progressBytes)
		for range 3 {
			if _, err := io.ReadFull(&r, buf[:step]); err != nil {
				t.Fatal(err)
			}
			clock.Add(int64(time.Hour)) // the node does something else
			r.Lease.Await(func(why memory.CutReason) { nc.Cut(string(why)) })
			clock.Add(int64(25 * time.Second))
			b.Sweep()
			r.Lease.Resume()
		}
		if got := nc.WhyCut() == CutStalled; got != cut || got != (nc.Context().Err() != nil) {
			t.Errorf("who sends %d bytes at a time: cut off %v, %v", step, got, nc.Context().Err())
		}
		r.Lease.Release()
		_, _ = here.Close(), nc.Close()
	}
}
