package call

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"time"

	"dalmatiner/internal/cluster/ring"
)

// maxWaiting bounds the bytes of the requests that wait for their turn.
const maxWaiting = 16 << 20

// requestKey names a request of a peer.
type requestKey struct {
	from ring.ID
	id   uint64
}

// inboundRequests are the requests that a node serves, or will.
type inboundRequests struct {
	open  map[requestKey]*inboundRequest
	busy  map[ring.ID]int // requests of a peer that are being served
	total int
	queue []*inboundRequest // that wait, in the order in which they came
	bytes int               // of their requests
}

// inboundRequest is a request of a peer. sent belongs to who serves it, allowed to Calls.mu.
type inboundRequest struct {
	requestKey
	request  []byte
	deadline time.Time
	ctx      context.Context
	cancel   context.CancelFunc
	sent     uint64 // parts
	allowed  uint64
	room     chan struct{} // allowed has grown
}

// admit serves a request, has it wait for its turn, or refuses it.
func (c *Calls) admit(from ring.ID, f frame) error {
	s := &inboundRequest{
		requestKey: requestKey{from, f.id},
		deadline:   time.Now().Add(f.left),
		allowed:    window,
		room:       make(chan struct{}, 1),
	}
	c.mu.Lock()
	switch {
	case c.closed:
	case c.serves.open[s.requestKey] != nil:
		c.mu.Unlock()
		return errFrame
	case c.hasTurn(from):
		s.request = bytes.Clone(f.body)
		c.begin(s)
	case len(c.serves.queue) < c.options.Waiting && c.serves.bytes+len(f.body) <= maxWaiting:
		s.request = bytes.Clone(f.body)
		c.serves.open[s.requestKey] = s
		c.serves.queue = append(c.serves.queue, s)
		c.serves.bytes += len(f.body)
	default:
		c.mu.Unlock()
		refusal := frame{
			kind: kindError,
			id:   f.id,
			code: Busy,
			body: []byte("it has too many requests of other nodes"),
		}
		c.options.Send(from, refusal.append(nil)) // if it is lost, the asker asks what became of it
		return nil
	}
	c.mu.Unlock()
	return nil
}

// hasTurn reports whether one more request of a peer may be served. Callers hold mu.
func (c *Calls) hasTurn(from ring.ID) bool {
	return c.serves.total < c.options.Running && c.serves.busy[from] < c.options.PerPeer
}

// begin serves a request. Callers hold mu.
func (c *Calls) begin(s *inboundRequest) {
	c.serves.open[s.requestKey] = s
	c.serves.total++
	c.serves.busy[s.from]++
	s.ctx, s.cancel = context.WithDeadline(c.ctx, s.deadline)
	c.running.Go(func() {
		defer s.cancel()
		err := c.options.Serve(s.ctx, s.from, s.request, func(part []byte) error {
			return c.reply(s, part)
		})
		c.finish(s, err)
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.serves.open[s.requestKey] == s {
			delete(c.serves.open, s.requestKey)
		}
		c.serves.total--
		if c.serves.busy[s.from]--; c.serves.busy[s.from] == 0 {
			delete(c.serves.busy, s.from)
		}
		c.beginNext()
	})
}

// beginNext serves the requests whose turn has come. Callers hold mu.
func (c *Calls) beginNext() {
	for i := 0; i < len(c.serves.queue) && !c.closed; {
		s := c.serves.queue[i]
		late := time.Until(s.deadline) <= 0
		if !late && !c.hasTurn(s.from) {
			i++
			continue
		}
		c.serves.queue = slices.Delete(c.serves.queue, i, i+1)
		c.serves.bytes -= len(s.request)
		if late {
			delete(c.serves.open, s.requestKey)
		} else {
			c.begin(s)
		}
	}
}

// drop ends requests that nobody waits for. Callers hold mu.
func (c *Calls) drop(which func(*inboundRequest) bool) {
	for key, s := range c.serves.open {
		if !which(s) {
			continue
		}
		delete(c.serves.open, key)
		if s.cancel != nil {
			s.cancel()
			continue
		}
		i := slices.Index(c.serves.queue, s)
		c.serves.queue = slices.Delete(c.serves.queue, i, i+1)
		c.serves.bytes -= len(s.request)
	}
}

// allow lets a request send more parts. The asker is told of one that is not here: its reply, or
// its end, was lost on the way.
func (c *Calls) allow(from ring.ID, f frame) {
	c.mu.Lock()
	s := c.serves.open[requestKey{from, f.id}]
	if s != nil {
		s.allowed = max(s.allowed, f.number)
	}
	c.mu.Unlock()
	if s == nil {
		lost := frame{
			kind: kindError,
			id:   f.id,
			code: Unreachable,
			body: []byte("it does not know the request, or its reply was lost"),
		}
		c.options.Send(from, lost.append(nil))
		return
	}
	select {
	case s.room <- struct{}{}:
	default:
	}
}

// reply sends a part as soon as the asker has room for it.
func (c *Calls) reply(s *inboundRequest, part []byte) error {
	if len(part) > MaxPart {
		return &Error{Code: Failed, Text: "a part of the reply is too long"}
	}
	for {
		c.mu.Lock()
		allowed := s.allowed
		c.mu.Unlock()
		if s.sent < allowed {
			break
		}
		select {
		case <-s.room:
		case <-s.ctx.Done():
			return s.ctx.Err()
		}
	}
	f := frame{kind: kindPart, id: s.id, number: s.sent, body: part}
	if err := c.send(s, &f); err != nil {
		return err
	}
	s.sent++
	return nil
}

// finish tells the asker how its request ended.
func (c *Calls) finish(s *inboundRequest, err error) {
	f := frame{kind: kindEnd, id: s.id, number: s.sent}
	if err != nil {
		f = frame{kind: kindError, id: s.id, code: Failed, body: []byte(err.Error())}
		if e := (*Error)(nil); errors.As(err, &e) {
			f.code, f.body = e.Code, []byte(e.Text)
		}
		f.body = f.body[:min(len(f.body), maxText)]
	}
	_ = c.send(s, &f) // it fails only if nobody waits
}

// The waits for room in the queue of a peer, which says nothing of it.
const firstWait, mostWait = time.Millisecond, 50 * time.Millisecond

// send queues a frame as soon as there is room for it.
func (c *Calls) send(s *inboundRequest, f *frame) error {
	b := f.append(make([]byte, 0, len(f.body)+32))
	for wait := firstWait; !c.options.Send(s.from, b); wait = min(2*wait, mostWait) {
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-s.ctx.Done():
			timer.Stop()
			return s.ctx.Err()
		}
	}
	return nil
}
