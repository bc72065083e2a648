package httpapi

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"time"

	"dalmatiner/internal/host/memory"
	"dalmatiner/internal/ingest/conns"
)

const (
	// replyPiece is what a client has to take of its answer within the time it has.
	replyPiece = 32 << 10

	// bodyCost is the memory that a body needs for each of its bytes: the buffer it
	// is read into, which doubles, and the text made of it.
	bodyCost = 4

	// bodyStep is what a body is charged for at a time.
	bodyStep = 16 << 10
)

// NewBodies adds the memory of bodies of requests to the budget. stall is how long a client
// may bring next to nothing of its body, which has at most maxBody bytes.
func NewBodies(b *memory.Budget, stall time.Duration, maxBody int64) *memory.Leases {
	return conns.NewUnfinished(b, "http-bodies", stall, bodyCost*(maxBody+bodyStep))
}

// body reads the body of a request. Its memory is leased as it arrives: while
// others have that memory it is not read, and a client that does not go on with it
// is cut off.
type body struct {
	io.Closer
	ctx     context.Context // of the request
	in      conns.Reader
	charged int64 // bytes that may still come
}

func newBody(r *http.Request, conn *conns.Conn, lease *memory.Lease) *body {
	return &body{
		Closer: r.Body,
		ctx:    r.Context(),
		in:     conns.Reader{From: r.Body, Conn: conn, Lease: lease},
	}
}

// bodyOf returns the body of a request that serve was given.
func bodyOf(r *http.Request) *body {
	if b, ok := r.Body.(*body); ok {
		return b
	}
	return &body{} // of nobody
}

// Read reads what there is memory for.
func (b *body) Read(p []byte) (int, error) {
	if b.charged <= 0 {
		if err := b.in.Lease.GrowWhenFree(b.ctx, bodyStep*bodyCost); err != nil {
			return 0, err
		}
		b.charged = bodyStep
	}
	n, err := b.in.Read(p[:min(int64(len(p)), b.charged)])
	b.charged -= int64(n)
	return n, err
}

// done gives back what bytes of the body took that are stored, or of no use any more.
func (b *body) done(bytes int64) {
	b.in.Lease.Shrink(min(bytes*bodyCost, b.in.Lease.Bytes()))
}

// keep gives back what the body took beyond some bytes that are made of it.
func (b *body) keep(bytes int64) {
	b.in.Lease.Shrink(max(0, b.in.Lease.Bytes()-bytes))
}

// patientWriter sends an answer in pieces of replyPiece and gives the client a time
// for each. One that reads more slowly is cut off: its result is memory that others
// wait for. While memory is short that happens earlier, by the rules of the lease
// that the answer is charged to.
type patientWriter struct {
	http.ResponseWriter
	control *http.ResponseController
	conn    *conns.Conn
	lease   *memory.Lease // nil for answers that hold no memory to speak of
	body    *memory.Lease // of the request
	stall   time.Duration
	end     time.Time // of the whole answer; zero for one that may take as long as it likes
}

// clientOf returns the writer to the client under the one that a route was given.
func clientOf(w http.ResponseWriter) *patientWriter {
	for {
		switch under := w.(type) {
		case *patientWriter:
			return under
		case interface{ Unwrap() http.ResponseWriter }:
			w = under.Unwrap()
		default:
			return &patientWriter{} // of nobody
		}
	}
}

// Unwrap lets http.ResponseController reach the connection.
func (w *patientWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Write sends p.
func (w *patientWriter) Write(p []byte) (n int, err error) {
	for _, lease := range []*memory.Lease{w.lease, w.body} {
		lease.Await(func(why memory.CutReason) { w.conn.Cut(string(why)) })
		defer lease.Resume()
	}
	w.conn.Idle()
	defer w.conn.Busy()
	for first := true; first || len(p) > 0; first = false {
		until := time.Now().Add(w.stall)
		if !w.end.IsZero() && w.end.Before(until) {
			until = w.end
		}
		if err := w.control.SetWriteDeadline(until); err != nil && !errors.Is(err, http.ErrNotSupported) {
			return n, err
		}
		m, err := w.ResponseWriter.Write(p[:min(len(p), replyPiece)])
		n += m
		if errors.Is(err, os.ErrDeadlineExceeded) {
			w.conn.Cut(conns.CutStalled)
		}
		if err != nil {
			return n, err
		}
		w.lease.NoteProgress()
		w.body.NoteProgress()
		p = p[m:]
	}
	return n, nil
}
