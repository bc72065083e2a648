package senders

import (
	"errors"
	"mime"
	"net/http"

	"dalmatiner/internal/ingest/acked"
	"dalmatiner/internal/ingest/otlp"
)

const (
	typeProtobuf = "application/x-protobuf"
	typeJSON     = "application/json"

	// jsonGrowth is how many times the memory of a text its values take.
	jsonGrowth = 10
)

// otlpRoutes are where exporters of OpenTelemetry append to their endpoint: at the root, where
// VictoriaMetrics has them, and where Prometheus has them.
func (o *Options) otlpRoutes() (out []Route) {
	for _, prefix := range []string{"", "/opentelemetry", "/api/v1/otlp",
		"/opentelemetry/api/v1/otlp", "/prometheus/api/v1/otlp"} {
		out = append(out, Route{prefix + "/v1/metrics", "POST", "/v1/metrics", o.otlpMetrics})
	}
	return out
}

// otlpMetrics stores metrics (opentelemetry.io/docs/specs/otlp, OTLP/HTTP). Data points that are
// rejected for good are a partial success: no client sends them again.
func (o *Options) otlpMetrics(w http.ResponseWriter, r *http.Request, in Body) error {
	media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || media != typeProtobuf && media != typeJSON {
		return &Error{Status: http.StatusUnsupportedMediaType, Text: "metrics of OTLP are taken as " +
			typeProtobuf + " and " + typeJSON}
	}
	body, err := o.unpacked(r, in)
	if err != nil {
		return err
	}
	if media == typeJSON {
		if err := in.Grow(jsonGrowth * int64(len(body))); err != nil {
			return err
		}
		if body, err = o.OTLP.FromJSON(body); err != nil {
			return &Error{Status: http.StatusBadRequest, Text: err.Error()}
		}
	}
	written, err := o.OTLP.Write(r.Context(), o.OTLPBucket, peer(r), body)
	var (
		partial *otlp.PartialError
		refusal *acked.Refusal
	)
	switch {
	case errors.Is(err, otlp.ErrMalformed):
		return &Error{Status: http.StatusBadRequest, Text: err.Error()}
	case err == nil, errors.As(err, &partial), errors.As(err, &refusal) && !refusal.Retry():
		answer := written.Response(err)
		if media == typeJSON {
			answer = written.ResponseJSON(err)
		}
		w.Header().Set("Content-Type", media)
		_, err := w.Write(answer)
		return err
	}
	return stored(err)
}
