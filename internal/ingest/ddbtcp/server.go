// Package ddbtcp serves the store's own TCP protocol: requests in frames, and
// streams of points. DESIGN.md has the life of a connection.
package ddbtcp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"dalmatiner/internal/monitor"
	"dalmatiner/internal/store"
	"dalmatiner/internal/wire"
)

// Options configures a server. Store and Logger are required; zero limits take
// their defaults.
type Options struct {
	Store   *store.Store
	Logger  *slog.Logger
	Monitor *monitor.Recorder // may be nil

	MaxConnections int // 1024
	MaxFrame       int // bytes of a request frame; 1 MiB
	MaxMessage     int // bytes of one stream message; 1 MiB
}

// Defaults of the limits.
const (
	DefaultMaxConnections = 1024
	DefaultMaxFrame       = 1 << 20
	DefaultMaxMessage     = 1 << 20
)

// Server serves connections. It may serve several listeners.
type Server struct {
	o      Options
	ctx    context.Context // ends waits for durability at shutdown
	cancel context.CancelFunc

	mu     sync.Mutex
	conns  map[net.Conn]struct{}
	closed bool
	wg     sync.WaitGroup

	small sync.Pool // *[]byte of startBuffer bytes
	large sync.Pool // *[]byte of maxBuffer bytes
	stats Stats
}

// Stats counts what the server did. The fields only grow, but for Connections.
type Stats struct {
	Connections atomic.Int64 // open now
	Accepted    atomic.Int64
	Requests    atomic.Int64
	BytesRead   atomic.Int64
	Flushes     atomic.Int64
}

// New returns a server that serves nothing yet.
func New(o Options) *Server {
	if o.MaxConnections == 0 {
		o.MaxConnections = DefaultMaxConnections
	}
	if o.MaxFrame == 0 {
		o.MaxFrame = DefaultMaxFrame
	}
	if o.MaxMessage == 0 {
		o.MaxMessage = DefaultMaxMessage
	}
	o.MaxMessage = max(o.MaxMessage, wire.MinStreamLimit)
	s := &Server{o: o, conns: make(map[net.Conn]struct{})}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.small.New = func() any {
		b := make([]byte, startBuffer)
		return &b
	}
	s.large.New = func() any {
		b := make([]byte, maxBuffer)
		return &b
	}
	return s
}

// Stats returns the server's counters.
func (s *Server) Stats() *Stats { return &s.stats }

// Serve accepts connections until the listener fails or is closed, when it
// returns nil.
func (s *Server) Serve(ln net.Listener) error {
	for pause := minPause; ; {
		conn, err := ln.Accept()
		if err != nil {
			if errors.Is(err, net.ErrClosed) {
				return nil
			}
			var temporary interface{ Temporary() bool }
			if errors.As(err, &temporary) && temporary.Temporary() {
				s.o.Logger.Warn("a connection was not accepted", "err", err, "next", pause)
				s.rest(pause)
				pause = min(2*pause, maxPause)
				continue
			}
			return err
		}
		pause = minPause
		s.start(conn)
	}
}

// A listener that cannot accept, most likely for want of file descriptors, is
// asked again after a pause that doubles: connections that end are what helps.
const (
	minPause = 5 * time.Millisecond
	maxPause = time.Second
)

// rest waits for a moment or until the server shuts down.
func (s *Server) rest(pause time.Duration) {
	t := time.NewTimer(pause)
	defer t.Stop()
	select {
	case <-t.C:
	case <-s.ctx.Done():
	}
}

func (s *Server) start(nc net.Conn) {
	s.mu.Lock()
	full := len(s.conns) >= s.o.MaxConnections
	if s.closed || full {
		s.mu.Unlock()
		if full {
			s.o.Store.Account().RefuseRequest("too_many_connections")
			msg := fmt.Sprintf("%d connections are open, which is the limit; raise tcp_max_connections", s.o.MaxConnections)
			_ = nc.SetWriteDeadline(time.Now().Add(time.Second)) // the peer may not read
			_, _ = nc.Write(wire.AppendFrame(nil, wire.AppendError(nil, msg)))
		}
		_ = nc.Close() // it was never served
		return
	}
	s.conns[nc] = struct{}{}
	s.wg.Add(1)
	s.mu.Unlock()
	s.stats.Accepted.Add(1)
	s.stats.Connections.Add(1)
	go func() {
		defer s.wg.Done()
		s.serve(nc)
		s.mu.Lock()
		delete(s.conns, nc)
		s.mu.Unlock()
		s.stats.Connections.Add(-1)
	}()
}

func (s *Server) serve(nc net.Conn) {
	c := &conn{s: s, nc: nc}
	c.borrow(&s.small)
	err := c.run()
	_ = nc.Close() // nothing is pending: replies are written before run returns
	if err != nil {
		s.o.Logger.Info("connection closed", "peer", nc.RemoteAddr().String(), "err", err)
	}
	c.giveBack()
}

// Shutdown closes all connections and waits for them; what they had received
// is in the store when it returns. The caller closes the listeners first.
func (s *Server) Shutdown() {
	s.cancel()
	s.mu.Lock()
	s.closed = true
	for nc := range s.conns {
		// A read that is under way returns; the connection then commits.
		_ = nc.SetReadDeadline(longAgo)
	}
	s.mu.Unlock()
	s.wg.Wait()
}
