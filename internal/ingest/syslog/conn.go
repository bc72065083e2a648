package syslog

import (
	"errors"
	"io"
	"os"

	"dalmatiner/internal/host/memory"
	"dalmatiner/internal/ingest/conns"
)

// run serves a connection until it ends.
func (s *Server) run(nc *conns.Conn) {
	s.buffers.Add(startBuffer)
	c := &conn{
		s:     s,
		nc:    nc,
		buf:   make([]byte, startBuffer),
		lease: s.unfinished.Lease(),
		out:   writer{s: s, peer: conns.PeerOf(nc)},
	}
	c.start = c.buf
	c.in = conns.Reader{From: nc, Conn: nc, Lease: c.lease}
	err := c.loop()
	_ = nc.Close() // nothing is ever written
	s.refusals.Ended(nc, c.lease.Bytes() > 0, err)
	if c.lease.Bytes() == 0 {
		s.buffers.Add(startBuffer - len(c.buf)) // a busy sender's was larger
	}
	c.lease.Release()
	s.buffers.Add(-startBuffer)
}

// conn is one TCP connection.
type conn struct {
	s     *Server
	nc    *conns.Conn
	buf   []byte
	r, w  int           // unread bytes are buf[r:w]
	start []byte        // the buffer that every connection has
	lease *memory.Lease // of buf where a message needs more
	in    conns.Reader
	split splitter
	out   writer
}

// loop writes after every read, so that nothing waits for a sender to speak again.
func (c *conn) loop() error {
	for {
		n, err := c.in.Read(c.buf[c.w:])
		c.s.stats.BytesRead.Add(int64(n))
		c.w += n
		if err := c.take(); err != nil {
			return err
		}
		if err != nil {
			return c.end(err)
		}
		if err := c.makeRoom(n == startBuffer); err != nil {
			if !c.s.conns.ShuttingDown() {
				c.s.refusals.Count("memory", c.out.peer, []byte(err.Error()))
			}
			return err
		}
	}
}

// makeRoom makes room for the next read. A busy sender's buffer, and one that is full of a message,
// becomes large enough for every message. While others have the memory for that, a busy sender goes
// on with what it has, and one with a message waits and is not read from.
func (c *conn) makeRoom(busy bool) error {
	left := c.buf[c.r:c.w]
	full := len(left) == len(c.buf)
	switch {
	case c.lease.Bytes() > 0 && len(left) <= startBuffer/2:
		c.use(c.start, left) // the large message is over
		c.lease.Release()
	case len(c.buf) == maxBuffer || !full && !busy:
		c.use(c.buf, left)
	case c.s.buffers.Room(maxBuffer - startBuffer):
		c.s.buffers.Add(maxBuffer - startBuffer)
		c.use(make([]byte, maxBuffer), left)
	case full:
		if err := c.lease.GrowWhenFree(c.nc.Context(), maxBuffer); err != nil {
			return err
		}
		c.use(make([]byte, maxBuffer), left)
	default:
		c.use(c.buf, left)
	}
	return nil
}

// use goes on with a buffer, which may be the same.
func (c *conn) use(buf, left []byte) {
	c.r, c.w = 0, copy(buf, left)
	c.buf = buf
}

// take stores all whole messages in the buffer.
func (c *conn) take() error {
	if c.r == c.w {
		return nil
	}
	c.out.begin()
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
			c.lease.Begin() // the time of the next message
		}
		if c.r += used; used == 0 {
			break
		}
	}
	return errors.Join(bad, c.out.end())
}

// end takes what a sender left behind without an end: the end of the connection is one for a
// message without a length.
func (c *conn) end(err error) error {
	rest := c.buf[c.r:c.w]
	c.out.begin()
	switch {
	case c.split.skip > 0, beginsWithLength(rest), len(rest) > MaxMessage:
		c.s.stats.Messages.Add(1)
		c.s.refusals.Count("cut", c.out.peer, rest)
	case !c.split.skipLine && errors.Is(err, io.EOF):
		c.out.add(rest)
	case len(rest) > 0:
		c.s.stats.Messages.Add(1)
		c.s.refusals.Count("cut", c.out.peer, rest)
	}
	werr := c.out.end()
	if errors.Is(err, io.EOF) || errors.Is(err, os.ErrDeadlineExceeded) && c.s.conns.ShuttingDown() {
		err = nil
	}
	return errors.Join(err, werr)
}
