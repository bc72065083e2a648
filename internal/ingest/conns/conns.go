// Package conns holds the open connections of a door: the loop that accepts
// them, the limit of their number, the count of their buffers, and their end.
package conns

import (
	"errors"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// LongAgo as a deadline makes a read return at once.
var LongAgo = time.Unix(1, 0)

// A listener that cannot accept, most likely for want of file descriptors, is
// asked again after a pause that doubles: connections that end are what helps.
const (
	minPause = 5 * time.Millisecond
	maxPause = time.Second
)

// Options configures a Set. All are required.
type Options struct {
	Door   string // its name in the log
	Limit  int    // open connections
	Logger *slog.Logger
	// Full is told of a connection beyond the limit, which is closed when it
	// returns.
	Full func(nc net.Conn)
}

// Set is the open connections of one door. Its methods may be called
// concurrently.
type Set struct {
	o        Options
	accepted atomic.Int64
	done     chan struct{} // closed by Shutdown

	mu     sync.Mutex
	open   map[net.Conn]struct{}
	closed bool
	wg     sync.WaitGroup
}

// New returns a set without connections.
func New(o Options) *Set {
	return &Set{o: o, done: make(chan struct{}), open: make(map[net.Conn]struct{})}
}

// Serve accepts connections until the listener fails or is closed, when it
// returns nil, and runs serve for each in a goroutine of its own.
func (s *Set) Serve(ln net.Listener, serve func(nc net.Conn)) error {
	for pause := minPause; ; {
		nc, err := ln.Accept()
		if err == nil {
			pause = minPause
			s.Start(nc, serve)
			continue
		}
		if errors.Is(err, net.ErrClosed) {
			return nil
		}
		var temporary interface{ Temporary() bool }
		if !errors.As(err, &temporary) || !temporary.Temporary() {
			return err
		}
		s.o.Logger.Warn("a connection was not accepted", "door", s.o.Door, "err", err, "next", pause)
		s.rest(pause)
		pause = min(2*pause, maxPause)
	}
}

// rest waits for a moment or until the set is shut down.
func (s *Set) rest(pause time.Duration) {
	t := time.NewTimer(pause)
	defer t.Stop()
	select {
	case <-t.C:
	case <-s.done:
	}
}

// Start runs serve for a connection, and closes it at its end. Beyond the
// limit, and after Shutdown, it is closed at once.
func (s *Set) Start(nc net.Conn, serve func(nc net.Conn)) {
	s.mu.Lock()
	full := len(s.open) >= s.o.Limit
	if s.closed || full {
		closed := s.closed
		s.mu.Unlock()
		if !closed {
			s.o.Full(nc)
		}
		_ = nc.Close() // it was never served
		return
	}
	s.open[nc] = struct{}{}
	s.accepted.Add(1)
	s.wg.Add(1)
	s.mu.Unlock()
	go func() {
		defer s.wg.Done()
		serve(nc)
		_ = nc.Close() // serve has said all there was to say
		s.mu.Lock()
		delete(s.open, nc)
		s.mu.Unlock()
	}()
}

// Open returns how many connections are open now.
func (s *Set) Open() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.open)
}

// Accepted returns how many connections were ever served.
func (s *Set) Accepted() int64 { return s.accepted.Load() }

// Limit returns how many connections may be open.
func (s *Set) Limit() int { return s.o.Limit }

// ShuttingDown reports whether Shutdown was called.
func (s *Set) ShuttingDown() bool {
	select {
	case <-s.done:
		return true
	default:
		return false
	}
}

// Shutdown makes the reads of all connections return and waits until they have
// ended. The caller closes the listeners first.
func (s *Set) Shutdown() {
	s.mu.Lock()
	if !s.closed {
		s.closed = true
		close(s.done)
	}
	for nc := range s.open {
		// A read that is under way returns; the connection then ends.
		_ = nc.SetReadDeadline(LongAgo)
	}
	s.mu.Unlock()
	s.wg.Wait()
}
