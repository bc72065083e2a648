// Package lines reads connections whose messages are lines: as many connections as there may be,
// each with one buffer, and no line longer than that. It is shared by protocols of text.
package lines

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync/atomic"
	"time"

	"dalmatiner/internal/host/loglimit"
	"dalmatiner/internal/host/memory"
	"dalmatiner/internal/ingest/conns"
	"dalmatiner/internal/ingest/unacked"
)

const (
	// MaxLine is the longest line in bytes, without its newline. A longer one is skipped.
	MaxLine = startBuffer - 1

	// startBuffer is the buffer of every connection, busyBuffer that of one that fills it.
	startBuffer = 16 << 10
	busyBuffer  = 64 << 10
)

// Sender takes the lines of one connection. Its calls come from one goroutine.
type Sender interface {
	// Begin comes before the lines of a read. An error ends the connection.
	Begin() error
	// Line takes a line without its end, which is valid during the call. more is false where the
	// sender says that it is done: nothing that follows is read.
	Line(line []byte) (more bool)
	// Commit comes behind the lines of a read. An error ends the connection.
	Commit() error
	// Close comes once, at the end of the connection.
	Close() error
}

// Options configure a server. All but Idle are required.
type Options struct {
	Listener string // its name in the log
	Limit    int    // open connections
	LimitKey string // the key of the configuration that says so
	Memory   *memory.Budget
	Log      *loglimit.Logger
	Refusals *unacked.Refusals
	Idle     time.Duration // connections that send nothing for so long are closed; 0 keeps them
	Open     func(nc *conns.Conn) Sender
}

// Server serves connections. It may serve several listeners.
type Server struct {
	o       Options
	conns   *conns.Set
	buffers *conns.Buffers
	stats   Stats
}

// Stats counts what the server did. The fields only grow.
type Stats struct {
	BytesRead atomic.Int64
	Lines     atomic.Int64 // refused ones included, empty ones not
}

// New returns a server that serves nothing yet.
func New(o Options) *Server {
	s := &Server{o: o, buffers: conns.NewBuffers(o.Memory, o.Listener)}
	s.conns = conns.New(conns.Options{Listener: o.Listener, Limit: o.Limit, Log: o.Log,
		Full: s.turnAway, Idle: o.Idle})
	return s
}

// Stats returns the server's counters.
func (s *Server) Stats() *Stats { return &s.stats }

// Connections returns the open connections.
func (s *Server) Connections() *conns.Set { return s.conns }

// Serve accepts connections until the listener fails or is closed, when it returns nil.
func (s *Server) Serve(ln net.Listener) error { return s.conns.Serve(ln, s.run) }

// Shutdown closes all connections and waits for them. The caller closes the listeners first.
func (s *Server) Shutdown() { s.conns.Shutdown() }

// turnAway counts a connection beyond the limit.
func (s *Server) turnAway(nc net.Conn) {
	s.o.Refusals.Count("too_many_connections", conns.PeerOf(nc),
		fmt.Appendf(nil, "%d connections are open; raise %s", s.o.Limit, s.o.LimitKey))
}

func (s *Server) run(nc *conns.Conn) {
	s.buffers.Add(startBuffer)
	c := &conn{s: s, nc: nc, buf: make([]byte, startBuffer), out: s.o.Open(nc)}
	err := c.loop()
	err = errors.Join(err, c.out.Close())
	_ = nc.Close() // what was to be said was said
	s.o.Refusals.Ended(nc, false, err)
	s.buffers.Add(-len(c.buf))
}

// conn is one connection.
type conn struct {
	s    *Server
	nc   *conns.Conn
	buf  []byte
	r, w int  // unread bytes are buf[r:w]
	skip bool // the rest of a line that is too long is passed over
	out  Sender
}

// loop takes the lines of every read at once, so that nothing waits for a sender to speak again.
func (c *conn) loop() error {
	for {
		c.nc.Idle()
		n, err := c.nc.Read(c.buf[c.w:])
		c.nc.Busy()
		c.s.stats.BytesRead.Add(int64(n))
		c.w += n
		more, takeErr := c.take()
		if takeErr != nil || !more {
			return takeErr
		}
		if err != nil {
			return c.end(err)
		}
		c.makeRoom()
	}
}

// take takes all whole lines.
func (c *conn) take() (more bool, err error) {
	if bytes.IndexByte(c.buf[c.r:c.w], '\n') < 0 {
		return true, nil
	}
	if err := c.out.Begin(); err != nil {
		return false, err
	}
	lines := int64(0)
	for more = true; more; {
		n := bytes.IndexByte(c.buf[c.r:c.w], '\n')
		if n < 0 {
			break
		}
		line := bytes.TrimSuffix(c.buf[c.r:c.r+n], []byte{'\r'})
		c.r += n + 1
		if c.skip || len(line) == 0 {
			c.skip = false
			continue
		}
		lines++
		if len(line) > MaxLine {
			c.s.o.Refusals.Count("line_too_long", conns.PeerOf(c.nc), line)
			continue
		}
		more = c.out.Line(line)
	}
	c.s.stats.Lines.Add(lines)
	c.nc.Proven()
	return more, c.out.Commit()
}

// end tells an orderly end from a broken connection. What was cut is no line, even if it looks
// like one: "1" may be the start of "15".
func (c *conn) end(err error) error {
	if rest := c.buf[c.r:c.w]; len(rest) > 0 && !c.skip {
		c.s.stats.Lines.Add(1)
		c.s.o.Refusals.Count("line_cut", conns.PeerOf(c.nc), rest)
	}
	if errors.Is(err, io.EOF) ||
		errors.Is(err, os.ErrDeadlineExceeded) && c.s.conns.ShuttingDown() {
		return nil
	}
	return err
}

// makeRoom makes room for the next read. A line that fills the first buffer is too long.
func (c *conn) makeRoom() {
	left := c.buf[c.r:c.w]
	switch {
	case c.skip:
		left = nil
	case len(left) > MaxLine:
		c.s.stats.Lines.Add(1)
		c.s.o.Refusals.Count("line_too_long", conns.PeerOf(c.nc), left)
		c.skip, left = true, nil
	case c.w == startBuffer && len(c.buf) == startBuffer &&
		c.s.buffers.Room(busyBuffer-startBuffer):
		c.s.buffers.Add(busyBuffer - startBuffer)
		c.buf = append(make([]byte, 0, busyBuffer), c.buf...)[:busyBuffer]
		left = c.buf[c.r:c.w]
	}
	c.r, c.w = 0, copy(c.buf, left)
}
