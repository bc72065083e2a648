package ddbtcp

import (
	"fmt"
	"math"
	"time"

	"dalmatiner/internal/ingest/ahead"
	"dalmatiner/internal/ingest/conns"
	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/model/term"
	"dalmatiner/internal/query/filter"
	"dalmatiner/internal/store/events"
	"dalmatiner/internal/wire"
)

// Events of a list are stored in parts, so that only a part needs memory beside the list.
const (
	partEvents = 4096
	partBytes  = 1 << 20

	eventCost = 64 // memory of an event of a part beside its body

	// partMemory is that of a part, and of a term that was inflated to be checked.
	partMemory = partEvents*eventCost + partBytes + events.MaxBody

	// eventsMemory is what the largest list takes beside its frame.
	eventsMemory = wire.MaxEvents + partMemory
)

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
	// The lease of the frame: a second one could wait for what the first one has.
	lent := int64(size) + partMemory
	if err := c.lease.GrowWhenFree(c.ctx, lent); err != nil {
		return fmt.Errorf("events of %d bytes: %w", size, err)
	}
	defer c.lease.Shrink(lent)
	raw, err := wire.DecodeEvents(nil, q.Coded)
	if err != nil {
		return err
	}
	if err := checkEvents(raw); err != nil {
		return err
	}
	name := string(q.Bucket)
	if _, err := c.s.o.Points.EnsureBucket(name, buckets.Form{}); err != nil {
		return err
	}
	for part := []events.Event(nil); len(raw) > 0; {
		if part, raw, err = nextPart(part[:0], raw); err != nil {
			return err
		}
		w, err := c.s.o.Events.Write(name, part)
		if err != nil {
			return err
		}
		c.s.o.Ahead.Tell(ahead.Found{Listener: "tcp", Addr: conns.PeerOf(c.nc).Addr(),
			Count: w.Ahead.Events,
			Sent:  time.Unix(0, w.Ahead.Sent), Arrived: time.Now(), Fate: ahead.WithArrival})
	}
	return nil
}

// errNoEvents is the error where the node has no store of events.
var errNoEvents = fmt.Errorf("%w: events", wire.ErrUnsupported)

// checkEvents checks a whole list, so that it is stored as a whole.
func checkEvents(raw []byte) error {
	inflated := 0
	for n := 1; len(raw) > 0; n++ {
		e, rest, err := wire.NextEvent(raw)
		if err != nil {
			return err
		}
		if e.Time > math.MaxInt64 {
			return fmt.Errorf("%w: event %d is at %d ns, beyond all time", wire.ErrMalformed, n, e.Time)
		}
		body, err := term.Normalize(e.Term)
		if err != nil {
			return fmt.Errorf("%w: event %d: %w", wire.ErrMalformed, n, err)
		}
		if inflated += max(0, len(body)-len(e.Term)); inflated > wire.MaxEvents {
			return fmt.Errorf("%w: compressed terms of more than %d bytes together", wire.ErrTooLarge,
				wire.MaxEvents)
		}
		raw = rest
	}
	return nil
}

// nextPart takes the next events off a list that was checked.
func nextPart(part []events.Event, raw []byte) ([]events.Event, []byte, error) {
	for bytes := 0; len(raw) > 0 && len(part) < partEvents && bytes < partBytes; {
		e, rest, err := wire.NextEvent(raw)
		if err != nil {
			return nil, nil, err
		}
		body, err := term.Normalize(e.Term)
		if err != nil {
			return nil, nil, err
		}
		part = append(part, events.Event{Time: int64(e.Time), Body: body})
		raw, bytes = rest, bytes+len(body)
	}
	return part, raw, nil
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
	r := eventReply{conn: c, want: want, piece: events.Piece(info)}
	lease := c.s.replies.LeaseFor(c.ctx)
	defer lease.Release()
	// The list, it compressed, and an event that passes the size.
	if err := lease.GrowWhenFree(c.ctx, 3*eventsPiece); err != nil {
		return err
	}
	start, end := int64(min(q.Start, math.MaxInt64)), int64(min(q.End, math.MaxInt64))
	gaps, err := c.s.o.Events.Read(c.ctx, name, start, end, r.add)
	if err != nil {
		return err
	}
	if err := r.send(); err != nil {
		return err
	}
	if len(gaps) > 0 {
		return &errRefused{reason: "events_damaged",
			err: fmt.Errorf("events are missing: damage took some between %d and %d ns, or too few nodes "+
				"have answered", gaps[0].Start, gaps[len(gaps)-1].End)}
	}
	return c.reply(wire.AppendEndEvents(nil))
}

// eventReply collects and sends the events of an answer.
type eventReply struct {
	conn  *conn
	want  *filter.Filter
	piece int64 // ns
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
	return r.conn.deliver(dst, r.conn.lease)
}
