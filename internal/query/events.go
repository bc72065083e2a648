package query

import (
	"context"
	"fmt"
	"math"
	"time"

	"dalmatiner/internal/model/metric"
	"dalmatiner/internal/model/term"
	"dalmatiner/internal/query/dql"
	"dalmatiner/internal/query/explain"
	"dalmatiner/internal/query/filter"
	"dalmatiner/internal/query/plan"
	"dalmatiner/internal/store/events"
)

// nanoseconds returns a time in unix ms in nanoseconds. Later than the year 2262 there are no
// events, and no such numbers.
func nanoseconds(ms int64) int64 {
	const last = math.MaxInt64 / int64(time.Millisecond)
	return max(-last, min(ms, last)) * int64(time.Millisecond)
}

// EventSource gives events: an events.Store.
type EventSource interface {
	// Read is that of events.Store.
	Read(ctx context.Context, bucket string, start, end int64, fn func(*events.Event) error) (
		[]events.Gap, error)
	// Count is that of events.Store.
	Count(ctx context.Context, bucket string, start, end, step int64) ([]int64, []events.Gap, error)
	// Extent is that of events.Store.
	Extent(bucket string, start, end int64) (events.Extent, error)
}

// EventList is the result of one EVENTS field.
type EventList struct {
	Name     string
	Metadata map[string]any
	Events   []Event      // in the order of their times; none with Options.Stream
	Gaps     []events.Gap // of time, in which damage took events; none with Options.Stream

	stream *eventStream // of Options.Stream
}

// Each calls fn with the events in the order of their times. With Options.Stream it reads them:
// more says that it stopped at the limit of a result. All lists of a result share this limit. gaps
// are the ranges of time in which damage took events. With Options.Stream each list can be read
// once.
func (l *EventList) Each(ctx context.Context, fn func(e *Event) error) (more bool,
	gaps []events.Gap, err error) {
	if l.stream != nil {
		return l.stream.each(ctx, fn)
	}
	for i := range l.Events {
		if err := fn(&l.Events[i]); err != nil {
			return false, nil, err
		}
	}
	return false, l.Gaps, nil
}

// eventStream is an EVENTS field that is read when its events are wanted.
type eventStream struct {
	from       EventSource
	bucket     string
	want       *filter.Filter
	start, end int64
	left       *int64 // events that the result may have yet
}

func (s *eventStream) each(ctx context.Context, fn func(e *Event) error) (more bool,
	gaps []events.Gap, err error) {
	gaps, err = s.from.Read(ctx, s.bucket, s.start, s.end, func(e *events.Event) error {
		if !s.want.Match(term.Root(e.Body)) {
			return nil
		}
		if *s.left == 0 {
			more = true
			return events.Stop
		}
		*s.left--
		return fn(&Event{Time: e.Time, Body: e.Body})
	})
	return more, gaps, err
}

// Event is one event of a result.
type Event struct {
	Time int64  // in nanoseconds since 1970
	Body []byte // a plain term
}

// eventField is an EVENTS field that was prepared.
type eventField struct {
	list EventList
	of   *dql.Events
	want *filter.Filter
}

// maxEventName bounds the name of a field: a filter may be as long as a query.
const maxEventName = 64 << 10

// takeEvents takes the EVENTS fields out of the query, which is of series alone from then on.
func (r *request) takeEvents() ([]eventField, error) {
	var list []eventField
	var rest []dql.Field
	for i := range r.q.Fields {
		f := &r.q.Fields[i]
		of, ok := f.Expr.(*dql.Events)
		if !ok || r.Events == nil {
			rest = append(rest, *f)
			continue
		}
		want, err := filter.FromQuery(r.q.Text, of.Where)
		if err != nil {
			return nil, err
		}
		e := eventField{of: of, want: want, list: EventList{Metadata: eventMetadata(f.Meta)}}
		if f.As != nil {
			e.list.Name = eventPattern(f.As)
		} else if e.list.Name = dql.Name(of, maxEventName); len(e.list.Name) > maxEventName {
			return nil, dql.NewError(r.q.Text, of.Pos(), nil,
				"the name of this field would be longer than 64 KiB: give it one with AS")
		}
		list = append(list, e)
	}
	r.q.Fields = rest
	return list, nil
}

// eventPattern returns the name that AS gives. There is no series that a variable could stand for.
func eventPattern(p *dql.Pattern) string {
	var name []byte
	for i, e := range p.Elems {
		if i > 0 {
			name = append(name, '.')
		}
		name = metric.AppendQuoted(name, []byte(e.Text))
	}
	return string(name)
}

func eventMetadata(pairs []dql.MetaPair) map[string]any {
	m := make(map[string]any, len(pairs))
	for _, p := range pairs {
		switch key := metric.Escape(p.Key); {
		case p.Number != nil:
			m[key] = p.Number.Value
		case p.Elem.Dim != nil || p.Elem.Position > 0:
			m[key] = nil
		default:
			m[key] = metric.Escape(p.Elem.Text)
		}
	}
	return m
}

