package client

import (
	"context"
	"fmt"

	"dalmatiner/internal/query/filter"
	"dalmatiner/internal/wire"
)

// WriteEvents stores events in a bucket, which the server makes if it may. There are at most
// wire.MaxEvents bytes of them, and their terms are external terms of Erlang. When it returns nil
// the server has stored them: the client asks for the bucket's properties behind them, because the
// protocol answers nothing to events. They need not be durable yet. Of events that are refused one
// by one, such as those from the future, the server's account tells.
func (c *Client) WriteEvents(ctx context.Context, bucket string, list []wire.Event) error {
	var raw []byte
	for _, e := range list {
		if e.Time == 0 {
			return fmt.Errorf("an event at 0 ns: times are from 1 on")
		}
		raw = wire.AppendEvent(raw, e)
	}
	if len(raw) > wire.MaxEvents {
		return fmt.Errorf("events of %d bytes, the limit is %d: send fewer at once", len(raw),
			wire.MaxEvents)
	}
	name := []byte(bucket)
	_, err := c.ask(ctx, wire.Request{
		Op:     wire.OpEvents,
		Bucket: name,
		Coded:  wire.CodeEvents(nil, raw),
	}, wire.Request{Op: wire.OpInfo, Bucket: name})
	return err
}

// ReadEvents calls fn with the events of a bucket with start <= time < end, in nanoseconds since
// 1970, in the order of time. want picks some of them, nil all. The term of an event is valid
// during the call only. After an error of fn, which ReadEvents returns, the client is of no more
// use. It is a *ServerError when damage took events of the range; fn has got the others then.
// Client.Timeout bounds the wait for each list of events.
func (c *Client) ReadEvents(ctx context.Context, bucket string, start, end uint64,
	want *filter.Filter, fn func(wire.Event) error) error {
	q := wire.Request{Op: wire.OpGetEvents, Bucket: []byte(bucket), Start: start, End: end}
	if want != nil {
		q.Op, q.Filter = wire.OpGetEventsFiltered, want.Append(nil)
	}
	done, err := c.start(ctx)
	if err != nil {
		return err
	}
	defer func() { done() }()
	if err := c.send(q); err != nil {
		return c.wrap(ctx, []wire.Request{q}, err)
	}
	var raw []byte
	for {
		coded, last, err := c.eventsReply()
		if err != nil {
			return c.wrap(ctx, []wire.Request{q}, err)
		}
		if last {
			return nil
		}
		if raw, err = wire.DecodeEvents(raw[:0], coded); err != nil {
			return c.wrap(ctx, []wire.Request{q}, err)
		}
		for list := raw; len(list) > 0; {
			var e wire.Event
			if e, list, err = wire.NextEvent(list); err != nil {
				return c.wrap(ctx, []wire.Request{q}, err)
			}
			if err := fn(e); err != nil {
				return err
			}
		}
		done()
		if done, err = c.start(ctx); err != nil {
			done = func() {}
			return err
		}
	}
}

func (c *Client) eventsReply() (coded []byte, end bool, err error) {
	payload, err := c.reply()
	if err != nil {
		return nil, false, err
	}
	return wire.ParseReplyEvents(payload)
}
