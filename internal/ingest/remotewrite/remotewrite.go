// Package remotewrite takes what Prometheus and its relatives send: remote write 1.0 and 2.0
// (prometheus.io/docs/specs/prw). It reads their messages where they lie.
// DESIGN.md says what of a message is kept.
package remotewrite

import (
	"context"
	"errors"
	"net/netip"

	"dalmatiner/internal/ingest/acked"
	"dalmatiner/internal/model/account"
)

// Listener is the name under which the account counts what was refused.
const Listener = "remote_write"

// Version is one of the protocol.
type Version uint8

// The versions of the protocol: prometheus.WriteRequest and io.prometheus.write.v2.Request.
const (
	V1 Version = iota + 1
	V2
)

// Server takes requests. Its methods may be called concurrently.
type Server struct{ writers *acked.Writers }

// New returns a server that stores through writers.
func New(writers *acked.Writers) *Server { return &Server{writers} }

// Written says what of a request was stored.
type Written struct {
	Samples, Histograms int
	Counts              account.Counts // of all points, those of histograms included
}

// BadRequest is the error of a request that is never taken. Of a message that cannot be read,
// nothing is stored. Of a message with invalid series, all other series are stored.
type BadRequest struct{ Err error }

func (e *BadRequest) Error() string { return e.Err.Error() }

// Unwrap returns what is wrong.
func (e *BadRequest) Unwrap() error { return e.Err }

// Write stores a message that is no longer compressed, and returns when all of it is durable.
// The error is a *BadRequest, a *acked.Refusal, of the bucket as unacked.Refused says, that of
// ctx, or it means that nothing can be stored any more.
func (s *Server) Write(ctx context.Context, bucket string, peer netip.AddrPort, v Version,
	msg []byte) (Written, error) {
	d := decoder{server: s, peer: peer, v: v, n: fieldNumbers[v]}
	if err := d.check(msg); err != nil {
		s.writers.Refuse("malformed", peer, []byte(err.Error()))
		return Written{}, &BadRequest{err}
	}
	var err error
	if d.to, err = s.writers.Begin(bucket, peer); err != nil {
		return Written{}, err
	}
	d.store(msg)
	w := d.written
	w.Counts, err = d.to.End(ctx)
	if refusal := (*acked.Refusal)(nil); errors.As(err, &refusal) {
		w.Samples = max(0, w.Samples-int(refusal.Counts.RefusedTotal()))
	}
	if err == nil && d.bad != nil {
		err = &BadRequest{d.bad}
	}
	return w, err
}
