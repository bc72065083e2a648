package ddbtcp

import (
	"fmt"
	"math"

	"dalmatiner/internal/events"
	"dalmatiner/internal/filter"
	"dalmatiner/internal/memory"
	"dalmatiner/internal/term"
	"dalmatiner/internal/wire"
)

// eventCost is what an event of a list takes beside its bytes.
const eventCost = 64

// eventsPiece is the size from which on a list of events is sent.
const eventsPiece = 1 << 20

// writeEvents stores the events of a request, all or none. The protocol has no reply to it.
func (c *conn) writeEvents(q *wire.Request) error {
	if c.s.o.Events == nil {
		return errNoEvents
	}
	size, err := wire.EventsSize(q.Coded)
	if err != nil {
		return err
	}
	lease := c.s.unfinished.Lease()
	defer lease.Release()
	// Each event has 14 bytes and more.
	if err := lease.GrowWhenFree(c.s.ctx, int64(size)*(14+eventCost)/14); err != nil {
		return err
	}
	raw, err := wire.DecodeEvents(nil, q.Coded)
	if err != nil {
		return err
	}
	list, err := parseEvents(raw)
	if err != nil {
		return err
	}
	name := string(q.Bucket)
	if _, err := c.s.o.Points.EnsureBucket(name); err != nil || len(list) == 0 {
		return err
	}
	_, err = c.s.o.Events.Write(name, list)
	return err
}

// errNoEvents is the error where the node has no store of events.
var errNoEvents = fmt.Errorf("%w: events", wire.ErrUnsupported)

func parseEvents(raw []byte) (list []events.Event, err error) {
	inflated := 0
	for len(raw) > 0 {
		var e wire.Event
		if e, raw, err = wire.NextEvent(raw); err != nil {
			return nil, err
		}
		if e.Time > math.MaxInt64 {
			return nil, fmt.Errorf("%w: event %d is at %d ns, beyond all time", wire.ErrMalformed, len(list)+1, e.Time)
		}
		body, err := term.Plain(e.Term)
		if err != nil {
			return nil, fmt.Errorf("%w: event %d: %w", wire.ErrMalformed, len(list)+1, err)
		}
		if inflated += max(0, len(body)-len(e.Term)); inflated > wire.MaxEvents {
			return nil, fmt.Errorf("%w: compressed terms of more than %d bytes together", wire.ErrTooLarge, wire.MaxEvents)
		}
		list = append(list, events.Event{Time: int64(e.Time), Body: body})
	}
	return list, nil
}

// readEvents sends the events of a range that meet a filter, in frames that end where a piece of
// the bucket's time does, or where they are large. Where events are missing the answer ends with
// an ERROR.
func (c *conn) readEvents(q *wire.Request) error {
	if c.s.o.Events == nil {
		return errNoEvents
	}
	want := new(filter.Filter)
	if q.Op == wire.OpGetEventsFiltered {
		var err error
		if want, err = filter.Parse(q.Filter); err != nil {
			return fmt.Errorf("%w: %w", wire.ErrMalformed, err)
		}
	}
	name := string(q.Bucket)
	info, err := c.s.o.Store.BucketByName(name)
	if err != nil {
		return err
	}
	r := eventReply{conn: c, want: want, piece: events.Piece(info), lease: c.s.replies.Lease()}
	defer r.lease.Release()
	// The list, it compressed, and an event that passes the size.
	if err := r.lease.GrowWhenFree(c.s.ctx, 3*eventsPiece); err != nil {
		return err
	}
	start, end := int64(min(q.Start, math.MaxInt64)), int64(min(q.End, math.MaxInt64))
	gaps, err := c.s.o.Events.Read(r.lease.With(c.s.ctx), name, start, end, r.add)
	if err != nil {
		return err
	}
	if err := r.send(); err != nil {
		return err
	}
	if len(gaps) > 0 {
		return &errRefused{reason: "events_damaged", err: fmt.Errorf("events are missing: damage took some between %d and %d ns, or too few nodes have answered", gaps[0].Start, gaps[len(gaps)-1].End)}
	}
	return c.reply(wire.AppendEndEvents(nil))
}

// eventReply collects and sends the events of an answer.
type eventReply struct {
	conn  *conn
	want  *filter.Filter
	piece int64 // ns
	lease *memory.Lease
	list  []byte
	last  int64 // time of the last event of the list
	seen  int
	out   []byte
}

func (r *eventReply) add(e *events.Event) error {
	if r.seen++; r.seen%yieldNames == 0 {
		yield()
	}
	if !r.want.Match(term.Root(e.Body)) {
		return nil
	}
	if len(r.list) >= eventsPiece || len(r.list) > 0 && e.Time/r.piece != r.last/r.piece {
		if err := r.send(); err != nil {
			return err
		}
	}
	r.list = wire.AppendEvent(r.list, wire.Event{Time: uint64(e.Time), Term: e.Body})
	r.last = e.Time
	return nil
}

func (r *eventReply) send() error {
	if len(r.list) == 0 {
		return nil
	}
	dst, mark := wire.BeginFrame(r.out[:0])
	dst = wire.AppendReplyEvents(dst, r.list)
	wire.EndFrame(dst, mark)
	r.out, r.list = dst, r.list[:0]
	return r.conn.deliver(dst, r.lease)
}
