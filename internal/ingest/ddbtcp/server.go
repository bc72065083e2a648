// Package ddbtcp serves the store's own TCP protocol: requests in frames, and
// streams of points. DESIGN.md has the life of a connection.
package ddbtcp

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"dalmatiner/internal/ingest/conns"
	"dalmatiner/internal/loglimit"
	"dalmatiner/internal/memory"
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
	Memory  *memory.Leases    // that lists are charged to; nil charges nothing

	MaxConnections int // 1024
	MaxFrame       int // bytes of a request frame; 1 MiB
	MaxMessage     int // bytes of one stream message; 1 MiB

	MaxSlots int64 // of one GET; 2^26
}

// Defaults of the limits.
const (
	DefaultMaxConnections = 1024
	DefaultMaxFrame       = 1 << 20
	DefaultMaxMessage     = 1 << 20
	DefaultMaxSlots       = 1 << 26
)

// Server serves connections. It may serve several listeners.
type Server struct {
	o      Options
	ctx    context.Context // ends waits for durability at shutdown
	cancel context.CancelFunc

	conns   *conns.Set
	buffers *conns.Buffers
	small   sync.Pool // *[]byte of startBuffer bytes
	large   sync.Pool // *[]byte of maxBuffer bytes
	log     *loglimit.Logger
	stats   Stats
}

// Stats counts what the server did. The fields only grow, but for the last.
type Stats struct {
	Requests  atomic.Int64
	BytesRead atomic.Int64
	Flushes   atomic.Int64
	Gathering atomic.Int64 // connections whose small pieces are read together
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
	if o.MaxSlots == 0 {
		o.MaxSlots = DefaultMaxSlots
	}
	o.MaxMessage = max(o.MaxMessage, wire.MinStreamLimit)
	s := &Server{o: o, buffers: conns.NewBuffers(o.Store.Memory(), "tcp"), log: loglimit.New(o.Logger, time.Now)}
	s.conns = conns.New(conns.Options{Door: "tcp", Limit: o.MaxConnections, Logger: o.Logger, Full: s.turnAway})
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

// Connections returns the open connections.
func (s *Server) Connections() *conns.Set { return s.conns }

// Serve accepts connections until the listener fails or is closed, when it
// returns nil.
func (s *Server) Serve(ln net.Listener) error { return s.conns.Serve(ln, s.serve) }

// turnAway answers a connection beyond the limit.
func (s *Server) turnAway(nc net.Conn) {
	s.o.Store.Account().RefuseRequest("too_many_connections")
	msg := fmt.Sprintf("%d connections are open, which is the limit; raise tcp_max_connections", s.o.MaxConnections)
	_ = nc.SetWriteDeadline(time.Now().Add(time.Second)) // the peer may not read
	_, _ = nc.Write(wire.AppendFrame(nil, wire.AppendError(nil, msg)))
}

func (s *Server) serve(nc net.Conn) {
	c := &conn{s: s, nc: nc}
	c.borrow(&s.small)
	err := c.run()
	_ = nc.Close() // nothing is pending: replies are written before run returns
	if err != nil {
		s.log.Log(slog.LevelInfo, "closed", "connection closed", "peer", nc.RemoteAddr().String(), "err", err)
	}
	c.giveBack()
}

// Shutdown closes all connections and waits for them; what they had received
// is in the store when it returns. The caller closes the listeners first.
func (s *Server) Shutdown() {
	s.cancel()
	s.conns.Shutdown()
	s.log.Close()
}
