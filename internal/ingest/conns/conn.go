package conns

import (
	"context"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"sync/atomic"
	"time"
)

// Reasons for which the node ends a connection by itself.
const (
	CutIdle     = "idle"     // it sent nothing for the time that the configuration gives it
	CutRoom     = "room"     // all connections were in use, and it had been idle for longest
	CutStalled  = "stalled"  // a message did not come on, or an answer was not taken
	CutPressure = "pressure" // the same while memory was short
)

var cutReasons = [...]string{CutIdle, CutRoom, CutStalled, CutPressure}

// CutReasons returns the reasons for which connections are cut off.
func CutReasons() []string { return cutReasons[:] }

// Conn is an open connection of a Set. Methods of a nil Conn do nothing.
type Conn struct {
	net.Conn
	set    *Set
	ctx    context.Context
	end    context.CancelFunc
	moved  atomic.Int64 // when bytes last came or went, or work ended; ns since 1970
	busy   atomic.Bool  // there is work for it under way: it is not idle
	proven atomic.Bool
	cut    atomic.Pointer[string]
}

// Read reads, and notes when.
func (c *Conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 {
		c.touch()
	}
	return n, err
}

// Write writes, and notes when.
func (c *Conn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	if n > 0 {
		c.touch()
	}
	return n, err
}

// Context returns a context that ends when the connection is closed or cut off, or its set
// shut down. Whoever waits for something on behalf of the other side waits with it.
func (c *Conn) Context() context.Context { return c.ctx }

// Close closes the connection and takes it out of its set.
func (c *Conn) Close() error {
	c.end()
	err := c.Conn.Close()
	c.set.mu.Lock()
	defer c.set.mu.Unlock()
	delete(c.set.open, c)
	return err
}

func (c *Conn) touch() { c.moved.Store(c.set.o.Now().UnixNano()) }

// Busy says that the node works for the connection: until Idle it is not cut off
// for being idle.
func (c *Conn) Busy() {
	if c != nil {
		c.busy.Store(true)
	}
}

// Idle says that from now on the other side has to do something.
func (c *Conn) Idle() {
	if c != nil && c.busy.Load() {
		c.touch()
		c.busy.Store(false)
	}
}

// Proven says that the connection has sent something whole. At the limit it stays
// longer than one that never did.
func (c *Conn) Proven() {
	if c != nil && !c.proven.Load() {
		c.proven.Store(true)
	}
}

// idle returns for how long the other side has done nothing; is is false while the
// node works for it.
func (c *Conn) idle(now time.Time) (d time.Duration, is bool) {
	if c.busy.Load() {
		return 0, false
	}
	return now.Sub(time.Unix(0, c.moved.Load())), true
}

// Cut ends the connection for one of the reasons: whoever reads from it or writes
// to it returns. It is counted, and logged at a limited rate.
func (c *Conn) Cut(why string) {
	if c == nil || !c.cut.CompareAndSwap(nil, &why) {
		return
	}
	c.set.cuts[slices.Index(cutReasons[:], why)].Add(1)
	idle := c.set.o.Now().Sub(time.Unix(0, c.moved.Load()))
	c.set.o.Log.Log(slog.LevelInfo, "cut_"+why, "connection cut off", "listener", c.set.o.Listener,
		"reason", why,
		"peer", c.RemoteAddr().String(), "idle", idle.Round(time.Millisecond))
	_ = c.Close() // the other side is told nothing: it does not listen, or does not speak
}

// WhyCut returns the reason for which the connection was cut off, or "".
func (c *Conn) WhyCut() string {
	if c == nil {
		return ""
	}
	if why := c.cut.Load(); why != nil {
		return *why
	}
	return ""
}

// Cuts returns how many connections were cut off for a reason.
func (s *Set) Cuts(why string) int64 { return s.cuts[slices.Index(cutReasons[:], why)].Load() }

// listener gives the connections of a listener to a set.
type listener struct {
	net.Listener
	set *Set
}

// Listener returns a listener whose connections, each a *Conn, belong to the set:
// for servers that run their connections themselves. Shutdown does not wait for
// those.
func (s *Set) Listener(ln net.Listener) net.Listener {
	s.expire()
	return listener{ln, s}
}

// Accept returns the next connection that there is room for.
func (l listener) Accept() (net.Conn, error) {
	for {
		nc, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if c := l.set.admit(nc, false); c != nil {
			return c, nil
		}
	}
}

type contextKey struct{}

// NewContext returns a context that carries the connection of a request, and ends with it.
func NewContext(ctx context.Context, nc net.Conn) context.Context {
	c, ok := nc.(*Conn)
	if !ok {
		return ctx
	}
	ctx, end := context.WithCancel(ctx)
	context.AfterFunc(c.ctx, end)
	return context.WithValue(ctx, contextKey{}, c)
}

// FromContext returns the connection of a request, or nil.
func FromContext(ctx context.Context) *Conn {
	c, _ := ctx.Value(contextKey{}).(*Conn)
	return c
}

// PeerOf returns the address of the other side, zero for what is no TCP connection.
func PeerOf(nc net.Conn) netip.AddrPort {
	if a, ok := nc.RemoteAddr().(*net.TCPAddr); ok {
		return a.AddrPort()
	}
	return netip.AddrPort{}
}
