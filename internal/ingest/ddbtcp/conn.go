package ddbtcp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"dalmatiner/internal/host/memory"
	"dalmatiner/internal/ingest/conns"
	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/wire"
	"dalmatiner/internal/write"
)

const (
	// startBuffer is the read buffer a connection starts with, maxBuffer what
	// a busy one grows to: 256 KiB reads are where the cost of a system call
	// no longer shows, and thousands of idle senders should not hold them.
	startBuffer = 16 << 10
	maxBuffer   = 256 << 10

	// durableTimeout is how long an acknowledgement waits for the log.
	durableTimeout = 30 * time.Second

	// replyPiece is what a peer has to take of a reply within the time it has.
	replyPiece = 32 << 10
)

// conn is one connection.
type conn struct {
	s    *Server
	nc   *conns.Conn
	buf  []byte
	lent *[]byte // what buf is of pool, or nil
	pool *sync.Pool
	r    int // unread bytes are buf[r:w]
	w    int
	out  []byte

	lease *memory.Lease   // of buf where it is larger than those of the pools
	ctx   context.Context // of the connection; other leases are awaited together with lease
	in    conns.Reader

	stream    *wire.StreamParser // nil in normal mode
	committer *committer
	coalesce  coalescer
	deadline  bool      // a read deadline is set
	due       time.Time // when points that wait for a flush are committed, zero when none do
}

