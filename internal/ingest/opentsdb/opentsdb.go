// Package opentsdb takes points as clients of OpenTSDB 2 send them: objects of JSON to /api/put,
// and lines of its telnet form. Both become series of one bucket. DESIGN.md says what of a point
// is kept.
package opentsdb

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"dalmatiner/internal/ingest/acked"
	"dalmatiner/internal/ingest/appender"
	"dalmatiner/internal/ingest/labels"
	"dalmatiner/internal/model/account"
)

// Listener is the name under which the account counts what was refused.
const Listener = "opentsdb"

// datapoint is one point of a client. Its slices are valid until the next one is read.
type datapoint struct {
	metric []byte
	tags   []labels.Label
	time   []byte // as sent
	value  []byte // as sent

	parts [][]byte // of the metric
}

// Why a point is none, in the words of OpenTSDB where it has some.
var (
	errMetric = errors.New("metric name was empty")
	errTime   = errors.New("invalid timestamp")
	errValue  = errors.New("unable to parse value to a number")
	errType   = errors.New("metric, timestamp, value or tags has the wrong type")
	errTag    = errors.New("invalid tag, write name=value")
)

// store hands the point over.
func (d *datapoint) store(to *appender.Appender) error {
	if len(d.metric) == 0 {
		return errMetric
	}
	ns, ok := nanoseconds(d.time)
	if !ok {
		return errTime
	}
	word, ok := number(d.value)
	if !ok {
		return errValue
	}
	d.parts = d.parts[:0]
	for rest, more := d.metric, true; more; {
		var part []byte
		part, rest, more = bytes.Cut(rest, []byte("."))
		d.parts = append(d.parts, part)
	}
	if err := to.Series(d.tags, d.parts...); err != nil {
		return err
	}
	to.PointAt(ns, word)
	return nil
}

// Server takes requests of HTTP. Its methods may be called concurrently.
type Server struct{ writers *acked.Writers }

// New returns a server that stores through writers.
func New(writers *acked.Writers) *Server { return &Server{writers} }

// maxNamed is how many bad points a request has named; the others are counted only.
const maxNamed = 1000

// Written says what became of the points of a request.
type Written struct {
	Good   int            // points that were handed over; Counts says what became of them
	Bad    int            // points that are none
	Named  []Bad          // the first of them
	Counts account.Counts // of the good ones
}

// Stored returns how many points are in the store.
func (w *Written) Stored() int { return w.Good - int(w.Counts.RefusedTotal()) }

// Bad is a point that is none.
type Bad struct {
	Number int    // of the point in its request, from 1
	Point  []byte // as it was sent: part of the body
	Why    error
}

// SyntaxError is the error of a body that is not JSON from a byte on. What stands ahead of it is
// stored.
type SyntaxError struct {
	At      int // byte, from 0
	Why     string
	Written Written
}

// Error says where the body ends to be JSON.
func (e *SyntaxError) Error() string {
	return fmt.Sprintf("Unable to parse the given JSON: at byte %d %s; %d points ahead of it are stored",
		e.At, e.Why, e.Written.Stored())
}

// PartialError is the error of a request of which some points were bad; all others are stored.
type PartialError struct{ Written Written }

// Error names the first bad points.
func (e *PartialError) Error() string {
	const most = 5
	var texts []string
	for _, b := range e.Written.Named[:min(most, len(e.Written.Named))] {
		texts = append(texts, fmt.Sprintf("point %d: %v", b.Number, b.Why))
	}
	if n := e.Written.Bad - len(texts); n > 0 {
		texts = append(texts, fmt.Sprintf("and %d more", n))
	}
	return strings.Join(texts, "; ")
}

// Put stores the points of a body, one object or a list of them, and returns when all of them are
// durable. The error is a *PartialError, a *SyntaxError, a *acked.Refusal, of the bucket as
// unacked.Refused says, that of ctx, or it means that nothing can be stored any more.
func (s *Server) Put(ctx context.Context, bucket string, peer netip.AddrPort,
	body []byte) (Written, error) {
	to, err := s.writers.Begin(bucket, peer)
	if err != nil {
		return Written{}, err
	}
	r := request{server: s, to: to, peer: peer, in: scanner{src: body}}
	syntax := r.body()
	if syntax != nil {
		s.writers.Refuse("bad_json", peer, body[min(syntax.At, len(body)):])
	}
	w := r.written
	if w.Counts, err = to.End(ctx); err != nil {
		return w, err
	}
	if syntax != nil {
		syntax.Written = w
		return w, syntax
	}
	if w.Bad > 0 {
		return w, &PartialError{w}
	}
	return w, nil
}

// request is the way of one request.
type request struct {
	server  *Server
	to      *acked.Writer
	peer    netip.AddrPort
	in      scanner
	point   datapoint
	written Written
}

// body stores an object, or those of a list.
func (r *request) body() *SyntaxError {
	err := r.values()
	if known := (*SyntaxError)(nil); errors.As(err, &known) {
		return known
	}
	return nil
}

func (r *request) values() error {
	if !r.in.skip('[') {
		if err := r.datapoint(); err != nil {
			return err
		}
		return r.in.end()
	}
	if r.in.skip(']') {
		return r.in.end()
	}
	for {
		if err := r.datapoint(); err != nil {
			return err
		}
		if r.in.skip(']') {
			return r.in.end()
		}
		if err := r.in.expect(','); err != nil {
			return err
		}
	}
}

// datapoint stores one object. An error is that of the syntax.
func (r *request) datapoint() error {
	r.in.space()
	from := r.in.at
	why, err := r.in.datapoint(&r.point)
	if err != nil {
		return err
	}
	if why == nil {
		why = r.point.store(r.to.Appender)
	}
	if why == nil {
		r.written.Good++
		return nil
	}
	r.written.Bad++
	text := r.in.src[from:r.in.at]
	r.server.writers.Refuse("bad_point", r.peer, text)
	if len(r.written.Named) < maxNamed {
		r.written.Named = append(r.written.Named,
			Bad{r.written.Good + r.written.Bad, text, why})
	}
	return nil
}
