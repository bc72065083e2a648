package httpapi

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"unicode/utf8"

	"dalmatiner/internal/model/metric"
)

// replyBuffer is the piece in which replies go out. Values are encoded as they
// go, so this is all the memory that the text of a reply takes.
const replyBuffer = 32 << 10

// pieceSize is how much encoders gather before they write: it bounds the
// growth of their buffer.
const pieceSize = 4 << 10

// writeJSON answers with a small value.
func writeJSON(w http.ResponseWriter, v any) error {
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false) // the type says that it is no page
	if err := e.Encode(v); err != nil {
		return fmt.Errorf("encoding the answer: %w", err)
	}
	w.Header().Set("Content-Type", typeJSON)
	_, _ = w.Write(text.Bytes()) // fails when the client left: nobody to tell
	return nil
}

// writeValue answers with a small value in the form asked for. The msgpack form
// has the shape of the JSON.
func writeValue(w http.ResponseWriter, asked form, v any) error {
	if asked != formMsgpack {
		return writeJSON(w, v)
	}
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encoding the answer: %w", err)
	}
	var plain any
	if err := json.Unmarshal(text, &plain); err != nil {
		return fmt.Errorf("encoding the answer: %w", err)
	}
	w.Header().Set("Content-Type", typeMsgpack)
	_, _ = w.Write(mpValue(nil, plain)) // fails when the client left: nobody to tell
	return nil
}

// appendString appends s as a JSON string. Bytes that are not UTF-8 turn it
// into its escape of package metric.
func appendString(dst []byte, s string) []byte {
	s = validText(s)
	dst = append(dst, '"')
	from := 0 // what is behind it is not yet in dst
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c >= ' ' && c != '"' && c != '\\' {
			continue
		}
		dst = append(dst, s[from:i]...)
		if from = i + 1; c < ' ' {
			dst = fmt.Appendf(dst, `\u%04x`, c)
		} else {
			dst = append(dst, '\\', c)
		}
	}
	return append(append(dst, s[from:]...), '"')
}

// appendFloat appends the shortest number that reads back as v, null for NaN
// and the infinities.
func appendFloat(dst []byte, v float64) []byte {
	abs := math.Abs(v)
	switch {
	case math.IsNaN(v) || math.IsInf(v, 0):
		return append(dst, "null"...)
	case abs < 1e15 && v == math.Trunc(v) && (v != 0 || !math.Signbit(v)):
		return strconv.AppendInt(dst, int64(v), 10)
	case abs != 0 && (abs < 1e-6 || abs >= 1e21):
		return strconv.AppendFloat(dst, v, 'e', -1, 64)
	}
	return strconv.AppendFloat(dst, v, 'f', -1, 64)
}

// encoded writes what an encoder has gathered and returns memory to go on in,
// which is the writer's: what is appended there is not copied.
func encoded(w *bufio.Writer, gathered []byte) ([]byte, error) {
	if _, err := w.Write(gathered); err != nil {
		return nil, err
	}
	if w.Available() < 2*pieceSize {
		if err := w.Flush(); err != nil {
			return nil, err
		}
	}
	return w.AvailableBuffer(), nil
}

func validText(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	return metric.Escape(s)
}
