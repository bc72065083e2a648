// Package syslog takes messages of syslog over UDP and TCP, in the BSD format (RFC 3164) and in
// that of RFC 5424, and stores each as an event. It never sends an answer: it counts what it
// refuses under syslog_<reason>, logs a sample, and reads on. DESIGN.md has the form of the
// events.
package syslog

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync/atomic"
	"time"

	"dalmatiner/internal/host/loglimit"
	"dalmatiner/internal/host/memory"
	"dalmatiner/internal/ingest/ahead"
	"dalmatiner/internal/ingest/conns"
	"dalmatiner/internal/ingest/datagram"
	"dalmatiner/internal/ingest/unacked"
	"dalmatiner/internal/model/account"
	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/store/events"
)

// Options configures a server. Events, Buckets, Memory, Account and Logger are required; zero
// limits take their defaults.
type Options struct {
	Events  Events
	Buckets Buckets
	Memory  *memory.Budget
	Account *account.Account // that refused messages are counted in
	Now     func() time.Time // of messages without a time; time.Now
	Logger  *slog.Logger

	Bucket         string         // that all events go to; syslog
	Zone           *time.Location // of times that name none; UTC
	MaxFuture      time.Duration  // messages further ahead get the time of arrival; 10 min
	Ahead          *ahead.Senders // of such messages; may be nil
	MaxConnections int            // 1024

	Idle time.Duration // connections that send nothing for so long are closed; 0 keeps them

	// InputStall is how long a sender may pause within a message that has leased memory; 30 s.
	InputStall time.Duration
}

// Events is where events go: an events.Store.
type Events interface {
	Write(bucket string, list []events.Event) (events.Written, error)
}

// Buckets makes the bucket where it is missing: a write.Target.
type Buckets interface {
	EnsureBucket(name string, form buckets.Form) (buckets.Info, error)
}

// Defaults of the options.
const (
	defaultBucket         = "syslog"
	defaultMaxConnections = 1024
	defaultMaxFuture      = 10 * time.Minute
	defaultInputStall     = 30 * time.Second
)

// startBuffer is the read buffer of a connection. maxBuffer is the read buffer of one that sends a
// lot, or whose messages do not fit startBuffer.
const (
	startBuffer = 16 << 10
	maxBuffer   = MaxMessage + startBuffer
)

// Server serves connections and datagrams. It may serve several listeners.
type Server struct {
	o        Options
	log      *loglimit.Logger
	refusals *unacked.Refusals
	conns    *conns.Set
	stats    Stats

	buffers    *conns.Buffers
	unfinished *memory.Leases
	batches    batches

	packets datagram.Group
}

// Stats counts what the server did. The fields only grow.
type Stats struct {
	BytesRead atomic.Int64
	Messages  atomic.Int64 // refused ones included
	Ahead     atomic.Int64 // messages that got the time of arrival, because theirs was too far ahead
}

// New returns a server that serves nothing yet.
func New(o Options) *Server {
	o.Bucket = cmp.Or(o.Bucket, defaultBucket)
	o.MaxConnections = cmp.Or(o.MaxConnections, defaultMaxConnections)
	o.MaxFuture = cmp.Or(o.MaxFuture, defaultMaxFuture)
	if o.Zone == nil {
		o.Zone = time.UTC
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	o.InputStall = cmp.Or(o.InputStall, defaultInputStall)
	s := &Server{
		o:       o,
		buffers: conns.NewBuffers(o.Memory, "syslog"),
		log:     loglimit.New(o.Logger, time.Now),
		batches: newBatches(o.Memory),
	}
	s.unfinished = conns.NewUnfinished(o.Memory, "syslog-unfinished", o.InputStall, 0)
	s.refusals = unacked.NewRefusals("syslog", o.Account, s.log)
	s.conns = conns.New(conns.Options{
		Listener: "syslog",
		Limit:    o.MaxConnections,
		Log:      s.log,
		Full:     s.turnAway,
		Idle:     o.Idle,
	})
	return s
}

// Stats returns the server's counters.
func (s *Server) Stats() *Stats { return &s.stats }

// Connections returns the open connections.
func (s *Server) Connections() *conns.Set { return s.conns }

// Serve accepts connections until the listener fails or is closed, when it returns nil.
func (s *Server) Serve(ln net.Listener) error { return s.conns.Serve(ln, s.run) }

// turnAway counts a connection beyond the limit.
func (s *Server) turnAway(nc net.Conn) {
	s.refusals.Count("many_connections", conns.PeerOf(nc),
		fmt.Appendf(nil, "%d connections are open; raise syslog.max_connections", s.o.MaxConnections))
}

// ServePackets takes a message from each datagram until the sockets are closed, when it returns
// nil. It closes them when one of them fails.
func (s *Server) ServePackets(socks *datagram.Sockets) error {
	return s.packets.Serve(socks, s.readPackets)
}

// KernelDrops returns how many datagrams the kernel dropped because they came faster than they
// were read.
func (s *Server) KernelDrops() uint64 { return s.packets.Drops() }

// Shutdown closes all connections and waits for them; what they had received is in the store when
// it returns. The caller closes listeners and sockets first, and waits for ServePackets.
func (s *Server) Shutdown() {
	s.conns.Shutdown()
	s.log.Close()
}

func (s *Server) readPackets(nc *net.UDPConn) error {
	buf := make([]byte, datagram.MaxPayload)
	w := writer{s: s}
	for {
		n, peer, err := nc.ReadFromUDPAddrPort(buf)
		if errors.Is(err, net.ErrClosed) {
			return nil
		}
		if err != nil {
			return err
		}
		s.stats.BytesRead.Add(int64(n))
		w.begin()
		w.peer = peer
		w.add(buf[:n])
		if err := w.end(); err != nil {
			return err
		}
	}
}
