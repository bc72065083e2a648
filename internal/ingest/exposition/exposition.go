// Package exposition takes the text that Prometheus' targets show: its own form and OpenMetrics,
// as jobs push it to VictoriaMetrics at /api/v1/import/prometheus and to the Pushgateway. DESIGN.md
// says what of a line is kept.
package exposition

import (
	"bytes"
	"context"
	"net/netip"
	"slices"

	"dalmatiner/internal/ingest/acked"
	"dalmatiner/internal/ingest/labels"
	"dalmatiner/internal/model/account"
)

// Listener is the name under which the account counts what was refused.
const Listener = "exposition"

// Server takes requests. Its methods may be called concurrently.
type Server struct{ writers *acked.Writers }

// New returns a server that stores through writers.
func New(writers *acked.Writers) *Server { return &Server{writers} }

// Request is a body, and what holds for all of its lines. Nothing in it is changed.
type Request struct {
	Format Format
	Labels []labels.Label // of all series, in place of labels of the same name
	Time   int64          // ms since 1970, of lines without a time; not negative
	Body   []byte
}

// Written says what became of the lines of a request.
type Written struct {
	Samples   int // good lines
	Bad       int // lines that are none, or that no series may have
	Exemplars int // counted, and not kept
	Counts    account.Counts
}

// Write stores the samples of a request, and returns when all are durable. The error is a
// *acked.BadLines, a *acked.Refusal, of the bucket as unacked.Refused says, that of ctx, or it
// means that nothing can be stored any more.
func (s *Server) Write(ctx context.Context, bucket string, peer netip.AddrPort,
	r *Request) (Written, error) {
	to, err := s.writers.Begin(bucket, peer)
	if err != nil {
		return Written{}, err
	}
	var (
		w    Written
		bad  acked.BadLines
		one  sample
		line []byte
		body = r.Body
	)
	for number := 1; len(body) > 0; number++ {
		line, body, _ = bytes.Cut(body, []byte{'\n'})
		if line = bytes.TrimSpace(line); len(line) == 0 || line[0] == '#' {
			continue
		}
		err := one.parse(line, r.Format)
		if err == nil {
			err = one.store(to, r)
		}
		if err != nil {
			bad.Add(number, err)
			s.writers.Refuse("bad_line", peer, line)
			continue
		}
		w.Samples++
		if one.exemplar {
			w.Exemplars++
		}
	}
	if w.Exemplars > 0 {
		s.writers.Count("exemplar_not_kept", w.Exemplars)
	}
	w.Bad = bad.Count
	w.Counts, err = to.End(ctx)
	if err == nil && bad.Count > 0 {
		err = &bad
	}
	return w, err
}

// store hands a sample over, with the labels of its request.
func (s *sample) store(to *acked.Writer, r *Request) error {
	if len(r.Labels) > 0 {
		s.list = slices.DeleteFunc(s.list, func(l labels.Label) bool {
			return slices.ContainsFunc(r.Labels, func(extra labels.Label) bool {
				return bytes.Equal(extra.Name, l.Name)
			})
		})
		s.list = append(s.list, r.Labels...)
	}
	if err := to.Series(s.list, s.name); err != nil {
		return err
	}
	if s.timed {
		to.PointAt(s.ns, s.word)
	} else {
		to.Point(r.Time, s.word)
	}
	return nil
}
