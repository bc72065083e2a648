package senders

import (
	"errors"
	"mime"
	"net/http"

	"dalmatiner/internal/ingest/acked"
	"dalmatiner/internal/ingest/otlp"
)

const typeProtobuf = "application/x-protobuf"

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
	if err != nil || media != typeProtobuf {
		return &Error{Status: http.StatusUnsupportedMediaType, Text: "metrics of OTLP are taken as " +
			typeProtobuf + ": set the protocol of the exporter to http/protobuf"}
	}
	body, err := o.unpacked(r, in)
	if err != nil {
		return err
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
		w.Header().Set("Content-Type", typeProtobuf)
		_, err := w.Write(written.Response(err))
		return err
	}
	return stored(err)
}
