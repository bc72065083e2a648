package senders

import (
	"errors"
	"mime"
	"net/http"

	"dalmatiner/internal/ingest/loki"
)

// lokiPush stores lines of logs as events.
func (o *Options) lokiPush(w http.ResponseWriter, r *http.Request, in Body) error {
	media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	var body []byte
	switch {
	case err == nil && media == typeJSON:
		if body, err = o.unpacked(r, in); err == nil {
			err = in.Grow(jsonGrowth * int64(len(body)))
		}
	case err == nil && media == typeProtobuf:
		body, err = o.unsnapped(in)
	default:
		err = &Error{Status: http.StatusUnsupportedMediaType, Text: "lines are taken as " + typeJSON +
			", and as " + typeProtobuf + " compressed with snappy"}
	}
	if err != nil {
		return err
	}
	err = o.Loki.Write(r.Context(), peer(r), media == typeJSON, body)
	if errors.Is(err, loki.ErrMalformed) || errors.As(err, new(*loki.BadEntries)) {
		return &Error{Status: http.StatusBadRequest, Text: err.Error()}
	}
	if err := stored(err); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
