// Package graphite takes points in the protocols of Graphite's carbon: lines of
// text over TCP and UDP, and pickled lists over TCP. It never sends an answer: it counts
// what it refuses under graphite_<reason>, logs a sample, and reads on. DESIGN.md has the
// grammar and the bytes.
package graphite

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"dalmatiner/internal/host/loglimit"
	"dalmatiner/internal/host/memory"
	"dalmatiner/internal/host/monitor"
	"dalmatiner/internal/ingest/ahead"
	"dalmatiner/internal/ingest/conns"
	"dalmatiner/internal/ingest/datagram"
	"dalmatiner/internal/ingest/labels"
	"dalmatiner/internal/ingest/unacked"
	"dalmatiner/internal/model/account"
	"dalmatiner/internal/write"
)

// Options configures a server. Points, Memory, Account and Logger are required; zero limits take
// their defaults.
type Options struct {
	Points  write.Target
	Tags    write.Tagger // nil: tags are parts of names only
	Memory  *memory.Budget
	Account *account.Account // that refused lines are counted in
	Now     func() time.Time // of lines without a time; time.Now
	Logger  *slog.Logger
	Monitor *monitor.Recorder // may be nil

	Bucket         string // that all points go to; graphite
	MaxConnections int    // of both TCP protocols together; 1024
	MaxLine        int    // bytes of a line, at most maxMaxLine; 16 KiB

	MaxFuture time.Duration  // points further ahead are refused by the store; 10 min
	Ahead     *ahead.Senders // of such points; may be nil

	Idle       time.Duration // connections that send nothing for so long are closed; 0 keeps them
	InputStall time.Duration // for a sender to go on with a large frame; 30 s
}

// Defaults and limits of the options.
const (
	defaultBucket         = "graphite"
	defaultMaxConnections = 1024
	defaultMaxLine        = 16 << 10
	maxMaxLine            = 64 << 10
	defaultInputStall     = 30 * time.Second
	defaultMaxFuture      = 10 * time.Minute
)

// Server serves connections and datagrams. It may serve several listeners.
type Server struct {
	o        Options
	log      *loglimit.Logger
	refusals *unacked.Refusals

	conns   *conns.Set
	buffers *conns.Buffers
	ctx     context.Context // ends waits for the store of tags at shutdown
	cancel  context.CancelFunc

	unfinished *memory.Leases

	packets datagram.Group

	starters   sync.Pool // *[]byte of startBuffer bytes
	batches    sync.Pool // *batch
	unpicklers *unpicklers
	tags       *labels.Tagger
	stats      Stats
}

// Stats counts what the server did. The fields only grow.
type Stats struct {
	BytesRead atomic.Int64
	Lines     atomic.Int64 // refused ones included, empty ones not
	Frames    atomic.Int64 // of pickled lists
	Datagrams atomic.Int64
}

// New returns a server that serves nothing yet.
func New(o Options) *Server {
	if o.Bucket == "" {
		o.Bucket = defaultBucket
	}
	if o.MaxConnections == 0 {
		o.MaxConnections = defaultMaxConnections
	}
	if o.MaxLine == 0 {
		o.MaxLine = defaultMaxLine
	}
	o.MaxLine = min(o.MaxLine, maxMaxLine)
	if o.Now == nil {
		o.Now = time.Now
	}
	o.InputStall = cmp.Or(o.InputStall, defaultInputStall)
	o.MaxFuture = cmp.Or(o.MaxFuture, defaultMaxFuture)
	s := &Server{o: o, buffers: conns.NewBuffers(o.Memory, "graphite")}
	s.unfinished = conns.NewUnfinished(o.Memory, "graphite-unfinished", o.InputStall, 3*maxFrame)
	s.log = loglimit.New(o.Logger, time.Now)
	s.conns = conns.New(conns.Options{
		Listener: "graphite",
		Limit:    o.MaxConnections,
		Log:      s.log,
		Full:     s.turnAway,
		Idle:     o.Idle,
	})
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.unpicklers = newUnpicklers(o.Memory, runtime.GOMAXPROCS(0))
	s.refusals = unacked.NewRefusals("graphite", o.Account, s.log)
	s.tags = labels.NewTagger(o.Tags, o.Memory, "graphite", s.refusals)
	s.starters.New = func() any {
		b := make([]byte, startBuffer)
		return &b
	}
	s.batches.New = func() any { return newBatch() }
	return s
}

// Stats returns the server's counters.
func (s *Server) Stats() *Stats { return &s.stats }

// ServeText accepts connections that send lines, until the listener fails or
// is closed, when it returns nil.
func (s *Server) ServeText(ln net.Listener) error { return s.serve(ln, (*conn).lines) }

// ServePickle accepts connections that send pickled lists, until the listener
// fails or is closed, when it returns nil.
func (s *Server) ServePickle(ln net.Listener) error { return s.serve(ln, (*conn).frames) }

func (s *Server) serve(ln net.Listener, consume func(*conn) error) error {
	return s.conns.Serve(ln, func(nc *conns.Conn) { s.run(nc, consume) })
}

// Connections returns the open connections.
func (s *Server) Connections() *conns.Set { return s.conns }

// turnAway counts a connection beyond the limit.
func (s *Server) turnAway(nc net.Conn) {
	s.refusals.Count(manyConns.String(), conns.PeerOf(nc),
		fmt.Appendf(nil, "%d connections are open; raise graphite.max_connections", s.o.MaxConnections))
}

func (s *Server) run(nc *conns.Conn, consume func(*conn) error) {
	buf := s.starters.Get().(*[]byte)
	s.buffers.Add(startBuffer)
	c := &conn{
		s:     s,
		nc:    nc,
		start: *buf,
		buf:   *buf,
		lease: s.unfinished.Lease(),
		app:   s.newAppender(conns.PeerOf(nc)),
	}
	c.in = conns.Reader{From: nc, Conn: nc, Lease: c.lease}
	err := errors.Join(c.run(consume), c.app.bucket.Close())
	_ = nc.Close() // nothing is ever written
	s.refusals.Ended(nc, c.lease.Bytes() > 0, err)
	if c.lease.Bytes() == 0 {
		s.buffers.Add(startBuffer - len(c.buf)) // a busy sender's was larger
	}
	c.lease.Release()
	s.buffers.Add(-startBuffer)
	s.starters.Put(buf)
}

// ServePackets takes lines from the sockets until they are closed, when it
// returns nil. It closes them when one of them fails.
func (s *Server) ServePackets(socks *datagram.Sockets) error {
	return s.packets.Serve(socks, s.readPackets)
}

// KernelDrops returns how many datagrams the kernel dropped because they came
// faster than they were read.
func (s *Server) KernelDrops() uint64 { return s.packets.Drops() }

// Shutdown closes all connections and waits for them; what they had received
// is in the store when it returns. The caller closes listeners and sockets
// first, and waits for ServePackets.
func (s *Server) Shutdown() {
	s.cancel()
	s.conns.Shutdown()
	s.log.Close()
}
