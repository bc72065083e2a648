package ddbtcp

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"dalmatiner/internal/ingest/conns"
	"dalmatiner/internal/memory"
	"dalmatiner/internal/store"
	"dalmatiner/internal/wire"
)

const (
	// startBuffer is the read buffer a connection starts with, maxBuffer what
	// a busy one grows to: 256 KiB reads are where the cost of a system call
	// no longer shows, and thousands of idle senders should not hold them.
	startBuffer = 16 << 10
	maxBuffer   = 256 << 10

	// writeTimeout ends a connection whose peer does not read its replies.
	writeTimeout = 30 * time.Second
)

// conn is one connection.
type conn struct {
	s    *Server
	nc   net.Conn
	buf  []byte
	lent *[]byte // what buf is of pool, or nil
	pool *sync.Pool
	r    int // unread bytes are buf[r:w]
	w    int
	out  []byte
	enc  wire.GetEncoder

	stream   *wire.StreamParser // nil in normal mode
	sink     *sink
	gather   gathering
	deadline bool      // a read deadline is set
	due      time.Time // when points that wait for a flush are committed, zero when none do
}

// errRefused ends a connection after an ERROR was sent for it.
type errRefused struct {
	reason string // under which it is counted
	err    error
}

func (e *errRefused) Error() string { return e.err.Error() }
func (e *errRefused) Unwrap() error { return e.err }

