// Package initiator uses a disk over iSCSI as a device does: it logs in, reads, writes, flushes,
// and goes, in order or not. It is for machines that are emulated, and for tests of targets.
// Source: RFC 7143.
package initiator

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"
)

// Options say who logs in where.
type Options struct {
	Address   string // host:port of the portal
	Target    string // its iSCSI name
	Initiator string // the iSCSI name of this device
	User      string // of CHAP; empty: without it
	Secret    string
	Timeout   time.Duration // of the login, and of each command; 0 is 30 s

	// Dial makes the connection. TCP if nil.
	Dial func(ctx context.Context, address string) (net.Conn, error)

	isid [6]byte
}

// mostTasks is how many commands are under way at a time. More wait.
const mostTasks = 64

// Session is one login. Its methods may be called concurrently.
type Session struct {
	o    Options
	conn net.Conn
	limits
	places chan struct{} // one for each command under way
	ended  chan struct{} // closed when the connection has

	mu     sync.Mutex
	err    error // why it ended
	tag    uint32
	cmd    uint32 // the number of the next command
	most   uint32 // the last number that the target takes now
	stat   uint32 // the next one that is expected
	tasks  map[uint32]*task
	out    []*pdu        // to be sent
	more   chan struct{} // holds one when there is something in out
	window chan struct{} // holds one when most has grown
}

// task is a command under way.
type task struct {
	lun   byte
	write []byte // that the target asks for
	read  []byte // where what it gives goes
	got   int
	done  chan result // holds one
}

// result is how a command ended.
type result struct {
	status byte
	sense  []byte
	got    int // bytes that were read
	err    error
}

// Login logs in to a target.
func Login(ctx context.Context, o Options) (*Session, error) {
	if o.Timeout == 0 {
		o.Timeout = 30 * time.Second
	}
	if o.Dial == nil {
		o.Dial = func(ctx context.Context, address string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "tcp", address)
		}
	}
	o.isid[0] = 0x80 // random
	_, _ = rand.Read(o.isid[1:4])
	ctx, cancel := context.WithTimeout(ctx, o.Timeout)
	defer cancel()
	conn, err := o.Dial(ctx, o.Address)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", o.Target, err)
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	r := bufio.NewReaderSize(conn, 64<<10)
	l := &login{o: &o, w: bufio.NewWriter(conn), r: r, cmd: 1}
	err = l.run()
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		_ = conn.Close() // it is of no use
		return nil, fmt.Errorf("%s: login: %w", o.Target, errors.Join(err, ctx.Err()))
	}
	s := &Session{o: o, conn: conn, limits: l.limits, places: make(chan struct{}, mostTasks),
		ended: make(chan struct{}),
		cmd:   l.cmd, most: l.most, stat: l.stat, tasks: make(map[uint32]*task),
		more: make(chan struct{}, 1), window: make(chan struct{}, 1)}
	go s.send()
	go s.receive(r)
	return s, nil
}

// Close ends the connection as a crash of the device does: nothing is said, and commands under way
// end with an error.
func (s *Session) Close() {
	s.fail(net.ErrClosed)
	<-s.ended
}

// Logout ends the session in order.
func (s *Session) Logout(ctx context.Context) error {
	p := new(pdu)
	p.header[0], p.header[1] = opLogout|immediate, final
	_, err := s.do(ctx, p, &task{})
	s.Close()
	if err != nil && !errors.Is(err, net.ErrClosed) {
		return fmt.Errorf("%s: logout: %w", s.o.Target, err)
	}
	return nil
}

// fail ends the session, once.
func (s *Session) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return
	}
	s.err = err
	_ = s.conn.Close() // both goroutines end
	for tag, t := range s.tasks {
		delete(s.tasks, tag)
		t.done <- result{err: err}
	}
}

// do sends a command and waits for its end. Where it does not come in time the session ends: the
// buffers of a command that was given up would still be written to.
func (s *Session) do(ctx context.Context, p *pdu, t *task) (result, error) {
	ctx, cancel := context.WithTimeout(ctx, s.o.Timeout)
	defer cancel()
	select {
	case s.places <- struct{}{}:
		defer func() { <-s.places }()
	case <-ctx.Done():
		return result{}, ctx.Err()
	}
	t.done = make(chan result, 1)
	if err := s.begin(ctx, p, t); err != nil {
		return result{}, err
	}
	select {
	case r := <-t.done:
		return r, r.err
	case <-ctx.Done():
		s.fail(fmt.Errorf("a command has no answer: %w", ctx.Err()))
		r := <-t.done
		return r, r.err
	}
}

