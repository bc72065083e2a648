package httpapi

import (
	"bufio"
	"context"
	"errors"
	"net/http"
	"strconv"

	"dalmatiner/internal/query"
)

// begunWriter knows whether anything was written.
type begunWriter struct {
	http.ResponseWriter
	begun bool
}

func (w *begunWriter) Write(p []byte) (int, error) {
	w.begun = true
	return w.ResponseWriter.Write(p)
}

// writeResult answers with the result of a query in the form asked for. Once
// it has begun, only a broken connection can say that it is not whole.
func (a *api) writeResult(ctx context.Context, out http.ResponseWriter, asked form,
	r *query.Result) error {
	w := &begunWriter{ResponseWriter: out}
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
	err := encode(ctx, b, r)
	if err == nil && !w.begun { // then all of it is here, and goes out in one piece
		w.Header().Set("Content-Length", strconv.Itoa(b.Buffered()))
	}
	if err != nil && !w.begun {
		w.Header().Del("Content-Type")
		if errors.Is(context.Cause(ctx), errQueryTimeout) {
			return tookTooLong(a.QueryTimeout)
		}
		return err
	}
	if err = errors.Join(err, b.Flush()); err != nil {
		panic(http.ErrAbortHandler)
	}
	b.Reset(nil)
	a.pieces.Put(b)
	return nil
}
