package graphite

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"

	"dalmatiner/internal/host/memory"
	"dalmatiner/internal/ingest/conns"
	"dalmatiner/internal/ingest/datagram"
)

const (
	// startBuffer is the read buffer a connection starts with, maxBuffer what
	// a busy one grows to, and what a frame needs at least.
	startBuffer = 16 << 10
	maxBuffer   = 256 << 10

	// maxFrame is the largest pickled list, as in carbon.
	maxFrame = 1 << 20

	// maxSkip is the largest frame that is passed over. A longer one is no
	// frame: the sender speaks something else.
	maxSkip = 64 << 20

	frameHeader = 4
)

// conn is one TCP connection.
type conn struct {
	s    *Server
	nc   *conns.Conn
	app  appender
	buf  []byte
	r, w int // unread bytes are buf[r:w]

	start []byte        // the buffer that every connection has
	lease *memory.Lease // of buf where a frame needs more
	in    conns.Reader

	skipLine  bool // the rest of a line that is too long is passed over
	skipBytes int  // of a frame that is too long
	pickled   bool
}

// run serves the connection until it ends: every read is consumed and
// committed at once, so that nothing waits for a sender to speak again.
func (c *conn) run(consume func(*conn) error) error {
	for {
		n, err := c.in.Read(c.buf[c.w:])
		c.s.stats.BytesRead.Add(int64(n))
		c.w += n
		if n > 0 {
			if err := c.take(consume); err != nil {
				return err
			}
		}
		if err != nil {
			return c.end(err)
		}
		if err := c.makeRoom(); err != nil {
			c.app.refuse(noMemory, []byte(err.Error()))
			return err
		}
	}
}

func (c *conn) take(consume func(*conn) error) error {
	if err := c.app.begin(); err != nil {
		return err
	}
	return errors.Join(consume(c), c.app.commit())
}

// end tells an orderly end from a broken connection. What was cut is no line,
// even if it looks like one: "1" may be the start of "15".
func (c *conn) end(err error) error {
	rest := c.buf[c.r:c.w]
	switch {
	case c.pickled && len(rest)+c.skipBytes > 0:
		c.app.refuse(frameCut, rest)
	case len(rest) > 0:
		c.s.stats.Lines.Add(1)
		c.app.refuse(lineCut, rest)
	}
	if errors.Is(err, io.EOF) || errors.Is(err, os.ErrDeadlineExceeded) && c.s.conns.ShuttingDown() {
		return nil
	}
	return err
}

// makeRoom makes room for the next read. A frame that needs more than a busy
// sender's buffer gets it from the memory of unfinished input: while others have
// that the connection waits and does not read.
func (c *conn) makeRoom() error {
	left := c.buf[c.r:c.w]
	size := len(c.buf)
	switch leased := c.lease.Bytes(); {
	case leased > 0 && len(left) <= startBuffer/2:
		c.use(c.start, left) // a large frame is over
		c.lease.Release()
		return nil
	case len(left) == size && (leased > 0 || 4*size > maxBuffer || !c.s.buffers.Room(3*size)):
		return c.leaseRoom(left) // a frame, whose size was checked
	case c.w == size && leased == 0 && size < maxBuffer && c.s.buffers.Room(3*size):
		c.s.buffers.Add(3 * size) // a busy sender
		c.use(make([]byte, 4*size), left)
		return nil
	}
	c.r, c.w = 0, copy(c.buf, left)
	return nil
}

// leaseRoom takes a buffer of twice the size for the bytes that are left.
func (c *conn) leaseRoom(left []byte) error {
	had, size := c.lease.Bytes(), 2*len(c.buf)
	if err := c.lease.GrowWhenFree(c.nc.Context(), int64(size)); err != nil {
		return err
	}
	if had == 0 {
		c.s.buffers.Add(startBuffer - len(c.buf))
	}
	c.use(make([]byte, size), left)
	c.lease.Shrink(had)
	return nil
}

// use goes on with another buffer.
func (c *conn) use(buf, left []byte) {
	c.r, c.w = 0, copy(buf, left)
	c.buf = buf
}

// lines consumes all whole lines.
func (c *conn) lines() error {
	if c.skipLine {
		i := bytes.IndexByte(c.buf[c.r:c.w], '\n')
		if i < 0 {
			c.r = c.w
			return nil
		}
		c.r += i + 1
		c.skipLine = false
	}
	if n := c.app.text(c.buf[c.r:c.w], false); n > 0 {
		c.r += n
		c.nc.Proven()
	}
	if rest := c.buf[c.r:c.w]; len(rest) > c.s.o.MaxLine {
		c.s.stats.Lines.Add(1)
		c.app.refuse(lineTooLong, rest)
		c.r, c.skipLine = c.w, true
	}
	return nil
}

// frames consumes all whole frames.
func (c *conn) frames() error {
	c.pickled = true
	for {
		if c.skipBytes > 0 {
			n := min(c.skipBytes, c.w-c.r)
			c.r += n
			c.skipBytes -= n
		}
		rest := c.buf[c.r:c.w]
		if len(rest) < frameHeader {
			return nil
		}
		n := int(binary.BigEndian.Uint32(rest))
		switch {
		case n > maxSkip:
			c.app.refuse(frameTooLong, rest)
			c.r = c.w
			return fmt.Errorf("a frame of %d bytes is no pickled list; is the sender set to the pickle "+
				"protocol?", n)
		case n > maxFrame:
			c.s.stats.Frames.Add(1)
			c.app.refuse(frameTooLong, fmt.Appendf(nil, "%d bytes, the limit is %d", n, maxFrame))
			c.r += frameHeader
			c.skipBytes = n
		case len(rest) < frameHeader+n:
			return nil
		default:
			c.s.stats.Frames.Add(1)
			c.app.list(c.s.unpicklers, rest[frameHeader:frameHeader+n])
			c.r += frameHeader + n
			c.nc.Proven()
			c.lease.Begin() // the time of the next frame
		}
	}
}

// readPackets takes the lines of the datagrams that come to one socket.
func (s *Server) readPackets(nc *net.UDPConn) error {
	buf := make([]byte, datagram.MaxPayload)
	a := s.newAppender(netip.AddrPort{})
	a.bucket.NeverWait()
	a.tags.NeverWait = true
	err := s.packetLoop(nc, &a, buf)
	if errors.Is(err, net.ErrClosed) {
		err = nil
	}
	return errors.Join(err, a.bucket.Close())
}

func (s *Server) packetLoop(nc *net.UDPConn, a *appender, buf []byte) error {
	for {
		n, peer, err := nc.ReadFromUDPAddrPort(buf)
		if err != nil {
			return err
		}
		s.stats.Datagrams.Add(1)
		s.stats.BytesRead.Add(int64(n))
		a.peer = peer
		if err := a.begin(); err != nil {
			return err
		}
		a.text(buf[:n], true)
		if err := a.commit(); err != nil {
			return err
		}
	}
}
