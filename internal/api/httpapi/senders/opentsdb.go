package senders

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"dalmatiner/internal/ingest/acked"
	"dalmatiner/internal/ingest/opentsdb"
)

// openTSDBVersion is what clients see of /api/version: some choose by it what they send.
const openTSDBVersion = "2.4.0-dalmatiner"

// openTSDBRoutes are those of OpenTSDB 2, at the root where the path is free, and below /opentsdb.
func (o *Options) openTSDBRoutes() (out []Route) {
	for _, prefix := range []string{"", "/opentsdb"} {
		out = append(out, Route{prefix + "/api/put", "POST, PUT", "/api/put", o.openTSDBPut})
	}
	return append(out,
		Route{"/opentsdb/api/version", "GET, POST", "/api/version", openTSDBAbout},
	)
}

func openTSDBAbout(w http.ResponseWriter, _ *http.Request, _ Body) error {
	return openTSDBAnswer(w, http.StatusOK, map[string]string{"version": openTSDBVersion})
}

func openTSDBAnswer(w http.ResponseWriter, status int, body any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json; charset=UTF-8")
	w.WriteHeader(status)
	_, err = w.Write(append(text, '\n'))
	return err
}

// openTSDBError is an error as OpenTSDB has it
// (opentsdb.net/docs/build/html/api_http/index.html, errors).
func openTSDBError(status int, text, details string) []byte {
	type body struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
		Details string `json:"details,omitempty"`
	}
	out, _ := json.Marshal(map[string]body{"error": {status, text, details}}) // of texts
	return out
}

// openTSDBPut stores the points of a request
// (opentsdb.net/docs/build/html/api_http/put.html).
func (o *Options) openTSDBPut(w http.ResponseWriter, r *http.Request, in Body) error {
	err := o.openTSDBPoints(w, r, in)
	if known := (*Error)(nil); errors.As(err, &known) && known.JSON == nil {
		known.JSON = openTSDBError(known.Status, known.Text, "")
	}
	return err
}

func (o *Options) openTSDBPoints(w http.ResponseWriter, r *http.Request, in Body) error {
	body, err := o.unpacked(r, in)
	if err != nil {
		return err
	}
	written, err := o.OpenTSDB.Put(r.Context(), o.OpenTSDBBucket, peer(r), body)
	params := r.URL.Query()
	details, summary := params.Has("details"), params.Has("summary")
	var (
		refusal *acked.Refusal
		partial *opentsdb.PartialError
	)
	bad := errors.As(err, &refusal) && !refusal.Retry() || errors.As(err, &partial)
	switch {
	case err == nil && written.Good == 0:
		err = &Error{Status: http.StatusBadRequest, Text: "No datapoints found in content"}
	case err == nil && !details && !summary:
		w.WriteHeader(http.StatusNoContent)
	case err == nil:
		return openTSDBAnswer(w, http.StatusOK, openTSDBResult(&written, refusal, details))
	case bad && (details || summary):
		return openTSDBAnswer(w, http.StatusBadRequest, openTSDBResult(&written, refusal, details))
	case bad:
		text := "One or more data points had errors"
		err = &Error{Status: http.StatusBadRequest, Text: text + ": " + err.Error(),
			JSON: openTSDBError(http.StatusBadRequest, text, err.Error())}
	}
	return openTSDBStored(err)
}

// openTSDBStored is stored with the errors of this protocol.
func openTSDBStored(err error) error {
	if syntax := (*opentsdb.SyntaxError)(nil); errors.As(err, &syntax) {
		return &Error{Status: http.StatusBadRequest, Text: err.Error()}
	}
	if errors.As(err, new(*Error)) {
		return err
	}
	return stored(err)
}

// result is the answer to a request that asks for one.
type result struct {
	Success int         `json:"success"`
	Failed  int         `json:"failed"`
	Errors  *[]badPoint `json:"errors,omitempty"`
}

type badPoint struct {
	Point json.RawMessage `json:"datapoint"`
	Why   string          `json:"error"`
}

// openTSDBResult says what became of the points of a request. refusal is that of the store, and may
// be nil: it does not name points.
func openTSDBResult(w *opentsdb.Written, refusal *acked.Refusal, details bool) result {
	out := result{Success: w.Stored(), Failed: w.Bad + w.Good - w.Stored()}
	if !details {
		return out
	}
	list := []badPoint{}
	for _, b := range w.Named {
		point := json.RawMessage(b.Point)
		if !json.Valid(point) { // a number such as 1-2
			point, _ = json.Marshal(string(b.Point)) // a text
		}
		list = append(list, badPoint{point, b.Why.Error()})
	}
	if n := w.Bad - len(w.Named); n > 0 {
		list = append(list, badPoint{nil, fmt.Sprintf("%d more are bad", n)})
	}
	if refusal != nil {
		list = append(list, badPoint{nil, refusal.Error()})
	}
	out.Errors = &list
	return out
}
