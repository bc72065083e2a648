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
	nc   net.Conn
	in   inlet
	buf  []byte
	r, w int // unread bytes are buf[r:w]

	skipLine  bool // the rest of a line that is too long is passed over
	skipBytes int  // of a frame that is too long
	pickled   bool
}

// run serves the connection until it ends: every read is consumed and
// committed at once, so that nothing waits for a sender to speak again.
func (c *conn) run(consume func(*conn) error) error {
	for {
		n, err := c.nc.Read(c.buf[c.w:])
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
		c.makeRoom()
	}
}

func (c *conn) take(consume func(*conn) error) error {
	if err := c.in.begin(); err != nil {
		return err
	}
	return errors.Join(consume(c), c.in.commit())
}

// end tells an orderly end from a broken connection. What was cut is no line,
// even if it looks like one: "1" may be the start of "15".
func (c *conn) end(err error) error {
	rest := c.buf[c.r:c.w]
	switch {
	case c.pickled && len(rest)+c.skipBytes > 0:
		c.in.refuse(frameCut, rest)
	case len(rest) > 0:
		c.s.stats.Lines.Add(1)
		c.in.refuse(lineCut, rest)
	}
	if errors.Is(err, io.EOF) || errors.Is(err, os.ErrDeadlineExceeded) && c.s.conns.ShuttingDown() {
		return nil
	}
	return err
}

// makeRoom makes room for the next read.
func (c *conn) makeRoom() {
	left := c.buf[c.r:c.w]
	size := len(c.buf)
	switch {
	case len(left) == 0 && size > maxBuffer:
		size = maxBuffer // a large frame is over
	case len(left) == size:
		size *= 2 // a frame, whose size was checked
	case c.w == size && size < maxBuffer && c.s.buffers.Room(3*size):
		size *= 4 // a busy sender
	}
	if size != len(c.buf) {
		c.s.buffers.Add(size - len(c.buf))
		c.buf = make([]byte, size)
	}
	c.r, c.w = 0, copy(c.buf, left)
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
	c.r += c.in.text(c.buf[c.r:c.w], false)
	if rest := c.buf[c.r:c.w]; len(rest) > c.s.o.MaxLine {
		c.s.stats.Lines.Add(1)
		c.in.refuse(lineTooLong, rest)
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
			c.in.refuse(frameTooLong, rest)
			c.r = c.w
			return fmt.Errorf("a frame of %d bytes is no pickled list; is the sender set to the pickle protocol?", n)
		case n > maxFrame:
			c.s.stats.Frames.Add(1)
			c.in.refuse(frameTooLong, fmt.Appendf(nil, "%d bytes, the limit is %d", n, maxFrame))
			c.r += frameHeader
			c.skipBytes = n
		case len(rest) < frameHeader+n:
			return nil
		default:
			c.s.stats.Frames.Add(1)
			c.frame(rest[frameHeader : frameHeader+n])
			c.r += frameHeader + n
		}
	}
}

func (c *conn) frame(frame []byte) {
	u := c.s.unpicklers.Get().(*unpickler)
	c.in.list(u, frame)
	c.s.unpicklers.Put(u)
}

// readPackets takes the lines of the datagrams that come to one socket.
func (s *Server) readPackets(nc *net.UDPConn) error {
	buf := make([]byte, datagram.MaxPayload)
	in := s.newInlet(netip.AddrPort{})
	in.bucket.NeverWait()
	err := s.packetLoop(nc, &in, buf)
	if errors.Is(err, net.ErrClosed) {
		err = nil
	}
	return errors.Join(err, in.bucket.Close())
}

func (s *Server) packetLoop(nc *net.UDPConn, in *inlet, buf []byte) error {
	for {
		n, peer, err := nc.ReadFromUDPAddrPort(buf)
		if err != nil {
			return err
		}
		s.stats.Datagrams.Add(1)
		s.stats.BytesRead.Add(int64(n))
		in.peer = peer
		if err := in.begin(); err != nil {
			return err
		}
		in.text(buf[:n], true)
		if err := in.commit(); err != nil {
			return err
		}
	}
}
