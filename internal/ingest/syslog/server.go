// Package syslog takes messages of syslog over UDP and TCP, in the BSD format (RFC 3164) and in
// that of RFC 5424, and stores each as an event. It never sends an answer: it counts what it
// refuses under syslog_<reason>, logs a sample, and reads on. DESIGN.md has the form of the
// events.
package syslog

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"sync/atomic"
	"time"

	"dalmatiner/internal/account"
	"dalmatiner/internal/buckets"
	"dalmatiner/internal/events"
	"dalmatiner/internal/ingest/conns"
	"dalmatiner/internal/ingest/datagram"
	"dalmatiner/internal/ingest/unacked"
	"dalmatiner/internal/loglimit"
	"dalmatiner/internal/memory"
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
	MaxConnections int            // 1024

	Idle time.Duration // connections that send nothing for so long are closed; 0 keeps them
}

// Events is where events go: an events.Store.
type Events interface {
	Write(bucket string, list []events.Event) (events.Written, error)
}

// Buckets makes the bucket where it is missing: a coordinator.Coordinator.
type Buckets interface {
	EnsureBucket(name string) (buckets.Info, error)
}

// Defaults of the options.
const (
	defaultBucket         = "syslog"
	defaultMaxConnections = 1024
)

// startBuffer is the read buffer of a connection, maxBuffer that of one whose messages do not fit
// it, or who sends a lot.
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
	buffers  *conns.Buffers
	stats    Stats

	packets datagram.Group
}

// Stats counts what the server did. The fields only grow.
type Stats struct {
	BytesRead atomic.Int64
	Messages  atomic.Int64 // refused ones included
}

// New returns a server that serves nothing yet.
func New(o Options) *Server {
	o.Bucket = cmp.Or(o.Bucket, defaultBucket)
	o.MaxConnections = cmp.Or(o.MaxConnections, defaultMaxConnections)
	if o.Zone == nil {
		o.Zone = time.UTC
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	s := &Server{o: o, buffers: conns.NewBuffers(o.Memory, "syslog"), log: loglimit.New(o.Logger, time.Now)}
	s.refusals = unacked.NewRefusals("syslog", o.Account, s.log)
	s.conns = conns.New(conns.Options{Listener: "syslog", Limit: o.MaxConnections, Log: s.log, Full: s.turnAway, Idle: o.Idle})
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
		w.peer = peer
		w.add(buf[:n])
		if err := w.write(); err != nil {
			return err
		}
	}
}

// run serves a connection until it ends.
func (s *Server) run(nc *conns.Conn) {
	s.buffers.Add(startBuffer)
	c := &conn{s: s, nc: nc, buf: make([]byte, startBuffer), out: writer{s: s, peer: conns.PeerOf(nc)}}
	err := c.loop()
	_ = nc.Close() // nothing is ever written
	if err != nil && nc.WhyCut() == "" {
		s.log.Log(slog.LevelInfo, "closed", "connection closed", "listener", "syslog", "peer", nc.RemoteAddr().String(), "err", err)
	}
	s.buffers.Add(-len(c.buf))
}

// conn is one TCP connection.
type conn struct {
	s     *Server
	nc    *conns.Conn
	buf   []byte
	r, w  int // unread bytes are buf[r:w]
	split splitter
	out   writer
}

// loop writes after every read, so that nothing waits for a sender to speak again.
func (c *conn) loop() error {
	for {
		c.nc.Idle()
		n, err := c.nc.Read(c.buf[c.w:])
		c.nc.Busy()
		c.s.stats.BytesRead.Add(int64(n))
		c.w += n
		if err := c.take(); err != nil {
			return err
		}
		if err != nil {
			return c.end(err)
		}
		left := copy(c.buf, c.buf[c.r:c.w])
		if c.r, c.w = 0, left; left == len(c.buf) || n == startBuffer && c.s.buffers.Room(maxBuffer-startBuffer) {
			c.grow()
		}
	}
}

// grow makes the buffer large enough for every message.
func (c *conn) grow() {
	if len(c.buf) == maxBuffer {
		return
	}
	c.s.buffers.Add(maxBuffer - len(c.buf))
	larger := make([]byte, maxBuffer)
	copy(larger, c.buf[:c.w])
	c.buf = larger
}

// take stores all whole messages in the buffer.
func (c *conn) take() error {
	var bad error
	for c.r < c.w {
		msg, used, ok, tooLong, err := c.split.next(c.buf[c.r:c.w])
		if bad = err; bad != nil {
			c.s.refusals.Count("bad_framing", c.out.peer, c.buf[c.r:c.w])
			break
		}
		if tooLong {
			c.s.stats.Messages.Add(1)
			c.s.refusals.Count("too_long", c.out.peer, c.buf[c.r:c.w])
		}
		if ok {
			c.out.add(msg)
			c.nc.Proven()
		}
		if c.r += used; used == 0 {
			break
		}
	}
	return errors.Join(bad, c.out.write())
}

// end takes what a sender left behind without an end: the end of the connection is one for a
// message without a length.
func (c *conn) end(err error) error {
	rest := c.buf[c.r:c.w]
	switch {
	case c.split.skip > 0, len(rest) > 0 && isDigit(rest[0]), len(rest) > MaxMessage:
		c.s.stats.Messages.Add(1)
		c.s.refusals.Count("cut", c.out.peer, rest)
	case !c.split.skipLine && errors.Is(err, io.EOF):
		c.out.add(rest)
	case len(rest) > 0:
		c.s.stats.Messages.Add(1)
		c.s.refusals.Count("cut", c.out.peer, rest)
	}
	werr := c.out.write()
	if errors.Is(err, io.EOF) || errors.Is(err, os.ErrDeadlineExceeded) && c.s.conns.ShuttingDown() {
		err = nil
	}
	return errors.Join(err, werr)
}

// writer stores the messages of one sender. It is not for concurrent use.
type writer struct {
	s     *Server
	peer  netip.AddrPort
	list  []events.Event
	terms []byte
	err   error // of a write between two calls of write
}

// batch is how many bytes of events are written at once.
const batch = 256 << 10

// add takes a message. Its bytes are read during the call only.
func (w *writer) add(src []byte) {
	now := w.s.o.Now()
	m := parse(src, clock{now, w.s.o.Zone})
	if len(m.text) == 0 && m.priority < 0 {
		return // an empty line
	}
	w.s.stats.Messages.Add(1)
	if m.time.IsZero() {
		m.time = now
	}
	start := len(w.terms)
	w.terms = m.appendTerm(w.terms, w.peer.Addr())
	// A slice of terms stays what it is where terms moves.
	w.list = append(w.list, events.Event{Time: m.time.UnixNano(), Body: w.terms[start:len(w.terms):len(w.terms)]})
	if len(w.terms) >= batch {
		w.err = w.write()
	}
}

// write stores what was added. An error means that nothing can be stored any more.
func (w *writer) write() error {
	if len(w.list) == 0 || w.err != nil {
		return w.err
	}
	err := w.store()
	if reason, ok := unacked.Refused(err); ok {
		for range w.list {
			w.s.refusals.Count(reason, w.peer, []byte(err.Error()))
		}
		err = nil
	}
	clear(w.list)
	w.list, w.terms = w.list[:0], w.terms[:0]
	if err != nil {
		return fmt.Errorf("storing events: %w", err)
	}
	return nil
}

func (w *writer) store() error {
	if _, err := w.s.o.Buckets.EnsureBucket(w.s.o.Bucket); err != nil {
		return err
	}
	_, err := w.s.o.Events.Write(w.s.o.Bucket, w.list)
	return err
}
