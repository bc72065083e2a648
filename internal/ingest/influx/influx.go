// Package influx takes points in the line protocol of InfluxDB, as telegraf and many libraries
// send it. Each field of a line is a point of the series that measurement, field and tags name.
// DESIGN.md says what of a line is kept.
package influx

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"strings"
	"time"

	"dalmatiner/internal/ingest/acked"
	"dalmatiner/internal/ingest/labels"
	"dalmatiner/internal/model/account"
)

// Listener is the name under which the account counts what was refused.
const Listener = "influx"

// Server takes requests. Its methods may be called concurrently.
type Server struct {
	writers *acked.Writers
	now     func() time.Time
}

// New returns a server that stores through writers. now is the time of lines without one.
func New(writers *acked.Writers, now func() time.Time) *Server { return &Server{writers, now} }

// Precision returns the unit of times in a request, by the names that the versions of InfluxDB
// have for it. Without a name it is the nanosecond.
func Precision(name string) (time.Duration, bool) {
	switch name {
	case "", "n", "ns", "nanosecond":
		return time.Nanosecond, true
	case "u", "us", "µ", "µs", "microsecond":
		return time.Microsecond, true
	case "ms", "millisecond":
		return time.Millisecond, true
	case "s", "second":
		return time.Second, true
	case "m":
		return time.Minute, true
	case "h":
		return time.Hour, true
	}
	return 0, false
}

// Written says what became of the lines of a request.
type Written struct {
	Lines  int            // good ones
	Bad    int            // lines that are none, or that no series may have
	Texts  int            // fields that are strings: counted, and not kept
	Counts account.Counts // of the points
}

// PartialError is the error of a request of which some lines were bad; all others are stored.
type PartialError struct {
	Written Written
	first   []string // of the bad lines, with their numbers
}

// maxNamed is how many bad lines an error names.
const maxNamed = 5

// Error is in the form of InfluxDB's, which telegraf knows.
func (e *PartialError) Error() string {
	text := strings.Join(e.first, "; ")
	if e.Written.Bad > len(e.first) {
		text += fmt.Sprintf("; and %d more", e.Written.Bad-len(e.first))
	}
	return fmt.Sprintf("partial write: %s dropped=%d", text, e.Written.Bad)
}

var errNegative = errors.New("a time before 1970, or beyond 2262")

// Write stores lines, and returns when all of them are durable. Times are in a unit. The error is
// a *PartialError, a *acked.Refusal, of the bucket as unacked.Refused says, that of ctx, or it
// means that nothing can be stored any more.
func (s *Server) Write(ctx context.Context, bucket string, peer netip.AddrPort, unit time.Duration,
	body []byte) (Written, error) {
	to, err := s.writers.Begin(bucket, peer)
	if err != nil {
		return Written{}, err
	}
	r := request{server: s, to: to, peer: peer, unit: unit, now: s.now().UnixNano()}
	for number := 1; len(body) > 0; number++ {
		var text []byte
		text, body = next(body)
		number += r.line(number, text)
	}
	if r.written.Texts > 0 {
		s.writers.Count("text_field", r.written.Texts)
	}
	w := r.written
	w.Counts, err = to.End(ctx)
	if err == nil && w.Bad > 0 {
		err = &PartialError{w, r.first}
	}
	return w, err
}

// request is the way of one request.
type request struct {
	server  *Server
	to      *acked.Writer
	peer    netip.AddrPort
	unit    time.Duration
	now     int64 // ns
	parsed  line
	tags    []labels.Label
	written Written
	first   []string
}

// line stores one line, and returns how many more lines of the request it had.
func (r *request) line(number int, text []byte) (more int) {
	more = bytes.Count(text, []byte{'\n'})
	text = bytes.TrimLeft(bytes.TrimRight(text, "\r"), " ")
	if len(text) == 0 || text[0] == '#' {
		return more
	}
	if err := r.store(text); err != nil {
		r.written.Bad++
		r.server.writers.Refuse("bad_line", r.peer, text)
		if len(r.first) < maxNamed {
			r.first = append(r.first, fmt.Sprintf("line %d: unable to parse '%.120s': %v", number, text,
				err))
		}
		return more
	}
	r.written.Lines++
	return more
}

func (r *request) store(text []byte) error {
	l := &r.parsed
	if err := l.parse(text); err != nil {
		return err
	}
	ns := r.now
	if l.timed {
		if l.time < 0 || l.time > math.MaxInt64/int64(r.unit) {
			return errNegative
		}
		ns = l.time * int64(r.unit)
	}
	for i := range l.fields {
		f := &l.fields[i]
		if f.text {
			r.written.Texts++
			continue
		}
		r.tags = append(r.tags[:0], l.tags...)
		if err := r.to.Series(r.tags, l.measurement, f.name); err != nil {
			return err
		}
		r.to.PointAt(ns, f.word)
	}
	return nil
}
