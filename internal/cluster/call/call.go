// Package call carries requests and their replies over the frames between nodes. A reply comes in
// parts, and whoever reads it slowly makes the other side wait: what either of them holds is
// bounded. DESIGN.md beside it has the bytes and the bounds.
package call

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"dalmatiner/internal/cluster/ring"
)

// The bounds of a call.
const (
	MaxRequest = 1<<20 + 128<<10  // bytes of a request: an event has up to a mebibyte of it
	MaxPart    = 256 << 10        // bytes of a part of a reply
	MaxFrame   = MaxRequest + 64  // bytes of the longest frame
	window     = 8                // parts on their way that the asker has not taken
	maxTime    = 10 * time.Minute // that a request is served
	// without a part, after which an asker makes sure that it is still served
	probe   = time.Second
	maxText = 1 << 10 // bytes of an error
)

// Options are what calls need of a node.
type Options struct {
	// Send queues a frame for a peer without waiting, and reports whether it did. It copies the frame.
	Send func(to ring.ID, frame []byte) bool
	// Serve answers a request with parts, each of at most MaxPart bytes. The slices are valid during
	// the calls only. reply waits for the asker, and fails when nobody waits for the answer any more,
	// when ctx ends as well. An *Error gives the asker its code; of any other the asker has the text.
	Serve func(ctx context.Context, from ring.ID, request []byte, reply func(part []byte) error) error

	Boot uint64 // a random number of this start: replies to requests before it are nobody's

	Running int // requests that are served at a time
	PerPeer int // of these of one peer
	Waiting int // requests that wait for their turn; further ones are refused
}

func (o *Options) check() error {
	switch {
	case o.Send == nil || o.Serve == nil:
		return errors.New("calls need a way to send and something that serves")
	case o.Running < 1 || o.PerPeer < 1 || o.Waiting < 0:
		return errors.New("calls serve at least one request at a time")
	}
	return nil
}

// Calls are the requests of a node to others, and those of others that it serves. The methods may
// be called concurrently.
type Calls struct {
	options Options
	ctx     context.Context
	cancel  context.CancelFunc
	running sync.WaitGroup // requests that are served

	mu     sync.Mutex
	closed bool
	next   uint64 // number of the next request
	asks   map[uint64]*ask
	serves inboundRequests
}

// New returns calls without any request. Close ends them.
func New(o Options) (*Calls, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	c := &Calls{options: o, next: o.Boot, asks: map[uint64]*ask{}}
	c.serves.open, c.serves.busy = map[requestKey]*inboundRequest{}, map[ring.ID]int{}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	return c, nil
}

// Close ends all requests with an error, and returns when none is served any more.
func (c *Calls) Close() {
	c.mu.Lock()
	c.closed = true
	for _, a := range c.asks {
		a.end(&Error{a.to, Unreachable, "this node stops"})
	}
	c.drop(func(*inboundRequest) bool { return true })
	c.mu.Unlock()
	c.cancel()
	c.running.Wait()
}

// DropPeer ends all requests to a peer with an error, and those of the peer: no frame reaches it,
// or what was sent to it may be lost.
func (c *Calls) DropPeer(peer ring.ID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, a := range c.asks {
		if a.to == peer {
			a.end(&Error{peer, Unreachable, "the connection ended"})
		}
	}
	c.drop(func(s *inboundRequest) bool { return s.from == peer })
}

// Receive takes a frame of a peer. It never waits, and keeps nothing of the frame. A frame that is
// none is an error of the peer, and has no effect.
func (c *Calls) Receive(from ring.ID, b []byte) error {
	f, err := parse(b)
	if err != nil {
		return err
	}
	switch f.kind {
	case kindAsk:
		return c.admit(from, f)
	case kindAllow:
		c.allow(from, f)
	case kindCancel:
		c.mu.Lock()
		c.drop(func(s *inboundRequest) bool { return s.from == from && s.id == f.id })
		c.mu.Unlock()
	default:
		c.receiveReply(from, f)
	}
	return nil
}

// Code says what kind of an error a call ended with.
type Code uint8

// The codes.
const (
	Failed        Code = iota + 1 // as the text says
	Busy                          // the node has too many requests: ask another, or later
	Unreachable                   // the node is, or parts of its reply were lost
	UnknownBucket                 // the node has no such bucket
	Memory                        // the node refused memory
	OtherRing                     // the ring of the node is another one, or it does not serve yet
	codes
)

// Error is what a call ended with.
type Error struct {
	Peer ring.ID
	Code Code
	Text string
}

// Error names the peer and the reason.
func (e *Error) Error() string { return fmt.Sprintf("node %s: %s", e.Peer, e.Text) }

// CodeOf returns the code of the Error that err wraps, or 0.
func CodeOf(err error) Code {
	if e := (*Error)(nil); errors.As(err, &e) {
		return e.Code
	}
	return 0
}