// run serves the connection until it ends. Requests are answered in order; a
// refused one is answered with ERROR, and the connection ends.
func (c *conn) run() error {
	err := c.loop()
	c.gather.close()
	if c.sink != nil {
		err = errors.Join(err, c.sink.close())
	}
	var refused *errRefused
	if errors.As(err, &refused) {
		c.s.o.Store.Account().RefuseRequest(refused.reason)
		// A classic stream has no replies: its client would not read one.
		if c.stream == nil || c.sink.acks != nil {
			err = errors.Join(err, c.reply(wire.AppendError(nil, refused.Error())))
			c.drain()
		}
	}
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// drain reads what the peer still sends for a moment, so that closing does not
// reset the connection before the peer has read the ERROR.
func (c *conn) drain() {
	if t, ok := c.nc.(*net.TCPConn); ok && t.CloseWrite() == nil {
		_ = c.nc.SetReadDeadline(time.Now().Add(time.Second)) // bounded either way
		_, _ = io.CopyN(io.Discard, c.nc, 1<<20)
	}
}

func (c *conn) loop() error {
	for {
		if err := c.consume(); err != nil {
			return err
		}
		if err := c.fill(); err != nil {
			return err
		}
	}
}

// consume handles all whole messages in the buffer.
func (c *conn) consume() error {
	for c.stream == nil {
		payload, rest, err := wire.ParseFrame(c.buf[c.r:c.w], c.s.o.MaxFrame)
		if errors.Is(err, wire.ErrIncomplete) {
			return nil
		}
		if err != nil {
			return refuse(err)
		}
		c.r = c.w - len(rest)
		c.s.stats.Requests.Add(1)
		if err := c.request(payload); err != nil {
			return err
		}
	}
	n, err := c.stream.Parse(c.buf[c.r:c.w], c.sink)
	c.r += n
	if err != nil {
		return refuse(err)
	}
	return c.sink.err
}

// fill reads more bytes behind the unread ones.
func (c *conn) fill() error {
	c.w = copy(c.buf, c.buf[c.r:c.w]) // what is left is less than a message
	c.r = 0
	if c.w == len(c.buf) {
		// One message fills the buffer. Its limit was checked by the parser.
		c.grow()
	}
	if err := c.armDeadline(); err != nil {
		return err
	}
	n, err := c.nc.Read(c.buf[c.w:])
	c.s.stats.BytesRead.Add(int64(n))
	c.w += n
	if c.gather.read(n) {
		c.deadline = false // the next one comes sooner
	}
	if c.w == len(c.buf) && len(c.buf) < maxBuffer && c.s.buffers.Room(maxBuffer) {
		c.grow() // a busy sender
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return c.idle()
	}
	return err
}

// borrow takes the buffer from a pool: senders that reconnect for every flush
// would otherwise have a new one cleared each time.
func (c *conn) borrow(pool *sync.Pool) {
	c.pool, c.lent = pool, pool.Get().(*[]byte)
	c.buf = *c.lent
	c.s.buffers.Add(len(c.buf))
}

// giveBack ends the use of the buffer.
func (c *conn) giveBack() {
	if c.lent != nil {
		c.pool.Put(c.lent)
	}
	c.s.buffers.Add(-len(c.buf))
	c.buf, c.lent = nil, nil
}

// grow makes the buffer larger: a large one of the pool, or for a message that
// does not fit it, one of its own.
func (c *conn) grow() {
	old, pool, lent := c.buf, c.pool, c.lent
	if size := 2 * len(old); size <= maxBuffer {
		c.borrow(&c.s.large)
	} else {
		c.buf, c.lent = make([]byte, size), nil
		c.s.buffers.Add(size)
	}
	c.s.buffers.Add(-len(old))
	c.w = copy(c.buf, old[c.r:c.w])
	c.r = 0
	if lent != nil {
		pool.Put(lent)
	}
}

// armDeadline makes a read return in time to commit points that wait for a
// flush message: a slow sender that never flushes loses nothing. The original
// kept them until the sender spoke again. It also makes one return to look for
// what was gathered.
func (c *conn) armDeadline() error {
	if c.sink == nil || c.deadline || !c.gather.on && !c.sink.Pending() || c.s.ctx.Err() != nil {
		return nil
	}
	now := time.Now()
	if c.due.IsZero() && c.sink.Pending() {
		c.due = now.Add(c.sink.delay)
	}
	at := c.due
	if look := now.Add(gatherTime); c.gather.on && (at.IsZero() || look.Before(at)) {
		at = look
	}
	c.deadline = true
	return c.wakeAt(at)
}

// wakeAt makes a read return at t, or never by itself when t is zero. Shutdown
// and a failed acknowledgement set conns.LongAgo from other goroutines, after they
// have said why; a deadline that overtakes theirs is taken back.
func (c *conn) wakeAt(t time.Time) error {
	if err := c.nc.SetReadDeadline(t); err != nil {
		return err
	}
	if c.s.ctx.Err() != nil || c.sink.broken() {
		return c.nc.SetReadDeadline(conns.LongAgo)
	}
	return nil
}

// idle commits what is due at the deadline, or ends the connection at shutdown.
func (c *conn) idle() error {
	if c.s.ctx.Err() != nil {
		return io.EOF
	}
	if c.sink.broken() {
		return errBroken
	}
	c.deadline = false
	if !c.due.IsZero() && !time.Now().Before(c.due) {
		c.due = time.Time{}
		if c.sink.Flush(); c.sink.err != nil {
			return c.sink.err
		}
	}
	if err := c.gather.looked(); err != nil {
		return err
	}
	if c.gather.on {
		return nil // the next read gets a deadline anyway
	}
	return c.wakeAt(time.Time{})
}

// reply writes one frame.
func (c *conn) reply(payload []byte) error {
	c.out = wire.AppendFrame(c.out[:0], payload)
	return c.write(c.out)
}

func (c *conn) write(p []byte) error {
	if err := c.nc.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
		return err
	}
	_, err := c.nc.Write(p)
	return err
}

// refuse gives an error of the wire or the store the reason it is counted
// under.
func refuse(err error) error {
	reason := "internal"
	switch {
	case errors.Is(err, wire.ErrTooLarge):
		reason = "too_large"
	case errors.Is(err, wire.ErrMalformed):
		reason = "malformed"
	case errors.Is(err, wire.ErrUnknownOpcode):
		reason = "unknown_opcode"
	case errors.Is(err, wire.ErrUnsupported):
		reason = "unsupported"
	case errors.As(err, new(*memory.Refusal)):
		reason = "memory"
	case errors.Is(err, store.ErrUnknownBucket):
		reason = "unknown_bucket"
	case errors.Is(err, store.ErrBucketExists):
		reason = "bucket_exists"
	case errors.Is(err, store.ErrInvalidBucket):
		reason = "invalid_bucket"
	}
	return &errRefused{reason: reason, err: err}
}
