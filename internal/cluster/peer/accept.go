package peer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"time"
)

// acceptPause is the wait after an accept that failed, as it does without file descriptors.
const acceptPause = 100 * time.Millisecond

// inbound is a connection that a peer made to this node.
type inbound struct {
	conn net.Conn
	done chan struct{} // closed when its last frame was handled
}

// Serve accepts connections until Close, which closes the listener. It returns at once.
func (p *Peers) Serve(listener net.Listener) {
	if !p.goUnlessClosed(func() { p.serve(listener) }) {
		_ = listener.Close() // nobody will accept
	}
}

// goUnlessClosed starts what Close waits for.
func (p *Peers) goUnlessClosed(work func()) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return false
	}
	p.running.Go(work)
	return true
}

func (p *Peers) serve(listener net.Listener) {
	stop := context.AfterFunc(p.ctx, func() { _ = listener.Close() })
	defer stop()
	for {
		conn, err := listener.Accept()
		if p.ctx.Err() != nil || errors.Is(err, net.ErrClosed) {
			if err == nil {
				_ = conn.Close()
			}
			return
		}
		if err != nil {
			p.log.Log(slog.LevelError, "accept", "no connection of a peer can be accepted", "error", err)
			pause := time.NewTimer(acceptPause)
			select {
			case <-pause.C:
			case <-p.ctx.Done():
				pause.Stop()
			}
			continue
		}
		p.accept(conn)
	}
}

// accept serves a connection unless too many are within their handshake. Such a one is closed
// without a word, which costs nothing to those that wait.
func (p *Peers) accept(conn net.Conn) {
	select {
	case p.halfOpen <- struct{}{}:
	default:
		_ = conn.Close()
		p.refuse(conn, Crowded)
		return
	}
	if !p.goUnlessClosed(func() { p.receive(conn) }) {
		<-p.halfOpen
		_ = conn.Close()
	}
}

// refuse counts and logs a handshake that failed.
func (p *Peers) refuse(conn net.Conn, err error) {
	refusal := Foreign
	errors.As(err, &refusal)
	if refusal < Foreign || refusal >= refusals {
		refusal = Foreign // a number that only the other side knows
	}
	p.mu.Lock()
	p.refused[refusal]++
	p.mu.Unlock()
	p.log.Log(slog.LevelWarn, refusal.Error(), "a connection of a peer is refused",
		"address", conn.RemoteAddr().String(), "error", err)
}

// receive does the handshake of an accepted connection and gives its frames to the handler.
func (p *Peers) receive(raw net.Conn) {
	defer raw.Close()
	stop := context.AfterFunc(p.ctx, func() { _ = raw.Close() })
	defer stop()

	var from remoteNode
	var l *link
	var before *inbound
	in := &inbound{conn: raw, done: make(chan struct{})}
	defer close(in.done)
	conn, err := p.welcome(p.ctx, raw, func(k remoteNode) (err error) {
		from = k
		l, before, err = p.admit(k, in)
		return err
	})
	<-p.halfOpen
	if l != nil {
		defer p.release(l, in)
	}
	if before != nil {
		_ = before.conn.Close()
		<-before.done // frames of one peer are handled one after the other
	}
	if err != nil {
		if p.ctx.Err() == nil {
			p.refuse(raw, err)
		}
		return
	}
	p.announceAccepted(l, in)
	p.log.Log(slog.LevelInfo, "accepted", "a peer has connected", "peer", from.id.String(), "name",
		from.name)
	err = l.handle(raw, conn, from)
	if p.ctx.Err() == nil && !errors.Is(err, io.EOF) {
		p.log.Log(slog.LevelWarn, "ended", "the connection of a peer has ended", "peer", from.id.String(),
			"error", err)
	}
}

// admit makes a connection the one that its peer has. A newer one replaces the older: a peer that
// lost its connection dials again before this side knows.
func (p *Peers) admit(k remoteNode, in *inbound) (l *link, before *inbound, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	l, err = p.link(k.id)
	if err != nil {
		return nil, nil, err
	}
	before, l.accepted = l.accepted, in
	return l, before, nil
}

// announceAccepted tells of a connection, unless another one has taken its place.
func (p *Peers) announceAccepted(l *link, in *inbound) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if l.accepted == in && p.links[l.id] == l {
		p.options.Accepted(l.id, true)
	}
}

// release forgets a connection, and the peer if nothing else is known of it.
func (p *Peers) release(l *link, in *inbound) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if l.accepted != in {
		return // another one replaced it
	}
	l.accepted = nil
	if now := p.links[l.id]; now == nil || now == l {
		p.options.Accepted(l.id, false)
	}
	if l.stop == nil && p.links[l.id] == l {
		delete(p.links, l.id)
	}
}

// handle gives frames to the handler until the connection ends, and tells the peer meanwhile that
// this node is alive, whatever the handler does.
func (l *link) handle(raw, conn net.Conn, from remoteNode) error {
	options := &l.peers.options
	ended, quiet := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(quiet)
		alive := time.NewTicker(options.Alive)
		defer alive.Stop()
		for {
			select {
			case <-alive.C:
			case <-ended:
				return
			}
			if writeAlive(conn, options.Silence) != nil {
				return // the peer hears nothing more, and ends the connection
			}
		}
	}()
	defer func() {
		close(ended)
		_ = raw.Close() // a write that waits ends
		<-quiet
		l.receiving.Store(0)
	}()
	in := newFrames(&timeoutReader{conn, options.Silence}, options.MaxFrame, keptBuffer, &l.receiving)
	for {
		kind, body, err := in.next()
		if err != nil {
			return fmt.Errorf("receive: %w", err)
		}
		if kind != kindData {
			continue
		}
		options.Handler(from.id, from.version, body)
		l.mu.Lock()
		l.figures.Received++
		l.figures.ReceivedBytes += uint64(len(body))
		l.mu.Unlock()
	}
}
