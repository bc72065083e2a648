package senders

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"

	"github.com/klauspost/compress/gzip"

	"dalmatiner/internal/ingest/influx"
)

// influxVersion is what clients see of /ping: some choose by it what they send.
const influxVersion = "1.8.10-dalmatiner"

// influxRoutes are those of InfluxDB's versions 1 to 3, at the root where the path is free, and
// below /influx.
func (o *Options) influxRoutes() (out []Route) {
	for _, prefix := range []string{"", "/influx"} {
		out = append(out,
			Route{prefix + "/write", "POST", "/write", o.influxWrite("db", influxError1)},
			Route{prefix + "/api/v2/write", "POST", "/write", o.influxWrite("bucket", influxError2)},
			Route{prefix + "/api/v3/write_lp", "POST", "/write", o.influxWrite("db", influxError1)},
			Route{prefix + "/query", "GET, POST", "/query", o.influxQuery},
			Route{prefix + "/ping", "GET", "/ping", influxPing},
		)
	}
	return append(out, Route{"/influx/health", "GET", "/ping", influxHealth})
}

// influxWrite stores the lines of a request, whose bucket stands in a parameter. Errors are in the
// form of the version.
func (o *Options) influxWrite(parameter string,
	form func(status int, text string) []byte) func(http.ResponseWriter, *http.Request, Body) error {
	return func(w http.ResponseWriter, r *http.Request, in Body) error {
		err := o.influxLines(parameter, r, in)
		if known := (*Error)(nil); errors.As(err, &known) {
			known.JSON = form(known.Status, known.Text)
		}
		if err == nil {
			w.Header().Set("X-Influxdb-Version", influxVersion)
			w.WriteHeader(http.StatusNoContent)
		}
		return err
	}
}

func (o *Options) influxLines(parameter string, r *http.Request, in Body) error {
	bucket, params := o.InfluxBucket, r.URL.Query()
	if name := params.Get(parameter); name != "" {
		bucket = name
	}
	unit, ok := influx.Precision(params.Get("precision"))
	if !ok {
		return &Error{Status: http.StatusBadRequest, Text: "precision " + params.Get("precision") +
			": known are ns, us, ms, s, m and h"}
	}
	body, err := o.unpacked(r, in)
	if err != nil {
		return err
	}
	_, err = o.Influx.Write(r.Context(), bucket, peer(r), unit, body)
	return stored(err)
}

// unpacked reads a whole body that may be compressed with gzip.
func (o *Options) unpacked(r *http.Request, in Body) ([]byte, error) {
	body, err := o.read(in)
	if err != nil {
		return nil, err
	}
	switch coding := r.Header.Get("Content-Encoding"); coding {
	case "", "identity":
		return body, nil
	case "gzip":
	default:
		return nil, &Error{Status: http.StatusUnsupportedMediaType,
			Text: "Content-Encoding " + coding + ": send the body as it is, or with gzip"}
	}
	reader, err := gzip.NewReader(bytes.NewReader(body))
	if err != nil {
		return nil, &Error{Status: http.StatusBadRequest, Text: "the body is not gzip: " + err.Error()}
	}
	var out bytes.Buffer
	for {
		if err := in.Grow(unpackStep); err != nil {
			return nil, err
		}
		n, err := io.CopyN(&out, reader, unpackStep/2) // the buffer doubles
		switch {
		case int64(out.Len()) > o.MaxBody:
			return nil, o.tooLarge(0)
		case n < unpackStep/2 && errors.Is(err, io.EOF):
			return out.Bytes(), nil
		case err != nil:
			return nil, &Error{Status: http.StatusBadRequest,
				Text: "the body is not gzip: " + err.Error()}
		}
	}
}

// unpackStep is the memory that is asked for at a time while a body is decompressed.
const unpackStep = 256 << 10

// influxError1 is an error as versions 1 and 3 have it, influxError2 as version 2.
func influxError1(_ int, text string) []byte {
	out, _ := json.Marshal(map[string]string{"error": text}) // of texts
	return out
}

func influxError2(status int, text string) []byte {
	code := "internal error"
	switch status {
	case http.StatusBadRequest, http.StatusUnsupportedMediaType:
		code = "invalid"
	case http.StatusNotFound:
		code = "not found"
	case http.StatusRequestEntityTooLarge:
		code = "request too large"
	case http.StatusServiceUnavailable:
		code = "unavailable"
	}
	out, _ := json.Marshal(map[string]string{"code": code, "message": text})
	return out
}

// influxQuery answers what senders ask before they write.
func (o *Options) influxQuery(w http.ResponseWriter, r *http.Request, _ Body) error {
	if err := r.ParseForm(); errors.As(err, new(*http.MaxBytesError)) {
		return o.tooLarge(0)
	} else if err != nil {
		return &Error{Status: http.StatusBadRequest, Text: err.Error(),
			JSON: influxError1(http.StatusBadRequest, err.Error())}
	}
	words := strings.Fields(strings.ToUpper(strings.Trim(r.Form.Get("q"), "; \n")))
	switch {
	case len(words) >= 3 && words[0] == "CREATE" && words[1] == "DATABASE":
		return influxAnswer(w, []byte(`{"results":[{"statement_id":0}]}`))
	case len(words) == 2 && words[0] == "SHOW" && words[1] == "DATABASES":
		values := [][]string{}
		for _, b := range o.Buckets() {
			values = append(values, []string{b.Name})
		}
		series := map[string]any{"name": "databases", "columns": []string{"name"}, "values": values}
		out, err := json.Marshal(map[string]any{"results": []any{
			map[string]any{"statement_id": 0, "series": []any{series}}}})
		if err != nil {
			return err
		}
		return influxAnswer(w, out)
	}
	text := "InfluxQL is not answered, except for CREATE DATABASE and SHOW DATABASES: ask in DQL, " +
		"GET /?q="
	return &Error{Status: http.StatusBadRequest, Text: text,
		JSON: influxError1(http.StatusBadRequest, text)}
}

func influxAnswer(w http.ResponseWriter, body []byte) error {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Influxdb-Version", influxVersion)
	_, err := w.Write(append(body, '\n'))
	return err
}

func influxPing(w http.ResponseWriter, _ *http.Request, _ Body) error {
	w.Header().Set("X-Influxdb-Version", influxVersion)
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func influxHealth(w http.ResponseWriter, _ *http.Request, _ Body) error {
	return influxAnswer(w, []byte(`{"name":"dalmatiner","status":"pass","message":"ready"}`))
}
