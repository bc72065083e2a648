// Package loki takes lines of logs as promtail, Grafana Alloy and fluent-bit push them to Loki
// (grafana.com/docs/loki/latest/reference/loki-http-api, ingest logs), in JSON and in protocol
// buffers. Each line becomes an event. DESIGN.md says what of it is kept.
package loki

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"time"

	"github.com/zeebo/xxh3"

	"dalmatiner/internal/host/loglimit"
	"dalmatiner/internal/ingest/acked"
	"dalmatiner/internal/ingest/ahead"
	"dalmatiner/internal/ingest/unacked"
	"dalmatiner/internal/model/account"
	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/model/term"
	"dalmatiner/internal/store/events"
	"dalmatiner/internal/write"
)

// Listener is the name under which the account counts what was refused.
const Listener = "loki"

// Options configure a server. All are required.
type Options struct {
	Bucket  string
	Points  write.Target // makes the bucket, and says when events are durable
	Events  events.Store
	Account *account.Account // that refused input is counted in
	Ahead   *ahead.Senders
	Logger  *slog.Logger
	Now     func() time.Time
}

// Server takes requests. Its methods may be called concurrently.
type Server struct {
	o        Options
	log      *loglimit.Logger
	refusals *unacked.Refusals
}

// New returns a server. Close must be called.
func New(o Options) *Server {
	s := &Server{o: o, log: loglimit.New(o.Logger, time.Now)}
	s.refusals = unacked.NewRefusals(Listener, o.Account, s.log)
	return s
}

// Close logs what was left out.
func (s *Server) Close() { s.log.Close() }

// ErrMalformed is the error of a body that cannot be read. Nothing of it is stored.
var ErrMalformed = errors.New("the body is no push request of Loki")

// BadEntries is the error of a request of which some lines were bad; all others are stored.
type BadEntries struct {
	Count int
	Why   error // of the first
}

func (e *BadEntries) Error() string {
	return fmt.Sprintf("%d lines are not stored, all others are, such as: %v", e.Count, e.Why)
}

// entry is one line. Its slices are valid during the call that it is for.
type entry struct {
	ns     int64
	line   []byte
	labels []pair // of its stream
	fields []pair // structured metadata
}

type pair struct{ name, value []byte }

// What is wrong with lines.
var (
	errTime   = errors.New("a time that is no number of ns from 1970 to 2262")
	errLabels = errors.New(`labels that are not {name="value", …}`)
	errLarge  = fmt.Errorf("a line with more than %d bytes as an event", term.MaxSize)
	errPairs  = fmt.Errorf("a line with more than %d labels or fields, or %d bytes of them", maxPairs,
		maxPairBytes)
	errRequest = fmt.Errorf("the lines of the request have more than %d bytes as events: send fewer "+
		"at a time", maxRequest)
)

// Every line has the labels of its stream as an event, so a small body may become many bytes.
const (
	maxPairs     = 128       // labels of a stream, and fields of a line
	maxPairBytes = 64 << 10  // of their names and values
	maxRequest   = 128 << 20 // bytes of the events of a request
)

// isLarge reports whether pairs are more than a line may have.
func isLarge(list []pair) bool {
	if len(list) > maxPairs {
		return true // counted first: it is asked for each line
	}
	n := 0
	for _, p := range list {
		n += len(p.name) + len(p.value)
	}
	return n > maxPairBytes
}

// request is the way of one request.
type request struct {
	server *Server
	peer   netip.AddrPort
	list   []events.Event
	terms  []byte
	counts account.Counts
	token  write.Token
	bad    BadEntries
	bytes  int // of all events
}

// batchBytes is how much is written at once.
const batchBytes = 256 << 10