// begin gives a command its tag and number when the target takes one more.
func (s *Session) begin(ctx context.Context, p *pdu, t *task) error {
	for {
		s.mu.Lock()
		numbered := p.header[0]&immediate == 0
		if s.err != nil {
			defer s.mu.Unlock()
			return s.err
		}
		if !numbered || int32(s.most-s.cmd) >= 0 {
			break
		}
		s.mu.Unlock()
		select {
		case <-s.window:
		case <-s.ended:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	defer s.mu.Unlock()
	if s.tag++; s.tag == noTag {
		s.tag = 0
	}
	s.tasks[s.tag] = t
	p.put32(16, s.tag)
	p.put32(24, s.cmd)
	if p.header[0]&immediate == 0 {
		s.cmd++
	}
	if int32(s.most-s.cmd) >= 0 {
		wake(s.window) // for the next that waits
	}
	s.queue(p)
	return nil
}

// queue lets a unit be sent. Callers hold mu.
func (s *Session) queue(p *pdu) {
	s.out = append(s.out, p)
	wake(s.more)
}

func wake(who chan struct{}) {
	select {
	case who <- struct{}{}:
	default: // it will look
	}
}

// send sends what is queued until the session ends. It is apart from receive: a target that waits
// until its answers are taken is not waited for.
func (s *Session) send() {
	w := bufio.NewWriterSize(s.conn, 64<<10)
	for {
		select {
		case <-s.more:
		case <-s.ended:
			return
		}
		s.mu.Lock()
		list := s.out
		s.out = nil
		for _, p := range list {
			p.put32(28, s.stat)
		}
		s.mu.Unlock()
		for _, p := range list {
			if err := p.write(w); err != nil {
				s.fail(err)
				return
			}
		}
		if err := w.Flush(); err != nil {
			s.fail(err)
			return
		}
	}
}

// receive takes what the target sends until the session ends.
func (s *Session) receive(r *bufio.Reader) {
	defer close(s.ended)
	for {
		p, err := readPDU(r)
		if err == nil {
			err = s.take(p)
		}
		if err != nil {
			s.fail(err)
			return
		}
	}
}

// take takes one unit.
func (s *Session) take(p *pdu) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if most := p.u32(32); int32(most-s.most) > 0 {
		s.most = most
		wake(s.window)
	}
	tag := p.u32(16)
	t := s.tasks[tag]
	switch op := p.opcode(); {
	case op == opNopIn && p.u32(20) == noTag:
		return nil // it only tells numbers
	case op == opNopIn:
		s.stat = p.u32(24) + 1
		answer := new(pdu)
		answer.header[0], answer.header[1] = opNopOut|immediate, final
		copy(answer.header[8:16], p.header[8:16])
		answer.put32(16, noTag)
		answer.put32(20, p.u32(20))
		answer.put32(24, s.cmd)
		s.queue(answer)
		return nil
	case op == opAsync || op == opReject:
		return fmt.Errorf("the target ends the session (opcode 0x%02x, 0x%02x)", op, p.header[36])
	case t == nil:
		return fmt.Errorf("%w: opcode 0x%02x for a command that is not under way", errProtocol, op)
	case op == opDataIn:
		return s.data(p, tag, t)
	case op == opR2T:
		return s.give(p, tag, t)
	case op == opResponse:
		s.stat = p.u32(24) + 1
		if p.header[2] != 0 {
			return fmt.Errorf("the target failed at a command (response 0x%02x)", p.header[2])
		}
		s.end(tag, t, result{status: p.header[3], sense: senseOf(p.data), got: t.got})
		return nil
	case op == opLogoutDone:
		s.stat = p.u32(24) + 1
		s.end(tag, t, result{})
		return nil
	}
	return fmt.Errorf("%w: opcode 0x%02x", errProtocol, p.opcode())
}

func (s *Session) end(tag uint32, t *task, r result) {
	delete(s.tasks, tag)
	t.done <- r
}

// data takes a part of what is read, in any order, and with it perhaps the end of the command.
func (s *Session) data(p *pdu, tag uint32, t *task) error {
	at := int(p.u32(40))
	if at > len(t.read) || len(p.data) > len(t.read)-at {
		return fmt.Errorf("%w: %d bytes at %d, and %d are wanted", errProtocol, len(p.data), at,
			len(t.read))
	}
	copy(t.read[at:], p.data)
	t.got += len(p.data)
	if p.header[1]&1 != 0 { // the status is in it
		s.stat = p.u32(24) + 1
		s.end(tag, t, result{status: p.header[3], got: t.got})
	}
	return nil
}

// give sends the part of a write that the target is ready for.
func (s *Session) give(p *pdu, tag uint32, t *task) error {
	at, n := int(p.u32(40)), int(p.u32(44))
	if n == 0 || at > len(t.write) || n > len(t.write)-at {
		return fmt.Errorf("%w: it wants %d bytes at %d of a write of %d", errProtocol, n, at,
			len(t.write))
	}
	for number := uint32(0); n > 0; number++ {
		part := t.write[at : at+min(n, s.limits.send)]
		// the caller has its own again when the command ends, sent or not
		d := &pdu{data: bytes.Clone(part)}
		d.header[0] = opDataOut
		d.putLUN(t.lun)
		d.put32(16, tag)
		d.put32(20, p.u32(20))
		d.put32(36, number)
		d.put32(40, uint32(at))
		at, n = at+len(part), n-len(part)
		if n == 0 {
			d.header[1] = final
		}
		s.queue(d)
	}
	return nil
}

// senseOf returns what a target says of a command that failed: behind a length of two bytes.
func senseOf(data []byte) []byte {
	if len(data) < 2 {
		return nil
	}
	n := int(data[0])<<8 | int(data[1])
	return data[2 : 2+min(n, len(data)-2)]
}
