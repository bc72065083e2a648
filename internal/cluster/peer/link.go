package peer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"dalmatiner/internal/cluster/ring"
)

// writeSize is the part of a batch for which one time limit holds: a slow reader has the limit for
// each, and only one that takes nothing is cut off.
const writeSize = 64 << 10

// aliveBuffer is enough for frames without a body.
const aliveBuffer = 512

// Why a connection is given up.
var (
	errSilent = errors.New("nothing heard from it within the time limit")
	errStuck  = errors.New("it takes nothing")
)

// link is one peer: the connection made to it with its queue, and the one accepted from it.
type link struct {
	peers *Peers
	id    ring.ID
	ready chan struct{} // holds one if frames wait

	stop     func()   // ends run and waits for it; nil before Connect. Guarded by peers.mu
	accepted *inbound // nil without one. Guarded by peers.mu

	hearing, receiving atomic.Int64 // bytes of the buffers that the two connections are read with

	mu        sync.Mutex // not held while the network is used
	connected bool
	raw       net.Conn // while it is connected
	version   uint16
	queue     queue
	figures   Stats
}

func newLink(p *Peers, id ring.ID) *link {
	return &link{peers: p, id: id, ready: make(chan struct{}, 1),
		queue:   queue{limit: p.options.QueueBytes},
		figures: Stats{ID: id}}
}

func (l *link) snapshot() Stats {
	l.peers.mu.Lock()
	accepted := l.accepted != nil
	l.peers.mu.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.figures
	s.Connected, s.Version, s.Accepted = l.connected, l.version, accepted
	s.Queued, s.Held = l.queue.bytes(), l.queue.heldBytes()+int(l.hearing.Load()+l.receiving.Load())
	return s
}

func (l *link) send(version uint16, frame []byte) bool {
	l.mu.Lock()
	dropped := &l.figures.Dropped
	switch {
	case len(frame) > l.peers.options.MaxFrame:
		dropped.TooLarge++
	case !l.connected:
		dropped.Down++
	case version != l.version:
		dropped.Version++
	case !l.queue.put(kindData, frame):
		dropped.Full++
	default:
		l.mu.Unlock()
		select {
		case l.ready <- struct{}{}:
		default: // the writer has been told
		}
		return true
	}
	l.mu.Unlock()
	return false
}

// run keeps a connection to the peer until the context ends. A connection counts as a success once
// something was heard on it: a peer that accepts and hangs up is waited for like one that is down.
func (l *link) run(ctx context.Context) {
	for failures := 1; ; failures++ {
		heard, err := l.connect(ctx)
		if ctx.Err() != nil {
			return
		}
		if heard {
			failures = 1
		}
		wait := l.peers.options.Backoff.waitAfter(failures, l.peers.options.Random())
		l.setFailed(err, wait)
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return
		}
	}
}

func (l *link) setFailed(err error, wait time.Duration) {
	l.mu.Lock()
	l.figures.Failures++
	l.figures.LastError = err.Error()
	l.mu.Unlock()
	l.peers.log.Log(slog.LevelWarn, "no connection to a peer", "no connection to a peer",
		"peer", l.id.String(), "error", err, "again_in", wait)
}

// connect tries the addresses of the peer and uses the first connection that succeeds until it
// ends.
func (l *link) connect(ctx context.Context) (heard bool, err error) {
	err = errors.New("no address is known")
	for _, address := range l.peers.options.Address(l.id) {
		raw, conn, k, dialErr := l.dial(ctx, address)
		if dialErr != nil {
			err = fmt.Errorf("%s: %w", address, dialErr)
			continue
		}
		heard, err = l.use(ctx, raw, conn, k)
		return heard, fmt.Errorf("%s: %w", address, err)
	}
	return false, err
}

// dial makes a connection and does its handshake, both within one time limit. Raw is what is
// closed: closing TLS may wait for the other side.
func (l *link) dial(ctx context.Context, address string) (raw, conn net.Conn, k remoteNode,
	err error) {
	ctx, cancel := context.WithTimeout(ctx, l.peers.options.Handshake)
	defer cancel()
	made, err := l.peers.options.Dial(ctx, address)
	if err != nil {
		return nil, nil, remoteNode{}, err
	}
	// It may run when dial has returned: raw is nil by then where the handshake failed.
	interrupt := context.AfterFunc(ctx, func() { _ = made.Close() })
	conn, k, err = l.peers.greet(ctx, made, l.id)
	if !interrupt() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		_ = made.Close() // it is of no use
		return nil, nil, remoteNode{}, err
	}
	return made, conn, k, nil
}