// streamEvents leaves the events of all fields to whoever wants them.
func (r *request) streamEvents(fields []eventField) ([]EventList, error) {
	left := r.Limits.Stricter(r.opt.Limits).MaxOutput
	start, end := nanoseconds(r.times.Start), nanoseconds(r.times.End)
	out := make([]EventList, len(fields))
	for i := range fields {
		f := &fields[i]
		if _, err := r.Events.Extent(f.of.Bucket, end, end); err != nil { // there is no such bucket
			return nil, dql.NewError(r.q.Text, f.of.Pos(), err, err.Error())
		}
		out[i] = f.list
		out[i].stream = &eventStream{
			from:   r.Events,
			bucket: f.of.Bucket,
			want:   f.want,
			start:  start,
			end:    end,
			left:   &left,
		}
	}
	return out, nil
}

// readEvents reads the events of all fields.
func (r *request) readEvents(ctx context.Context, fields []eventField) ([]EventList, error) {
	c := collector{r: r, limits: r.Limits.Stricter(r.opt.Limits)}
	start, end := nanoseconds(r.times.Start), nanoseconds(r.times.End)
	out := make([]EventList, len(fields))
	for i := range fields {
		f := &fields[i]
		c.field, c.list = f, nil
		gaps, err := r.Events.Read(ctx, f.of.Bucket, start, end, c.add)
		if err != nil {
			return nil, dql.NewError(r.q.Text, f.of.Pos(), err, err.Error())
		}
		f.list.Events, f.list.Gaps = c.list, gaps
		out[i] = f.list
	}
	return out, nil
}

// explainEvents reads the events of all fields, keeps none, and says what that took.
func (r *request) explainEvents(ctx context.Context,
	fields []eventField) ([]explain.EventRead, error) {
	start, end := nanoseconds(r.times.Start), nanoseconds(r.times.End)
	limits := r.Limits.Stricter(r.opt.Limits)
	out := make([]explain.EventRead, len(fields))
	for i := range fields {
		f := &fields[i]
		x, err := r.Events.Extent(f.of.Bucket, start, end)
		if err != nil {
			return nil, dql.NewError(r.q.Text, f.of.Pos(), err, err.Error())
		}
		out[i] = explain.EventRead{
			Name:     dql.Name(f.of, maxEventName),
			Files:    x.Files,
			Blocks:   x.Blocks,
			Bytes:    x.Bytes,
			InMemory: x.InMemory,
			Limit:    limits.MaxOutput,
		}
		began := r.Now()
		gaps, err := r.Events.Read(ctx, f.of.Bucket, start, end, func(e *events.Event) error {
			out[i].Read++
			if f.want.Match(term.Root(e.Body)) {
				out[i].Found++
			}
			return nil
		})
		if err != nil {
			return nil, dql.NewError(r.q.Text, f.of.Pos(), err, err.Error())
		}
		out[i].Micros = r.Now().Sub(began).Microseconds()
		for _, g := range gaps {
			out[i].Lost += g.Events
		}
	}
	return out, nil
}

// collector keeps events within the limits of a query.
type collector struct {
	r      *request
	limits Limits
	field  *eventField
	list   []Event
	count  int64 // of all fields
	lent   int64
	used   int64
	bodies []byte // with room for more
}

const (
	eventStep = 128 << 10 // of memory that is lent
	bodyStep  = 64 << 10
	eventCost = 2 * 32 // of an Event, in a list that grows
)

func (c *collector) add(e *events.Event) error {
	if !c.field.want.Match(term.Root(e.Body)) {
		return nil
	}
	if c.count++; c.count > c.limits.MaxOutput {
		return &plan.LimitError{What: "events in its result", Got: c.count, Limit: c.limits.MaxOutput,
			Remedy: "ask for a shorter range, or for fewer with WHERE"}
	}
	if c.used += int64(len(e.Body)) + eventCost; c.used > c.lent {
		if c.lent+eventStep > c.limits.MaxMemory {
			return &plan.LimitError{What: "bytes of events", Got: c.used, Limit: c.limits.MaxMemory,
				Remedy: "ask for a shorter range, or for fewer with WHERE"}
		}
		grow := max(eventStep, c.used-c.lent)
		if err := c.r.lend(grow); err != nil {
			return fmt.Errorf("after %d events: %w", c.count-1, err)
		}
		c.lent += grow
	}
	if cap(c.bodies)-len(c.bodies) < len(e.Body) {
		c.bodies = make([]byte, 0, max(bodyStep, len(e.Body)))
	}
	from := len(c.bodies)
	c.bodies = append(c.bodies, e.Body...)
	c.list = append(c.list, Event{Time: e.Time, Body: c.bodies[from:len(c.bodies):len(c.bodies)]})
	return nil
}