func newConn(s *Server, nc *conns.Conn) *conn {
	c := &conn{s: s, nc: nc, lease: s.unfinished.Lease()}
	c.ctx = c.lease.WithContext(nc.Context())
	c.in = conns.Reader{From: nc, Conn: nc, Lease: c.lease}
	return c
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
	c.borrow(&c.s.small)
	err := c.loop()
	unfinished := c.lease.Bytes() > 0
	c.giveBack() // others need not wait until the peer has read why it is refused
	c.coalesce.close()
	if c.committer != nil {
		err = errors.Join(err, c.committer.close())
	}
	var refused *errRefused
	if why := c.nc.WhyCut(); why != "" {
		if unfinished {
			c.s.o.Store.Account().RefuseRequest("cut_" + why)
		}
		return nil // the set has counted and logged it
	}
	if errors.As(err, &refused) {
		c.s.o.Store.Account().RefuseRequest(refused.reason)
		// A classic stream has no replies: its client would not read one.
		if c.stream == nil || c.committer.acks != nil {
			err = errors.Join(err, c.reply(wire.AppendError(nil, refused.Error())))
			c.drain()
		}
	}
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// drain reads what the peer still sends for a moment, such as the rest of a frame that is
// refused, so that closing does not reset the connection before the peer has read the ERROR.
func (c *conn) drain() {
	if t, ok := c.nc.Conn.(*net.TCPConn); ok && t.CloseWrite() == nil {
		_ = c.nc.SetReadDeadline(time.Now().Add(time.Second)) // bounded either way
		_, _ = io.CopyN(io.Discard, c.nc, int64(max(c.s.o.MaxFrame, 1<<20)))
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
		c.lease.Begin() // the time of the answer
		if err := c.request(payload); err != nil {
			return err
		}
		yield()
		c.whole()
	}
	n, err := c.stream.Parse(c.buf[c.r:c.w], c.committer.points, c.committer)
	c.r += n
	if n > 0 {
		c.whole()
	}
	if err != nil {
		return refuse(err)
	}
	return c.committer.err
}

// whole notes that the peer has sent something whole.
func (c *conn) whole() {
	c.nc.Proven()
	c.lease.Begin() // the time of the next message
}

// fill reads more bytes behind the unread ones.
func (c *conn) fill() error {
	c.w = copy(c.buf, c.buf[c.r:c.w]) // what is left is less than a message
	c.r = 0
	switch {
	case c.w == len(c.buf):
		// One message fills the buffer. Its limit was checked by the parser.
		if err := c.grow(); err != nil {
			return refuse(err)
		}
	case c.w <= startBuffer/2 && c.lease.Bytes() > 0:
		c.replace(&c.s.small) // a large message is over
		c.lease.Release()
	}
	if err := c.armDeadline(); err != nil {
		return err
	}
	n, err := c.in.Read(c.buf[c.w:])
	c.s.stats.BytesRead.Add(int64(n))
	c.w += n
	if c.coalesce.read(n) {
		c.deadline = false // the next one comes sooner
	}
	if c.w == len(c.buf) && len(c.buf) < maxBuffer && c.lease.Bytes() == 0 &&
		c.s.buffers.Room(maxBuffer) {
		c.replace(&c.s.large) // a busy sender
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
	c.drop(c.buf, c.lent, c.pool)
	c.lease.Release()
	c.buf, c.lent = nil, nil
}

// drop gives a buffer back to its pool, if it is from one.
func (c *conn) drop(buf []byte, lent *[]byte, pool *sync.Pool) {
	if lent != nil {
		c.s.buffers.Add(-len(buf))
		pool.Put(lent)
	}
}

// grow makes the buffer larger for a message that does not fit it: by a large one
// of the pool while there is room, else by one of its own, whose memory is leased
// first. While others have that memory the connection waits and does not read.
func (c *conn) grow() error {
	if len(c.buf) < maxBuffer && c.lease.Bytes() == 0 && c.s.buffers.Room(maxBuffer) {
		c.replace(&c.s.large)
		return nil
	}
	had := c.lease.Bytes()
	size := 2 * len(c.buf)
	if c.stream == nil {
		size = min(size, wire.FrameSize(c.buf[c.r:]))
	}
	if err := c.lease.GrowWhenFree(c.ctx, int64(size)); err != nil {
		return fmt.Errorf("a message of more than %d bytes: %w", len(c.buf)-1, err)
	}
	buf := make([]byte, size)
	c.w = copy(buf, c.buf[c.r:c.w])
	c.r = 0
	c.drop(c.buf, c.lent, c.pool)
	c.buf, c.lent = buf, nil
	c.lease.Shrink(had)
	return nil
}

// replace takes a buffer of a pool in place of the present one, whose unread bytes
// fit it.
func (c *conn) replace(by *sync.Pool) {
	old, pool, lent := c.buf, c.pool, c.lent
	c.borrow(by)
	c.w = copy(c.buf, old[c.r:c.w])
	c.r = 0
	c.drop(old, lent, pool)
}

// armDeadline makes a read return in time to commit points that wait for a
// flush message: a slow sender that never flushes loses nothing. The original
// kept them until the sender spoke again. It also makes one return to look for
// what was coalesced.
func (c *conn) armDeadline() error {
	if c.committer == nil || c.deadline || !c.coalesce.on && !c.committer.points.HasPending() ||
		c.s.conns.ShuttingDown() {
		return nil
	}
	now := time.Now()
	if c.due.IsZero() && c.committer.points.HasPending() {
		c.due = now.Add(c.committer.delay)
	}
	at := c.due
	if look := now.Add(coalesceTime); c.coalesce.on && (at.IsZero() || look.Before(at)) {
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
	if c.s.conns.ShuttingDown() || c.committer.broken() {
		return c.nc.SetReadDeadline(conns.LongAgo)
	}
	return nil
}

// idle commits what is due at the deadline, or ends the connection at shutdown.
func (c *conn) idle() error {
	if c.s.conns.ShuttingDown() {
		return io.EOF
	}
	if c.committer.broken() {
		return errBroken
	}
	c.deadline = false
	if !c.due.IsZero() && !time.Now().Before(c.due) {
		c.due = time.Time{}
		if c.committer.Flush(); c.committer.err != nil {
			return c.committer.err
		}
	}
	if err := c.coalesce.looked(); err != nil {
		return err
	}
	if c.coalesce.on {
		return nil // the next read gets a deadline anyway
	}
	return c.wakeAt(time.Time{})
}

// reply writes one frame.
func (c *conn) reply(payload []byte) error {
	c.out = wire.AppendFrame(c.out[:0], payload)
	return c.write(c.out)
}

// write writes a reply. A peer that does not take replyPiece of it within the
// time it has is cut off.
func (c *conn) write(p []byte) error { return c.deliver(p, nil) }

// deliver is write for a reply whose memory is leased. While memory is short, a
// peer that does not read the reply is cut off earlier.
func (c *conn) deliver(p []byte, lease *memory.Lease) error {
	lease.Await(func(why memory.CutReason) { c.nc.Cut(string(why)) })
	defer lease.Resume()
	for len(p) > 0 {
		if err := c.nc.SetWriteDeadline(time.Now().Add(c.s.o.ReplyStall)); err != nil {
			return err
		}
		n, err := c.nc.Write(p[:min(len(p), replyPiece)])
		if errors.Is(err, os.ErrDeadlineExceeded) {
			c.nc.Cut(conns.CutStalled)
		}
		if err != nil {
			return err
		}
		lease.NoteProgress()
		p = p[n:]
	}
	return nil
}

// refuse gives an error of the wire or the store the reason it is counted
// under.
func refuse(err error) error {
	if known := (*errRefused)(nil); errors.As(err, &known) {
		return known
	}
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
	case errors.Is(err, buckets.ErrUnknown):
		reason = "unknown_bucket"
	case errors.Is(err, buckets.ErrExists):
		reason = "bucket_exists"
	case errors.Is(err, buckets.ErrInvalid):
		reason = "invalid_bucket"
	case errors.Is(err, buckets.ErrNoMajority):
		reason = "no_majority"
	case errors.Is(err, write.ErrDiskFull):
		reason = "disk_full"
	}
	return &errRefused{reason: reason, err: err}
}
