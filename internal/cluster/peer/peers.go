// Package peer carries opaque frames between the nodes of a cluster: connections with a handshake
// that proves the cookie, a bounded queue for every peer, and reconnection. DESIGN.md beside it has
// the bytes and the bounds.
package peer

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"sync"
	"time"

	"dalmatiner/internal/cluster/ring"
	"dalmatiner/internal/host/loglimit"
)

// minCookie is the shortest cookie. Who listens in without TLS can try cookies on a proof.
const minCookie = 16

// Options say who a node is, and what its connections may hold.
type Options struct {
	Self     ring.ID
	Name     string // of the node
	Cluster  string // its label: nodes of another one are refused
	Protocol ring.Protocol
	Cookie   []byte // what all nodes of the cluster know; at least 16 bytes, better random ones

	// Address returns where a peer is reached. They are tried in order.
	Address func(ring.ID) []string
	// Dial makes a connection. TCP if nil.
	Dial func(ctx context.Context, address string) (net.Conn, error)
	// ServerTLS returns the settings for the next connection that is accepted, ClientTLS those for the
	// next one to a peer, which name it. Without TLS if nil.
	ServerTLS func() *tls.Config
	ClientTLS func(peer ring.ID) *tls.Config

	// Handler gets every frame that arrives, and the version that it is encoded in. Frames of one peer
	// come one after the other. The bytes are valid until it returns. A slow one holds up its peer
	// only.
	Handler func(from ring.ID, version uint16, frame []byte)
	// Reached is told when frames can be sent to a peer, and when no longer. May be nil.
	Reached func(peer ring.ID, version uint16, up bool)
	// Accepted is told when a peer has made a connection to this node, again when another one takes
	// its place, and when there is none any more: then the peer may take this node for down. It must
	// not call Peers. May be nil.
	Accepted func(peer ring.ID, up bool)

	MaxFrame   int // bytes of the longest frame
	QueueBytes int // of the frames to one peer that are not yet written
	MaxPeers   int // peers that are known at a time
	HalfOpen   int // accepted connections within their handshake

	Handshake time.Duration // a connection is made, and its handshake done, within this
	Alive     time.Duration // an idle connection says this often that it is there
	// a connection without a byte, or a write that gets nowhere, for so long is dead
	Silence time.Duration
	Backoff Backoff

	// at least 0 and below 1, for the jitter; safe for concurrent use. math/rand/v2 if nil
	Random func() float64
	Logger *slog.Logger
}

// Backoff is how long to wait after a failure: First, then twice as long after each, up to Max, of
// which a random part of up to a half is taken off.
type Backoff struct{ First, Max time.Duration }

// waitAfter returns the wait after a number of failures in a row.
func (b Backoff) waitAfter(failures int, random float64) time.Duration {
	wait := b.First
	for ; failures > 1 && wait < b.Max; failures-- {
		wait *= 2
	}
	wait = min(wait, b.Max)
	return wait - time.Duration(random*float64(wait)/2)
}

func (o *Options) check() error {
	switch {
	case o.Self == ring.ID{}:
		return errors.New("a node needs an id")
	case len(o.Name) > maxLabel || len(o.Cluster) > maxLabel:
		return fmt.Errorf("the names of node and cluster have at most %d bytes", maxLabel)
	case o.Protocol.Min > o.Protocol.Max:
		return errors.New("a node needs a version of the protocol that it speaks")
	case len(o.Cookie) < minCookie:
		return fmt.Errorf("the cookie needs at least %d bytes", minCookie)
	case o.Address == nil || o.Handler == nil || o.Logger == nil:
		return errors.New("addresses, a handler and a logger are needed")
	case o.MaxFrame < 1 || o.MaxFrame > 1<<30 || o.QueueBytes < o.MaxFrame+headerSize:
		return fmt.Errorf("a queue of %d bytes does not hold a frame of %d", o.QueueBytes, o.MaxFrame)
	case o.MaxPeers < 1 || o.HalfOpen < 1:
		return errors.New("at least one peer and one handshake at a time are needed")
	case o.Handshake <= 0 || o.Alive <= 0 || o.Silence <= o.Alive:
		return errors.New("time limits are positive, and Silence is longer than Alive")
	case o.Backoff.First <= 0 || o.Backoff.Max < o.Backoff.First:
		return errors.New("the wait after a failure is positive and has a maximum")
	}
	return nil
}

