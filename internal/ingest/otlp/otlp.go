// Package otlp takes metrics of OpenTelemetry
// (opentelemetry.io/docs/specs/otlp, ExportMetricsServiceRequest in protocol buffers). Series have
// the names and labels that Prometheus gives them. DESIGN.md says what of a message is kept.
package otlp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"strconv"

	"google.golang.org/protobuf/encoding/protowire"

	"dalmatiner/internal/ingest/acked"
	"dalmatiner/internal/model/account"
)

// Listener is the name under which the account counts what was refused.
const Listener = "otlp"

// Options configure a server.
type Options struct {
	Writers *acked.Writers
	Promote []string // attributes of resources that become labels of all their series
}

// Server takes requests. Its methods may be called concurrently.
type Server struct {
	writers *acked.Writers
	promote map[string]bool
	names   *names
	request schema // in JSON
}

// New returns a server.
func New(o Options) *Server {
	s := &Server{writers: o.Writers, promote: make(map[string]bool), names: newNames(),
		request: newRequestSchema()}
	for _, attribute := range o.Promote {
		s.promote[attribute] = true
	}
	return s
}

// Written says what became of the data points of a request.
type Written struct {
	Points   int            // that were handed over
	Rejected int            // that are none, or cannot be kept
	Counts   account.Counts // of the points in the store: a histogram is several
}

// Response returns the ExportMetricsServiceResponse of a request: with the number of data points
// that were rejected for good, and why.
func (w *Written) Response(why error) []byte {
	rejected := w.Rejected + int(w.Counts.RefusedTotal())
	if rejected == 0 {
		return nil
	}
	partial := protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType),
		uint64(rejected))
	partial = protowire.AppendString(protowire.AppendTag(partial, 2, protowire.BytesType),
		why.Error())
	return protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), partial)
}

// ResponseJSON is Response in JSON.
func (w *Written) ResponseJSON(why error) []byte {
	type partial struct {
		Rejected string `json:"rejectedDataPoints"` // an integer of 64 bits
		Message  string `json:"errorMessage"`
	}
	out := map[string]partial{}
	if rejected := w.Rejected + int(w.Counts.RefusedTotal()); rejected > 0 {
		out["partialSuccess"] = partial{strconv.Itoa(rejected), why.Error()}
	}
	text, _ := json.Marshal(out) // of texts
	return text
}

// PartialError is the error of a request of which some data points were rejected for good; all
// others are stored.
type PartialError struct {
	Rejected int
	Why      error // of the first
}

func (e *PartialError) Error() string {
	return fmt.Sprintf("%d data points are not stored, such as: %v", e.Rejected, e.Why)
}

// ErrMalformed is the error of a request that is no message. Nothing of it is stored.
var ErrMalformed = errors.New("the body is no ExportMetricsServiceRequest of protocol buffers")

// Write stores a message, and returns when all of it is durable. The error is ErrMalformed, a
// *PartialError, a *acked.Refusal, of the bucket as unacked.Refused says, that of ctx, or it means
// that nothing can be stored any more.
func (s *Server) Write(ctx context.Context, bucket string, peer netip.AddrPort,
	msg []byte) (Written, error) {
	if !isMessage(msg) {
		s.writers.Refuse("malformed", peer, []byte(ErrMalformed.Error()))
		return Written{}, ErrMalformed
	}
	to, err := s.writers.Begin(bucket, peer)
	if err != nil {
		return Written{}, err
	}
	d := decoder{server: s, peer: peer, to: to}
	d.request(msg)
	if d.exemplars > 0 {
		s.writers.Count("exemplar_not_kept", d.exemplars)
	}
	w := Written{Points: d.points, Rejected: d.rejected}
	w.Counts, err = to.End(ctx)
	if err == nil && d.rejected > 0 {
		err = &PartialError{d.rejected, d.why}
	}
	return w, err
}
