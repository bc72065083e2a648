package statsd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"dalmatiner/internal/ingest/acked"
	"dalmatiner/internal/ingest/appender"
	"dalmatiner/internal/ingest/labels"
	"dalmatiner/internal/ingest/unacked"
	"dalmatiner/internal/store/events"
)

// writer is the one way of all points and events into the store. It waits where senders are held
// back, while samples go on being added up.
type writer struct {
	to     *appender.Appender
	cancel context.CancelFunc // ends waits for the store of tags
	upper  [][]byte           // names of the percentiles
	last   time.Time          // of the points of the last flush

	results []result
	lines   []byte
	line    sample
	event   occurrence
	list    []events.Event
	terms   []byte
}

func newWriter(o *Options, tagger *labels.Tagger) writer {
	ctx, cancel := context.WithCancel(context.Background())
	bucket := unacked.NewBucket(o.Points, o.Bucket, o.Monitor)
	bucket.Form(appender.Form())
	w := writer{to: appender.New(ctx, bucket, tagger), cancel: cancel}
	for _, p := range o.Percentiles {
		name := strings.ReplaceAll(strconv.FormatFloat(p, 'f', -1, 64), ".", "_")
		w.upper = append(w.upper, []byte("upper_"+name))
	}
	return w
}

// The last parts of the names of series.
var (
	counterName = []byte("counter")
	gaugeName   = []byte("gauge")
	setName     = []byte("set")
	countName   = []byte("count")
	sumName     = []byte("sum")
	meanName    = []byte("mean")
	lowerName   = []byte("lower")
	upperName   = []byte("upper")
)

// Run stores what came at the end of every interval, until Shutdown, or until nothing can be
// stored any more, which is its error.
func (s *Server) Run() error {
	defer close(s.done)
	s.writer.last = s.o.Now()
	end := s.firstEnd(s.writer.last)
	for {
		timer := time.NewTimer(end.Sub(s.o.Now()))
		var err error
		select {
		case <-s.stop:
			timer.Stop()
			return errors.Join(s.finish(), s.writer.to.Close())
		case <-s.queue.kick:
			timer.Stop()
			err = s.storeQueue()
		case <-timer.C:
			err = s.flush(end)
			end = s.nextEnd(later(s.o.Now(), end))
		}
		if err != nil {
			return errors.Join(err, s.writer.to.Close())
		}
	}
}

// nextEnd returns the end of the interval that a time is in: a multiple of the interval. What could
// not be stored in time belongs to a longer interval: nothing is lost by that.
func (s *Server) nextEnd(now time.Time) time.Time {
	return now.Truncate(s.o.Interval).Add(s.o.Interval)
}

// later returns the later of two times: the clock may be a tick behind the timer.
func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// firstEnd is nextEnd for the start: it is in a later second.
func (s *Server) firstEnd(now time.Time) time.Time {
	return s.nextEnd(now.Truncate(time.Second).Add(time.Second - 1))
}

// finish stores what is left, and refuses what comes from now on. It waits for the next second
// where the last flush, or the start, was in this one. So no two flushes have points of one slot,
// however soon the node stops, starts and stops again.
func (s *Server) finish() error {
	s.table.close()
	s.queue.close()
	if err := s.storeQueue(); err != nil || !s.table.isPending() {
		return err
	}
	next := s.writer.last.Truncate(time.Second).Add(time.Second)
	time.Sleep(next.Sub(s.o.Now()))
	return s.flush(later(s.o.Now(), next))
}

// flush stores what was added up, as points of a time.
func (s *Server) flush(at time.Time) error {
	w := &s.writer
	var skipped int
	w.results, skipped = s.table.take(w.results[:0])
	defer clear(w.results)
	if skipped > 0 {
		s.o.Account.RefuseRequests("statsd_value_not_kept", uint64(skipped))
	}
	w.last = at
	s.stats.Flushes.Add(1)
	if len(w.results) == 0 {
		return nil
	}
	samples := 0
	for i := range w.results {
		samples += w.results[i].samples
	}
	return s.write(samples, func() error {
		for i := range w.results {
			if err := w.result(&w.results[i], at.UnixNano(), s.o.Percentiles); err != nil {
				s.refuse(badLine, w.results[i].samples, err)
			}
		}
		return nil
	})
}

