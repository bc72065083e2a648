// Package ddbtcp serves the store's own TCP protocol: requests in frames, and
// streams of points. DESIGN.md has the life of a connection.
package ddbtcp

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"dalmatiner/internal/host/loglimit"
	"dalmatiner/internal/host/memory"
	"dalmatiner/internal/host/monitor"
	"dalmatiner/internal/ingest/ahead"
	"dalmatiner/internal/ingest/conns"
	"dalmatiner/internal/model/account"
	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/store/events"
	"dalmatiner/internal/wire"
	"dalmatiner/internal/write"
)

// Options configures a server. Points, Store and Logger are required; zero limits take
// their defaults.
type Options struct {
	Points  write.Target // where streams go
	Store   Store        // what requests ask
	Events  events.Store // nil refuses requests about events
	Logger  *slog.Logger
	Monitor *monitor.Recorder // may be nil
	Memory  *memory.Leases    // that lists are charged to; nil charges nothing
	Ahead   *ahead.Senders    // of events too far ahead; may be nil

	NodeFlag string // says behind a command in a message which node is meant; "" for the default one

	MaxConnections int // 1024
	MaxFrame       int // bytes of a request frame; 1 MiB
	MaxMessage     int // bytes of one stream message; 1 MiB

	MaxSlots int64 // of one GET; 2^26

	Idle       time.Duration // connections that send nothing for so long are closed; 0 keeps them
	InputStall time.Duration // for a sender to go on with a large message; 30 s
	ReplyStall time.Duration // for a peer to take a piece of its reply; 10 s
}

// Store is what requests read and change: buckets, names and points of the node.
type Store interface {
	Buckets() []buckets.Info
	BucketByName(name string) (buckets.Info, error)
	CreateBucket(info buckets.Info) (buckets.Info, error)
	DeleteBucket(name string) error
	SetTTL(name string, points int64) error

	Metrics(ctx context.Context, bucket buckets.Info, prefix []byte, fn func(key []byte) bool) error
	Extent(ctx context.Context, bucket buckets.Info, key []byte, from, n int64) (first, past int64,
		err error)
	Read(ctx context.Context, bucket buckets.Info, key []byte, from int64, dst []uint64) error
	ReadTimestamped(ctx context.Context, bucket buckets.Info, key []byte, from int64, values,
		timestamps []uint64) error

	// ReadWithStale is Read, or ReadTimestamped where timestamps is not nil, with stale markers.
	ReadWithStale(ctx context.Context, bucket buckets.Info, key []byte, from int64, values,
		timestamps []uint64) error

	Memory() *memory.Budget
	Account() *account.Account
}

// Defaults of the limits.
const (
	defaultMaxConnections = 1024
	defaultMaxFrame       = 1 << 20
	defaultMaxMessage     = 1 << 20
	defaultMaxSlots       = 1 << 26
	defaultInputStall     = 30 * time.Second
	defaultReplyStall     = 10 * time.Second
)

// The buffers of GETs that are answered: a part of the process's limit, and what
// one may take while memory is short.
const (
	repliesPart = 16
	maxReplies  = 512 << 20
	smallReply  = 256 << 10
)

// Server serves connections. It may serve several listeners.
type Server struct {
	o          Options
	conns      *conns.Set
	buffers    *conns.Buffers
	small      sync.Pool // *[]byte of startBuffer bytes
	large      sync.Pool // *[]byte of maxBuffer bytes
	gets       sync.Pool // *getBuffers
	unfinished *memory.Leases
	replies    *memory.Leases // of GETs
	log        *loglimit.Logger
	stats      Stats
}

// Stats counts what the server did. The fields only grow, but for the last.
type Stats struct {
	Requests   atomic.Int64
	BytesRead  atomic.Int64
	Flushes    atomic.Int64
	Coalescing atomic.Int64 // connections whose small pieces are read together
}

// New returns a server that serves nothing yet.
func New(o Options) *Server {
	o.MaxConnections = cmp.Or(o.MaxConnections, defaultMaxConnections)
	o.MaxFrame = cmp.Or(o.MaxFrame, defaultMaxFrame)
	o.MaxMessage = cmp.Or(o.MaxMessage, defaultMaxMessage)
	o.MaxSlots = cmp.Or(o.MaxSlots, defaultMaxSlots)
	o.InputStall = cmp.Or(o.InputStall, defaultInputStall)
	o.ReplyStall = cmp.Or(o.ReplyStall, defaultReplyStall)
	o.MaxMessage = max(o.MaxMessage, wire.MinStreamLimit)
	s := &Server{
		o:       o,
		buffers: conns.NewBuffers(o.Store.Memory(), "tcp"),
		log:     loglimit.New(o.Logger, time.Now),
	}
	s.unfinished = conns.NewUnfinished(o.Store.Memory(), "tcp-unfinished", o.InputStall,
		2*int64(o.MaxFrame)+eventsMemory)
	s.replies = o.Store.Memory().NewLeases(memory.LeaseOptions{
		Name: "tcp-gets", Holds: "buffers of GETs that are answered; at the limit frames are shorter " +
			"and further ones wait",
		Limit: o.Store.Memory().Share(repliesPart, maxReplies), Small: smallReply, Stall: o.ReplyStall,
	})
	s.conns = conns.New(conns.Options{
		Listener: "tcp",
		Limit:    o.MaxConnections,
		Log:      s.log,
		Full:     s.turnAway,
		Idle:     o.Idle,
	})
	s.small.New = func() any {
		b := make([]byte, startBuffer)
		return &b
	}
	s.gets.New = func() any { return new(getBuffers) }
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
	msg := fmt.Sprintf("%d connections are open, which is the limit; raise tcp_max_connections",
		s.o.MaxConnections)
	_ = nc.SetWriteDeadline(time.Now().Add(time.Second)) // the peer may not read
	_, _ = nc.Write(wire.AppendFrame(nil, wire.AppendError(nil, msg)))
}

func (s *Server) serve(nc *conns.Conn) {
	err := newConn(s, nc).run()
	_ = nc.Close() // nothing is pending: replies are written before run returns
	if err != nil {
		s.log.Log(slog.LevelInfo, "closed", "connection closed", "peer", nc.RemoteAddr().String(), "err",
			err)
	}
}

// Shutdown closes all connections and waits for them; what they had received
// is in the store when it returns. The caller closes the listeners first.
func (s *Server) Shutdown() {
	s.conns.Shutdown()
	s.log.Close()
}