// Write stores the lines of a body, which is no longer compressed, and returns when all are
// durable. The error is ErrMalformed, a *BadEntries, a *acked.Refusal, of the bucket as
// unacked.Refused says, that of ctx, or it means that nothing can be stored any more.
func (s *Server) Write(ctx context.Context, peer netip.AddrPort, isJSON bool, body []byte) error {
	r := &request{server: s, peer: peer}
	streams := protobufStreams
	if isJSON {
		streams = jsonStreams
	}
	each, err := streams(body)
	if err != nil {
		s.refusals.Count("malformed", peer, []byte(err.Error()))
		return fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	if _, err := s.o.Points.EnsureBucket(s.o.Bucket, buckets.Form{}); err != nil {
		if reason, ok := unacked.Refused(err); ok {
			s.refusals.Count(reason, peer, []byte(err.Error()))
		}
		return err
	}
	if err := each(r.add, r.reject); err != nil {
		return err
	}
	if err := r.write(); err != nil {
		return err
	}
	if s.o.Points.Durable() && r.token != (write.Token{}) {
		if err := s.o.Points.WaitDurable(ctx, r.token); err != nil {
			return err
		}
	}
	switch {
	case r.counts.RefusedTotal() > 0:
		return &acked.Refusal{Counts: r.counts}
	case r.bad.Count > 0:
		return &r.bad
	}
	return nil
}

// reject counts a line that is none.
func (r *request) reject(err error) {
	if r.bad.Count++; r.bad.Why == nil {
		r.bad.Why = err
	}
	r.server.refusals.Count("bad_line", r.peer, []byte(err.Error()))
}

// add takes a line. An error means that nothing can be stored any more.
func (r *request) add(e *entry) error {
	if e.ns <= 0 {
		r.reject(errTime)
		return nil
	}
	if isLarge(e.labels) || isLarge(e.fields) {
		r.reject(errPairs)
		return nil
	}
	if r.bytes > maxRequest {
		r.reject(errRequest)
		return nil
	}
	start := len(r.terms)
	r.terms = e.appendTerm(r.terms)
	r.bytes += len(r.terms) - start
	body := r.terms[start:len(r.terms):len(r.terms)]
	if len(body) > term.MaxSize {
		r.terms = r.terms[:start]
		r.reject(errLarge)
		return nil
	}
	// A slice of terms stays what it is where terms moves.
	// A line that comes again at its time is a duplicate, as with Loki.
	r.list = append(r.list, events.Event{Time: e.ns, ID: xxh3.Hash128(body).Bytes(), Body: body})
	if len(r.terms) < batchBytes {
		return nil
	}
	return r.write()
}

// write stores what was added.
func (r *request) write() error {
	if len(r.list) == 0 {
		return nil
	}
	w, err := r.server.o.Events.Write(r.server.o.Bucket, r.list)
	if err != nil {
		return err
	}
	r.counts.Add(&w.Counts)
	if r.token.Compare(w.Token) < 0 {
		r.token = w.Token
	}
	if w.Ahead.Events > 0 {
		r.server.o.Ahead.Tell(ahead.Found{Listener: Listener, Addr: r.peer.Addr(),
			Count: w.Ahead.Events, Sent: time.Unix(0, w.Ahead.Sent), Arrived: r.server.o.Now(),
			Fate: ahead.WithArrival})
	}
	clear(r.list)
	r.list, r.terms = r.list[:0], r.terms[:0]
	return nil
}

// appendTerm appends the event: the line as message, as syslog has it, and the labels of the
// stream and the structured metadata of the line as maps. Of two with one name the last one counts.
func (e *entry) appendTerm(dst []byte) []byte {
	dst, mark := term.BeginMap(term.Begin(dst))
	keys := 1
	for _, part := range []struct {
		name  string
		pairs []pair
	}{{"labels", e.labels}, {"fields", e.fields}} {
		if len(part.pairs) == 0 {
			continue
		}
		var inner, n int
		dst, inner = term.BeginMap(term.AppendText(dst, part.name))
		for i, p := range part.pairs {
			if !isLast(part.pairs, i) {
				continue
			}
			dst = term.AppendText(term.AppendText(dst, p.name), p.value)
			n++
		}
		term.EndMap(dst, inner, n)
		keys++
	}
	dst = term.AppendText(term.AppendText(dst, "message"), e.line)
	term.EndMap(dst, mark, keys)
	return dst
}

// isLast reports whether no later pair has the name of one.
func isLast(list []pair, i int) bool {
	for _, p := range list[i+1:] {
		if string(p.name) == string(list[i].name) {
			return false
		}
	}
	return true
}
