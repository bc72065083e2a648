package httpapi

import (
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/klauspost/compress/gzip"
)

const (
	// worthPacking is the size from which on answers are compressed. A few packets
	// leave together, and compressing them takes longer than sending them.
	worthPacking = 3 * 1400
	// packersAtOnce bounds the replies that are compressed at the same time,
	// and the compressors that are kept; further replies go out as they are.
	packersAtOnce = 16
)

// packers are the compressors of all replies: nil stands for one that was not
// made yet.
type packers chan *gzip.Writer

func newPackers() packers {
	p := make(packers, packersAtOnce)
	for range packersAtOnce {
		p <- nil
	}
	return p
}

// take returns a compressor that writes to w, or nil when all are in use.
func (p packers) take(w io.Writer) *gzip.Writer {
	select {
	case z := <-p:
		if z == nil {
			// The fastest level: figures lose half of their size with it, or more.
			z, _ = gzip.NewWriterLevel(nil, gzip.BestSpeed) // the level is valid
		}
		z.Reset(w)
		return z
	default:
		return nil
	}
}

func (p packers) give(z *gzip.Writer) {
	z.Reset(io.Discard)
	p <- z
}

// reply remembers the status of an answer and compresses it where the client
// takes that and the answer is long enough: what comes first is held until it
// is, so that short answers keep their Content-Length.
type reply struct {
	http.ResponseWriter
	status int // 0 = nothing was written

	packers packers // nil: the answer goes out as it is
	held    []byte
	packer  *gzip.Writer // once the answer is compressed
}

// Unwrap lets http.ResponseController reach the connection.
func (w *reply) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// WriteHeader notes the status, and sends it unless the form is still open.
func (w *reply) WriteHeader(status int) {
	if w.status != 0 {
		return
	}
	w.status = status
	if w.packers == nil {
		w.ResponseWriter.WriteHeader(status)
	}
}

// Write sends p, holds it or compresses it.
func (w *reply) Write(p []byte) (int, error) {
	if w.status == 0 {
		w.WriteHeader(http.StatusOK)
	}
	if w.packer != nil {
		return w.packer.Write(p)
	}
	if w.packers == nil {
		return w.ResponseWriter.Write(p)
	}
	if len(w.held) == 0 && len(p) < worthPacking &&
		w.Header().Get("Content-Length") == strconv.Itoa(len(p)) {
		if err := w.release(); err != nil { // this is all, and short
			return 0, err
		}
		return w.ResponseWriter.Write(p)
	}
	if len(w.held)+len(p) < worthPacking {
		w.held = append(w.held, p...)
		return len(p), nil
	}
	if w.packer = w.packers.take(w.ResponseWriter); w.packer == nil {
		if err := w.release(); err != nil {
			return 0, err
		}
		return w.ResponseWriter.Write(p)
	}
	w.Header().Set("Content-Encoding", "gzip")
	w.Header().Del("Content-Length")
	w.ResponseWriter.WriteHeader(w.status)
	if _, err := w.packer.Write(w.held); err != nil {
		return 0, err
	}
	w.held = nil
	return w.packer.Write(p)
}

// release sends what is held as it is.
func (w *reply) release() error {
	w.packers = nil
	w.ResponseWriter.WriteHeader(w.status)
	if len(w.held) == 0 {
		return nil
	}
	_, err := w.ResponseWriter.Write(w.held)
	w.held = nil
	return err
}

// end ends the answer. whole is false when the route broke off: then nothing
// may make the answer look complete.
func (w *reply) end(whole bool) {
	if w.packer != nil {
		if whole {
			_ = w.packer.Close() // fails when the client left: nobody to tell
		}
		w.packers.give(w.packer)
		return
	}
	if whole && w.packers != nil && w.status != 0 {
		_ = w.release() // likewise
	}
}

// takesGzip reports whether the client accepts gzip.
func takesGzip(r *http.Request) bool {
	for coding, weight := range entries(r, "Accept-Encoding") {
		if coding != "gzip" && coding != "x-gzip" && coding != "*" {
			continue
		}
		text, weighted := strings.CutPrefix(strings.ReplaceAll(weight, " ", ""), "q=")
		if !weighted {
			return true
		}
		q, err := strconv.ParseFloat(text, 64)
		return err == nil && q > 0
	}
	return false
}
