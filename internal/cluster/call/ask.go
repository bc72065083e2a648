package call

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"dalmatiner/internal/cluster/ring"
)

// ask is a request to a peer. All but its channel is guarded by Calls.mu.
type ask struct {
	to       ring.ID
	parts    [][]byte // that have come and were not taken
	came     uint64   // parts so far
	allowed  uint64
	ended    bool
	err      error         // what it ended with
	progress chan struct{} // something has changed
}

// end notes how a request ended. What came before it is still taken, unless it is an error.
func (a *ask) end(err error) {
	if !a.ended {
		a.ended, a.err = true, err
		a.notify()
	}
}

func (a *ask) notify() {
	select {
	case a.progress <- struct{}{}:
	default:
	}
}

// take returns what has come since, and whether that was all.
func (c *Calls) take(a *ask) (parts [][]byte, ended bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if a.err != nil {
		return nil, true, a.err
	}
	parts, a.parts = a.parts, nil
	return parts, a.ended, nil
}

// Ask sends a request to a peer and calls part with each part of the reply, in order. The parts are
// the caller's. It returns when the reply has ended, or with the first error: of part, of ctx, of
// the peer or of the way to it. The last two are an *Error.
func (c *Calls) Ask(ctx context.Context, to ring.ID, request []byte,
	part func([]byte) error) error {
	if len(request) > MaxRequest {
		return fmt.Errorf("a request of %d bytes to node %s, at most %d are possible", len(request), to,
			MaxRequest)
	}
	left := maxTime
	if end, ok := ctx.Deadline(); ok {
		left = min(left, time.Until(end))
	}
	a := &ask{to: to, allowed: window, progress: make(chan struct{}, 1)}
	id, err := c.register(a)
	if err != nil {
		return err
	}
	defer c.leave(id, a)
	f := frame{kind: kindAsk, id: id, left: left, body: request}
	if !c.options.Send(to, f.append(nil)) {
		err := &Error{to, Unreachable, "the request could not be sent"}
		c.mu.Lock()
		a.end(err) // nothing is to be cancelled
		c.mu.Unlock()
		return err
	}
	return c.await(ctx, id, a, part)
}

func (c *Calls) register(a *ask) (id uint64, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return 0, &Error{a.to, Unreachable, "this node stops"}
	}
	id = c.next
	c.next++
	c.asks[id] = a
	return id, nil
}

// leave forgets a request. The peer is told, if it may still work on it.
func (c *Calls) leave(id uint64, a *ask) {
	c.mu.Lock()
	ended := a.ended
	delete(c.asks, id)
	c.mu.Unlock()
	if !ended {
		f := frame{kind: kindCancel, id: id}
		c.options.Send(a.to, f.append(nil)) // if it is lost, the deadline does the same
	}
}

// await hands out parts as they come.
func (c *Calls) await(ctx context.Context, id uint64, a *ask, part func([]byte) error) error {
	timer := time.NewTimer(probe)
	defer timer.Stop()
	taken, told := uint64(0), uint64(window)
	for {
		parts, ended, err := c.take(a)
		if err != nil {
			return err
		}
		for _, p := range parts {
			if err := part(p); err != nil {
				return err
			}
			taken++
			if taken+window-told >= window/2 && c.sendAllow(id, a, taken+window) {
				told = taken + window
			}
		}
		if ended {
			return nil
		}
		if len(parts) > 0 {
			timer.Reset(probe)
		}
		select {
		case <-a.progress:
		case <-ctx.Done():
			return ctx.Err()
		case <-timer.C:
			// Of a request that it does not have the peer says so.
			if c.sendAllow(id, a, taken+window) {
				told = taken + window
			}
			timer.Reset(probe)
		}
	}
}

// sendAllow lets the peer send parts up to a number.
func (c *Calls) sendAllow(id uint64, a *ask, number uint64) bool {
	c.mu.Lock()
	ended := a.ended
	a.allowed = max(a.allowed, number)
	c.mu.Unlock()
	f := frame{kind: kindAllow, id: id, number: number}
	return ended || c.options.Send(a.to, f.append(nil))
}

// receiveReply takes a frame of the reply.
func (c *Calls) receiveReply(from ring.ID, f frame) {
	c.mu.Lock()
	defer c.mu.Unlock()
	a := c.asks[f.id]
	if a == nil || a.ended || a.to != from {
		return // nobody waits any more
	}
	switch {
	case f.kind == kindError:
		a.end(&Error{from, f.code, string(f.body)})
	case f.number != a.came:
		a.end(&Error{from, Unreachable, "parts of its reply were lost"})
	case f.kind == kindEnd:
		a.end(nil)
	case f.number >= a.allowed:
		a.end(&Error{from, Failed, "it sent more than it was asked for"})
	default:
		a.came++
		a.parts = append(a.parts, bytes.Clone(f.body))
		a.notify()
	}
}
