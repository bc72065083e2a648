// Package conns holds the open connections of a listener. It accepts them, limits their
// number, closes the idlest one at the limit and those that are idle for too long, counts
// their buffers, and ends them at shutdown.
package conns

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"dalmatiner/internal/host/loglimit"
)

// LongAgo as a deadline makes a read return at once.
var LongAgo = time.Unix(1, 0)

// A listener that cannot accept, most likely for want of file descriptors, is
// asked again after a pause. The pause doubles: only connections that end help.
const (
	minPause = 5 * time.Millisecond
	maxPause = time.Second
)

const (
	// unprovenGrace is how long a connection that never sent anything whole may be
	// idle before it makes room for a new one at the limit.
	unprovenGrace = time.Second

	// defaultGrace is the same for the others: more than the time between two
	// sends of most senders.
	defaultGrace = 10 * time.Second

	// expireEvery is the longest time between two looks for connections that have
	// been idle for too long.
	expireEvery = 5 * time.Second
)

// Options configures a Set. Listener, Limit, Log and Full are required.
type Options struct {
	Listener string // its name in the log
	Limit    int    // open connections
	Log      *loglimit.Logger
	// Full is told of a connection beyond the limit, which is closed when it
	// returns.
	Full func(nc net.Conn)

	Idle  time.Duration    // connections that send nothing for so long are closed; 0 keeps them
	Grace time.Duration    // idle ones may be closed after it to make room; defaultGrace
	Now   func() time.Time // time.Now
}

// Set is the open connections of one listener. Its methods may be called
// concurrently.
type Set struct {
	o        Options
	accepted atomic.Int64
	ctx      context.Context // ended by Shutdown
	end      context.CancelFunc
	cuts     [len(cutReasons)]atomic.Int64

	mu       sync.Mutex
	open     map[*Conn]struct{}
	closed   bool
	expiring bool // the goroutine that closes idle connections runs
	wg       sync.WaitGroup
}

// New returns a set without connections.
func New(o Options) *Set {
	if o.Grace == 0 {
		o.Grace = defaultGrace
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	s := &Set{o: o, open: make(map[*Conn]struct{})}
	s.ctx, s.end = context.WithCancel(context.Background())
	return s
}

// Serve accepts connections until the listener fails or is closed, when it
// returns nil, and runs serve for each in a goroutine of its own.
func (s *Set) Serve(ln net.Listener, serve func(c *Conn)) error {
	s.expire()
	for pause := minPause; ; {
		nc, err := ln.Accept()
		if err == nil {
			pause = minPause
			s.Start(nc, serve)
			continue
		}
		if errors.Is(err, net.ErrClosed) {
			return nil
		}
		var temporary interface{ Temporary() bool }
		if !errors.As(err, &temporary) || !temporary.Temporary() {
			return err
		}
		s.o.Log.Log(slog.LevelWarn, "accept", "a connection was not accepted", "listener", s.o.Listener,
			"err", err, "next", pause)
		s.rest(pause)
		pause = min(2*pause, maxPause)
	}
}

// rest waits for a moment or until the set is shut down.
func (s *Set) rest(pause time.Duration) {
	t := time.NewTimer(pause)
	defer t.Stop()
	select {
	case <-t.C:
	case <-s.ctx.Done():
	}
}

// Start runs serve for a connection, and closes it at its end. At the limit the
// connection that has been idle for longest makes room; where none is idle, and
// after Shutdown, the new one is closed at once.
func (s *Set) Start(nc net.Conn, serve func(c *Conn)) {
	c := s.admit(nc, true)
	if c == nil {
		return
	}
	go func() {
		defer s.wg.Done()
		serve(c)
		_ = c.Close() // serve has said all there was to say
	}()
}

// admit takes a connection into the set, or closes it and returns nil. waited
// says that Shutdown waits for its end.
func (s *Set) admit(nc net.Conn, waited bool) *Conn {
	c := &Conn{Conn: nc, set: s}
	c.ctx, c.end = context.WithCancel(s.ctx)
	c.touch()
	var victim *Conn
	s.mu.Lock()
	full := len(s.open) >= s.o.Limit
	if full && !s.closed {
		if victim = s.idlest(s.o.Now()); victim != nil {
			delete(s.open, victim)
			full = false
		}
	}
	if closed := s.closed; closed || full {
		s.mu.Unlock()
		if !closed {
			s.o.Full(nc)
		}
		_ = nc.Close() // it was never served
		c.end()
		return nil
	}
	s.open[c] = struct{}{}
	s.accepted.Add(1)
	if waited {
		s.wg.Add(1)
	}
	s.mu.Unlock()
	if victim != nil {
		victim.Cut(CutRoom)
	}
	return c
}

// idlest returns the connection that makes room for another one. This is the
// one that has been idle for longest: of the connections without anything whole
// sent yet, or else of all. The result is nil where none has been idle for its
// grace. Under the lock.
func (s *Set) idlest(now time.Time) *Conn {
	var found *Conn
	var foundIdle time.Duration
	for c := range s.open {
		grace := unprovenGrace
		if c.proven.Load() {
			grace = s.o.Grace
		}
		idle, is := c.idle(now)
		if !is || idle < grace {
			continue
		}
		if found != nil && found.proven.Load() != c.proven.Load() {
			if c.proven.Load() {
				continue
			}
		} else if idle <= foundIdle {
			continue
		}
		found, foundIdle = c, idle
	}
	return found
}

// expire begins to close connections that are idle for too long.
func (s *Set) expire() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.expiring || s.closed || s.o.Idle == 0 {
		return
	}
	s.expiring = true
	every := min(s.o.Idle/8, expireEvery)
	s.wg.Go(func() {
		t := time.NewTicker(every)
		defer t.Stop()
		for {
			select {
			case <-s.ctx.Done():
				return
			case <-t.C:
				s.closeIdle(s.o.Now())
			}
		}
	})
}

// closeIdle closes the connections that have been idle for too long.
func (s *Set) closeIdle(now time.Time) {
	var victims []*Conn
	s.mu.Lock()
	for c := range s.open {
		if idle, is := c.idle(now); is && idle >= s.o.Idle {
			victims = append(victims, c)
		}
	}
	s.mu.Unlock()
	for _, c := range victims {
		c.Cut(CutIdle)
	}
}

// Open returns how many connections are open now.
func (s *Set) Open() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.open)
}

// Accepted returns how many connections were ever served.
func (s *Set) Accepted() int64 { return s.accepted.Load() }

// Limit returns how many connections may be open.
func (s *Set) Limit() int { return s.o.Limit }

// ShuttingDown reports whether Shutdown was called.
func (s *Set) ShuttingDown() bool { return s.ctx.Err() != nil }

// Shutdown makes the reads of all connections return, ends their contexts, and waits until those
// that Start serves have ended. The caller closes the listeners first.
func (s *Set) Shutdown() {
	s.mu.Lock()
	if !s.closed {
		s.closed = true
		s.end()
	}
	for c := range s.open {
		// A read that is under way returns; the connection then ends.
		_ = c.SetReadDeadline(LongAgo)
	}
	s.mu.Unlock()
	s.wg.Wait()
}