// write begins, calls add, and commits. Without a bucket to write to, it counts so many samples as
// refused.
func (s *Server) write(samples int, add func() error) error {
	err := s.writer.to.Begin(s.o.Now(), netip.AddrPort{})
	if reason, ok := unacked.Refused(err); ok {
		s.refuse(reason, samples, err)
		return nil
	}
	if err != nil {
		return err
	}
	return errors.Join(add(), s.writer.to.Commit())
}

// refuse counts samples that are not stored.
func (s *Server) refuse(reason string, n int, why error) {
	if n > 0 {
		s.refusals.Count(reason, netip.AddrPort{}, []byte(why.Error()))
		s.o.Account.RefuseRequests("statsd_"+reason, uint64(n-1))
	}
}

// point hands over a point of a series whose name has one more part.
func (w *writer) point(name [][]byte, tags []labels.Label, part []byte, ns int64,
	word uint64) error {
	name[len(name)-1] = part
	if err := w.to.Series(tags, name...); err != nil {
		return err
	}
	w.to.PointAt(ns, word)
	return nil
}

// result hands over the points of a series.
func (w *writer) result(r *result, ns int64, percentiles []float64) error {
	add := func(part []byte, word uint64) error {
		return w.point(r.parts, r.tags, part, ns, word)
	}
	switch r.kind {
	case counter:
		return add(counterName, r.total.word())
	case gauge:
		return add(gaugeName, r.total.word())
	case set:
		return add(setName, acked.Word(float64(r.members)))
	}
	d := r.timing
	err := errors.Join(
		add(countName, d.count.word()),
		add(sumName, d.sum.word()),
		add(meanName, acked.Word(d.sum.float()/d.count.float())),
		add(lowerName, acked.Word(d.lower)),
		add(upperName, acked.Word(d.upper)),
	)
	d.sort()
	for i, p := range percentiles {
		if v, ok := d.percentile(p); ok && err == nil {
			err = add(w.upper[i], acked.Word(v))
		}
	}
	return err
}

// storeQueue stores lines with a time of their own, and events.
func (s *Server) storeQueue() error {
	w := &s.writer
	if w.lines = s.queue.take(w.lines); len(w.lines) == 0 {
		return nil
	}
	samples := 0
	for line := range bytes.Lines(w.lines) {
		if line = line[:len(line)-1]; !isOccurrence(line) {
			samples++
			continue
		}
		if w.event.parse(line) == nil { // it was parsed before
			start := len(w.terms)
			w.terms = w.event.appendTerm(w.terms)
			w.list = append(w.list, events.Event{Time: w.event.time,
				Body: w.terms[start:len(w.terms):len(w.terms)]})
		}
	}
	err := s.storeEvents()
	if samples == 0 || err != nil {
		return err
	}
	return s.write(samples, func() error {
		for line := range bytes.Lines(w.lines) {
			s.timed(line[:len(line)-1])
		}
		return nil
	})
}

// timed hands over a line with a time of its own. It was parsed before.
func (s *Server) timed(line []byte) {
	m, w := &s.writer.line, &s.writer
	if isOccurrence(line) || m.parse(line) != nil {
		return
	}
	var sum total
	part, rate := counterName, m.rate
	m.eachValue(func(_ []byte, n number) {
		if m.kind == gauge {
			part, sum, rate.times, rate.each = gaugeName, total{}, 1, 1
		}
		sum.add(n, rate)
	})
	if err := w.point(parts(m.name), m.tags, part, m.time, sum.word()); err != nil {
		s.refuse(badLine, 1, err)
	}
}

// storeEvents stores the events of the list.
func (s *Server) storeEvents() error {
	w := &s.writer
	defer func() {
		clear(w.list)
		w.list, w.terms = w.list[:0], w.terms[:0]
	}()
	if len(w.list) == 0 {
		return nil
	}
	_, err := s.o.Points.EnsureBucket(s.o.Bucket, appender.Form())
	if err == nil {
		_, err = s.o.Events.Write(s.o.Bucket, w.list)
	}
	if reason, ok := unacked.Refused(err); ok {
		s.refuse(reason, len(w.list), err)
		return nil
	}
	if err != nil {
		return fmt.Errorf("storing events: %w", err)
	}
	return nil
}
