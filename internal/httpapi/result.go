package httpapi

import (
	"bufio"
	"errors"
	"net/http"
	"strconv"
	"time"

	"dalmatiner/internal/query"
)

// patientWriter gives the client writePiece for every piece of an answer, and
// writeReply for all of it. One that reads more slowly is cut off: its result
// is memory that others wait for.
type patientWriter struct {
	http.ResponseWriter
	control *http.ResponseController
	end     time.Time
	begun   bool // a piece was sent
}

func patient(w http.ResponseWriter) *patientWriter {
	return &patientWriter{ResponseWriter: w, control: http.NewResponseController(w), end: time.Now().Add(writeReply)}
}

// Write sends a piece.
func (w *patientWriter) Write(p []byte) (int, error) {
	w.begun = true
	until := time.Now().Add(writePiece)
	if w.end.Before(until) {
		until = w.end
	}
	if err := w.control.SetWriteDeadline(until); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return 0, err
	}
	return w.ResponseWriter.Write(p)
}

// writeResult answers with the result of a query in the form asked for. Once
// it has begun, only a broken connection can say that it is not whole.
func (a *api) writeResult(w *patientWriter, asked form, r *query.Result) error {
	encode, contentType := encodeJSON, typeJSON
	if asked == formMsgpack {
		encode, contentType = encodeMsgpack, typeMsgpack
	}
	w.Header().Set("Content-Type", contentType)
	b, ok := a.pieces.Get().(*bufio.Writer)
	if !ok {
		b = bufio.NewWriterSize(nil, replyBuffer)
	}
	b.Reset(w)
	err := encode(b, r)
	if err == nil && !w.begun { // then all of it is here, and goes out in one piece
		w.Header().Set("Content-Length", strconv.Itoa(b.Buffered()))
	}
	if err = errors.Join(err, b.Flush()); err != nil {
		panic(http.ErrAbortHandler)
	}
	b.Reset(nil)
	a.pieces.Put(b)
	return nil
}
