package httpapi

import (
	"bufio"
	"errors"
	"net/http"

	"dalmatiner/internal/query"
)

// writeResult answers with the result of a query in the form asked for. Once
// it has begun, only a broken connection can say that it is not whole.
func writeResult(w http.ResponseWriter, asked form, r *query.Result) error {
	encode, contentType := encodeJSON, typeJSON
	if asked == formMsgpack {
		encode, contentType = encodeMsgpack, typeMsgpack
	}
	w.Header().Set("Content-Type", contentType)
	b := bufio.NewWriterSize(w, replyBuffer)
	err := encode(b, r)
	if err = errors.Join(err, b.Flush()); err != nil {
		panic(http.ErrAbortHandler)
	}
	return nil
}