// use sends frames until the connection ends, and says why it did.
func (l *link) use(ctx context.Context, raw, conn net.Conn, k remoteNode) (heard bool, err error) {
	stop := context.AfterFunc(ctx, func() { _ = raw.Close() })
	defer stop()

	l.mu.Lock()
	l.connected, l.raw, l.version = true, raw, k.version
	l.figures.Connections++
	l.mu.Unlock()
	l.peers.options.Reached(l.id, k.version, true)

	var readErr error
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		heard, readErr = l.listen(conn)
		_ = raw.Close() // a write that waits ends
	}()
	written, err := l.write(conn, ended)
	_ = raw.Close()
	<-ended
	if err == nil || errors.Is(err, net.ErrClosed) || errors.Is(err, io.ErrClosedPipe) {
		err = readErr // the reader ended first
	}
	l.endConnection(written)
	l.peers.options.Reached(l.id, 0, false)
	return heard, err
}

// listen reads what the peer says on a connection that only this side sends on: that it is alive.
func (l *link) listen(conn net.Conn) (heard bool, err error) {
	defer l.hearing.Store(0)
	in := newFrames(&timeoutReader{conn, l.peers.options.Silence}, 0, aliveBuffer, &l.hearing)
	for {
		kind, _, err := in.next()
		if err != nil {
			return heard, err
		}
		if kind != kindAlive {
			return heard, fmt.Errorf("%w: the accepting side sends none", errFrame)
		}
		heard = true
	}
}

// write writes what is queued until that fails or the reader has ended. It returns how many bytes
// of the batch in flight were written.
func (l *link) write(conn net.Conn, ended <-chan struct{}) (written int, err error) {
	alive := time.NewTicker(l.peers.options.Alive)
	defer alive.Stop()
	silence := l.peers.options.Silence
	for {
		select {
		case <-ended:
			return 0, nil
		case <-alive.C:
			if err := writeAlive(conn, silence); err != nil {
				return 0, err
			}
			l.mu.Lock()
			l.queue.trim()
			l.mu.Unlock()
		case <-l.ready:
			l.mu.Lock()
			batch, count := l.queue.take()
			l.mu.Unlock()
			if written, err := writeAll(conn, batch, silence); err != nil {
				return written, err
			}
			l.mu.Lock()
			l.queue.finishBatch()
			l.countSent(len(batch), count)
			l.mu.Unlock()
		}
	}
}

// countSent counts frames that were written. Callers hold mu.
func (l *link) countSent(bytes, count int) {
	l.figures.Sent += uint64(count)
	l.figures.SentBytes += uint64(bytes - count*headerSize)
}

// endConnection ends the use of a connection: frames that were not wholly written are dropped and
// counted.
func (l *link) endConnection(written int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	flight := l.queue.flight
	all, _ := wholeFrames(flight, len(flight))
	whole, end := wholeFrames(flight, written)
	l.countSent(end, whole)
	l.figures.Dropped.Lost += uint64(all - whole + l.queue.clear())
	l.connected, l.raw, l.version = false, nil, 0
	select {
	case <-l.ready: // the next connection begins with an empty queue
	default:
	}
}

// timeoutReader reads from a connection with a time limit for each read.
type timeoutReader struct {
	conn    net.Conn
	silence time.Duration
}

// Read returns what has arrived; errSilent if that is nothing for too long.
func (r *timeoutReader) Read(dst []byte) (int, error) {
	if err := r.conn.SetReadDeadline(time.Now().Add(r.silence)); err != nil {
		return 0, err
	}
	n, err := r.conn.Read(dst)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = errSilent
	}
	return n, err
}

// writeAll writes a batch. Each part of it has the time limit.
func writeAll(conn net.Conn, batch []byte, limit time.Duration) (written int, err error) {
	for written < len(batch) {
		if err := conn.SetWriteDeadline(time.Now().Add(limit)); err != nil {
			return written, err
		}
		n, err := conn.Write(batch[written:min(len(batch), written+writeSize)])
		written += n
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return written, errStuck
		}
		if err != nil {
			return written, err
		}
	}
	return written, nil
}

func writeAlive(conn net.Conn, limit time.Duration) error {
	_, err := writeAll(conn, appendHeader(nil, kindAlive, nil), limit)
	return err
}
