// Package senders has the routes that clients of other systems send points to. It takes the
// HTTP of their protocols apart, and leaves the messages to the packages of internal/ingest.
package senders

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"dalmatiner/internal/ingest/acked"
	"dalmatiner/internal/ingest/collectd"
	"dalmatiner/internal/ingest/exposition"
	"dalmatiner/internal/ingest/influx"
	"dalmatiner/internal/ingest/jsonlines"
	"dalmatiner/internal/ingest/loki"
	"dalmatiner/internal/ingest/opentsdb"
	"dalmatiner/internal/ingest/otlp"
	"dalmatiner/internal/ingest/remotewrite"
	"dalmatiner/internal/ingest/unacked"
	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/model/metric"
)

// Options is what the routes are made of.
type Options struct {
	RemoteWrite       *remotewrite.Server
	RemoteWriteBucket string // of paths that name none
	Influx            *influx.Server
	InfluxBucket      string // of requests that name none
	OpenTSDB          *opentsdb.Server
	OpenTSDBBucket    string
	JSONLines         *jsonlines.Server
	OTLP              *otlp.Server
	OTLPBucket        string
	Loki              *loki.Server
	Exposition        *exposition.Server
	Collectd          *collectd.JSON
	CollectdBucket    string
	Now               func() time.Time // of points without a time
	Buckets           func() []buckets.Info
	MaxBody           int64 // bytes of a body, compressed and not
}

// Route is a path that clients send to, in the language of http.ServeMux.
type Route struct {
	Path    string
	Methods string // separated by ", "
	Name    string // in /metrics
	Serve   func(w http.ResponseWriter, r *http.Request, in Body) error
}

// Body is the body of a request as it came. It ends with an *http.MaxBytesError beyond MaxBody.
type Body struct {
	io.Reader
	// Grow waits for the memory of so many bytes, which the request has until it is answered.
	Grow func(bytes int64) error
}

// Error is an error with the status of its answer.
type Error struct {
	Status int
	Text   string
	JSON   []byte // the answer where the protocol has a form of its own; nil: the text
}

func (e *Error) Error() string { return e.Text }

// Routes returns all routes.
func (o *Options) Routes() []Route {
	write, writeNamed := o.bothWays(o.remoteWrite)
	lines, linesNamed := o.bothWays(o.importLines)
	return append(slices.Concat(o.influxRoutes(), o.openTSDBRoutes(), o.otlpRoutes(),
		o.expositionRoutes()),
		Route{"/collectd", "POST", "/collectd", o.collectdValues},
		Route{"/api/v1/write", "POST", "/api/v1/write", write},
		Route{"/prometheus/api/v1/write", "POST", "/api/v1/write", write},
		Route{"/prometheus/{bucket}/api/v1/write", "POST", "/api/v1/write", writeNamed},
		Route{"/loki/api/v1/push", "POST", "/loki/api/v1/push", o.lokiPush},
		Route{"/api/v1/import", "POST", "/api/v1/import", lines},
		Route{"/prometheus/api/v1/import", "POST", "/api/v1/import", lines},
		Route{"/prometheus/{bucket}/api/v1/import", "POST", "/api/v1/import", linesNamed},
	)
}

// serve answers a request.
type serve func(w http.ResponseWriter, r *http.Request, in Body) error

// bothWays returns what stores into the bucket of remote write, and into the one that the path
// names.
func (o *Options) bothWays(store func(bucket string, w http.ResponseWriter, r *http.Request,
	in Body) error) (plain, inPath serve) {
	plain = func(w http.ResponseWriter, r *http.Request, in Body) error {
		return store(o.RemoteWriteBucket, w, r, in)
	}
	inPath = func(w http.ResponseWriter, r *http.Request, in Body) error {
		bucket, err := named(r)
		if err != nil {
			return err
		}
		return store(bucket, w, r, in)
	}
	return plain, inPath
}

// named returns the bucket that the path of a request names in its second part.
func named(r *http.Request) (string, error) {
	parts := strings.SplitN(r.URL.EscapedPath(), "/", 4)
	name, err := url.PathUnescape(parts[2])
	if err == nil {
		name, err = metric.Unescape(name)
	}
	if err != nil {
		err = &Error{Status: http.StatusBadRequest, Text: fmt.Sprintf("bucket %q: %v", parts[2], err)}
	}
	return name, err
}

// peer returns who sent a request; it is the zero value for what is no TCP connection.
func peer(r *http.Request) netip.AddrPort {
	addr, _ := netip.ParseAddrPort(r.RemoteAddr)
	return addr
}

// read reads a whole body.
func (o *Options) read(in Body) ([]byte, error) {
	body, err := io.ReadAll(in)
	if tooBig := (*http.MaxBytesError)(nil); errors.As(err, &tooBig) {
		return nil, o.tooLarge(0)
	}
	return body, err
}

// tooLarge is the error of a body beyond the limit, of so many bytes where they are known.
func (o *Options) tooLarge(bytes int64) error {
	text := fmt.Sprintf("the body has more than %d bytes, the limit is http.max_write: send fewer "+
		"points in a request, or raise it", o.MaxBody)
	if bytes > 0 {
		text = fmt.Sprintf("the body has %d bytes unpacked, the limit is http.max_write, %d: send "+
			"fewer points in a request, or raise it", bytes, o.MaxBody)
	}
	return &Error{Status: http.StatusRequestEntityTooLarge, Text: text}
}

// stored returns the error of a request whose points were handed over, with its status: the
// statuses of 5xx make clients send it again, those of 4xx let them go on without it.
func stored(err error) error {
	var (
		refusal *acked.Refusal
		bad     *remotewrite.BadRequest
		partial *influx.PartialError
		lines   *acked.BadLines
	)
	switch {
	case err == nil:
		return nil
	case errors.As(err, &refusal) && refusal.Retry():
		return &Error{Status: http.StatusServiceUnavailable, Text: err.Error()}
	case refusal != nil, errors.As(err, &bad), errors.As(err, &partial),
		errors.As(err, &lines),
		errors.Is(err, buckets.ErrInvalid):
		return &Error{Status: http.StatusBadRequest, Text: err.Error()}
	case errors.Is(err, buckets.ErrUnknown):
		return &Error{Status: http.StatusNotFound, Text: err.Error()}
	case errors.Is(err, context.DeadlineExceeded):
		return &Error{Status: http.StatusServiceUnavailable, Text: "the points are not durable in time"}
	}
	if _, ok := unacked.Refused(err); ok {
		return &Error{Status: http.StatusServiceUnavailable, Text: err.Error()}
	}
	return err
}