// Peers are the connections of one node. Its methods may be called concurrently.
type Peers struct {
	options  Options
	log      *loglimit.Logger
	ctx      context.Context
	cancel   context.CancelFunc
	running  sync.WaitGroup
	halfOpen chan struct{}

	mu      sync.Mutex
	closed  bool
	links   map[ring.ID]*link
	refused [refusals]uint64
}

// New returns the connections of a node, of which there are none yet. Close ends them.
func New(options Options) (*Peers, error) {
	if err := options.check(); err != nil {
		return nil, err
	}
	if options.Dial == nil {
		options.Dial = func(ctx context.Context, address string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "tcp", address)
		}
	}
	if options.Random == nil {
		options.Random = rand.Float64
	}
	if options.Reached == nil {
		options.Reached = func(ring.ID, uint16, bool) {}
	}
	if options.Accepted == nil {
		options.Accepted = func(ring.ID, bool) {}
	}
	p := &Peers{options: options, log: loglimit.New(options.Logger, time.Now),
		halfOpen: make(chan struct{}, options.HalfOpen), links: map[ring.ID]*link{}}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	return p, nil
}

// Connect keeps a connection to a peer until Forget or Close, and makes it again when it ends. It
// returns at once, with an error if there are too many peers.
func (p *Peers) Connect(id ring.ID) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if id == p.options.Self {
		return Itself
	}
	if p.closed {
		return net.ErrClosed
	}
	l, err := p.link(id)
	if err != nil || l.stop != nil {
		return err
	}
	ctx, stop := context.WithCancel(p.ctx)
	done := make(chan struct{})
	l.stop = func() { stop(); <-done }
	p.running.Go(func() {
		defer close(done)
		defer stop()
		l.run(ctx)
	})
	return nil
}

// Forget ends the connections with a peer and forgets its figures. It waits until they
// are closed, so Reached and Handler must not call it. The peer may connect again.
func (p *Peers) Forget(id ring.ID) {
	p.mu.Lock()
	l := p.links[id]
	if l == nil {
		p.mu.Unlock()
		return
	}
	delete(p.links, id)
	stop, accepted := l.stop, l.accepted
	p.mu.Unlock()
	if accepted != nil {
		_ = accepted.conn.Close() // its reader ends with an error
		<-accepted.done
	}
	if stop != nil {
		stop()
	}
}

// Renew ends all connections that there are. They are made again, as after any end.
func (p *Peers) Renew() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, l := range p.links {
		if l.accepted != nil {
			_ = l.accepted.conn.Close()
		}
		l.mu.Lock()
		if l.raw != nil {
			_ = l.raw.Close()
		}
		l.mu.Unlock()
	}
}

// link returns what is kept of a peer. Callers hold mu.
func (p *Peers) link(id ring.ID) (*link, error) {
	if l := p.links[id]; l != nil {
		return l, nil
	}
	if len(p.links) >= p.options.MaxPeers {
		return nil, Crowded
	}
	l := newLink(p, id)
	p.links[id] = l
	return l, nil
}

// Send queues a frame for a peer that Connect was called for, and reports whether it did. The
// version is the one that the frame is encoded in. Send copies the frame and never waits for the
// network. A frame that was queued may still be lost; one that arrives, arrives once and whole.
// Frames of one connection arrive in order.
func (p *Peers) Send(to ring.ID, version uint16, frame []byte) bool {
	p.mu.Lock()
	l := p.links[to]
	p.mu.Unlock()
	return l != nil && l.send(version, frame)
}

// Version returns the version that frames to a peer have to be encoded in, if it is connected.
func (p *Peers) Version(to ring.ID) (version uint16, connected bool) {
	p.mu.Lock()
	l := p.links[to]
	p.mu.Unlock()
	if l == nil {
		return 0, false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.version, l.connected
}

// Close ends all connections and listeners, and returns when every goroutine has ended. It waits
// for handlers that run, so Reached and Handler must not call it.
func (p *Peers) Close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.cancel()
	p.running.Wait()
	p.log.Close()
}
