package httpapi

import (
	"errors"
	"io"
	"net/http"
	"os"
	"time"

	"dalmatiner/internal/ingest/conns"
	"dalmatiner/internal/memory"
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

// body reads the body of a request. Its memory is leased as it arrives: while
// others have that memory it is not read, and a client that does not go on with it
// is cut off.
type body struct {
	io.ReadCloser
	request *http.Request
	conn    *conns.Conn
	lease   *memory.Lease
	charged int64 // bytes that may still come
}

// Read reads what there is memory for.
func (b *body) Read(p []byte) (int, error) {
	if b.charged <= 0 {
		if err := b.lease.GrowWhenFree(b.request.Context(), bodyStep*bodyCost); err != nil {
			return 0, err
		}
		b.charged = bodyStep
	}
	p = p[:min(int64(len(p)), b.charged)]
	b.lease.Await(func(why memory.Cut) { b.conn.Cut(string(why)) })
	b.conn.Idle()
	n, err := b.ReadCloser.Read(p)
	b.conn.Busy()
	b.lease.Resume()
	b.charged -= int64(n)
	return n, err
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
	w.lease.Await(func(why memory.Cut) { w.conn.Cut(string(why)) })
	defer w.lease.Resume()
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
		w.lease.Moved()
		p = p[m:]
	}
	return n, nil
}
