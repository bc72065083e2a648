package ddbtcp

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"dalmatiner/client"
	"dalmatiner/internal/model/term"
	"dalmatiner/internal/query/filter"
	"dalmatiner/internal/store"
	"dalmatiner/internal/store/events"
	"dalmatiner/internal/store/eventstest"
	"dalmatiner/internal/wire"
)

func eventsFixture(t *testing.T) (*fixture, *eventstest.Store, *client.Client, context.Context) {
	st := new(eventstest.Store)
	f := newFixture(t, func(so *store.Options, o *Options) {
		o.Events, so.UnknownBuckets.Create = st, true
	})
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	c, err := client.Dial(ctx, f.addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return f, st, c, ctx
}

func eventOf(t *testing.T, at uint64, doc string) wire.Event {
	t.Helper()
	body, err := term.AppendFromJSON(nil, []byte(doc))
	if err != nil {
		t.Fatal(err)
	}
	return wire.Event{Time: at, Term: body}
}

func TestEventsThroughTheClient(t *testing.T) {
	_, st, c, ctx := eventsFixture(t)
	list := []wire.Event{eventOf(t, 30, `{"a":3}`), eventOf(t, 10, `{"a":1}`),
		eventOf(t, 20, `{"a":2,"b":"x"}`)}
	if err := c.WriteEvents(ctx, "new", list); err != nil {
		t.Fatal(err)
	}
	read := func(start, end uint64, text string) string {
		t.Helper()
		want, err := filter.FromText(text)
		if err != nil {
			t.Fatal(err)
		}
		if text == "" {
			want = nil
		}
		var got []string
		err = c.ReadEvents(ctx, "new", start, end, want, func(e wire.Event) error {
			got = append(got, fmt.Sprintf("%d %s", e.Time, term.Root(e.Term).AppendJSON(nil)))
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return strings.Join(got, ", ")
	}
	if got := read(0, 1<<63, ""); got != `10 {"a":1}, 20 {"a":2,"b":"x"}, 30 {"a":3}` {
		t.Errorf("all: %s", got)
	}
	if got := read(10, 30, "a > 1 OR b == 'x'"); got != `20 {"a":2,"b":"x"}` {
		t.Errorf("some: %s", got)
	}
	if got := read(5, 5, ""); got != "" {
		t.Errorf("none: %s", got)
	}
	st.Gaps = []events.Gap{{Start: 1, End: 9, Events: 4}}
	err := c.ReadEvents(ctx, "new", 0, 100, nil, func(wire.Event) error { return nil })
	if server := (*client.ServerError)(nil); !errors.As(err, &server) ||
		!strings.Contains(server.Message, "between 1 and 9 ns") {
		t.Errorf("a gap gives %v", err)
	}
}

// TestManyEvents: an answer has many frames.
func TestManyEvents(t *testing.T) {
	_, _, c, ctx := eventsFixture(t)
	long := strings.Repeat("abcdefgh", 10_000)
	for i := range uint64(50) {
		if err := c.WriteEvents(ctx, "b", []wire.Event{eventOf(t, i+1, fmt.Sprintf("[%d,%q]", i, long)),
			eventOf(t, 1e18+i, "{}")}); err != nil {
			t.Fatal(err)
		}
	}
	n := uint64(0)
	err := c.ReadEvents(ctx, "b", 1, 51, nil, func(e wire.Event) error {
		if n++; e.Time != n {
			return fmt.Errorf("event %d is at %d", n, e.Time)
		}
		return nil
	})
	if err != nil || n != 50 {
		t.Errorf("%d events, %v", n, err)
	}
}

// TestEventVectors sends the bytes of the protocol's vectors 51 and 55.
func TestEventVectors(t *testing.T) {
	f, _, _, _ := eventsFixture(t)
	c := f.dial()
	send := func(payload string) {
		b, err := hex.DecodeString(payload)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Write(wire.AppendFrame(nil, b)); err != nil {
			t.Fatal(err)
		}
	}
	send("0d046669666f144c14d1120d7b16000000000008836d000000026869")
	send("0e046669666f14d1120d7b16000014d1120d7b160001")
	for _, want := range []string{"0f144c14d1120d7b16000000000008836d000000026869", "10"} {
		got, err := wire.ReadFrame(c, nil, 1000)
		if err != nil || hex.EncodeToString(got) != want {
			t.Errorf("got %x, %v, want %s", got, err, want)
		}
	}
}

func TestBadEvents(t *testing.T) {
	f, st, _, ctx := eventsFixture(t)
	one := func(at uint64, term string) wire.Request {
		return wire.Request{Op: wire.OpEvents, Bucket: []byte("b"),
			Coded: wire.CodeEvents(nil, wire.AppendEvent(nil, wire.Event{Time: at, Term: []byte(term)}))}
	}
	for want, q := range map[string]wire.Request{
		"event 1: malformed term":     one(1, "x"),
		"nests deeper than 64 levels": one(1, "\x83"+strings.Repeat("l\x00\x00\x00\x01", 1000)+"j"),
		"event 1: unsupported term":   one(1, "\x83g"),
		"an atom of 65535 characters": one(1, "\x83v\xff\xff"+strings.Repeat("a", 65535)),
		"when inflated, the limit is": one(1, "\x83P\xff\xff\xff\xffx"),
		"an event at 0 ns":            one(0, "\x83j"),
		"beyond all time":             one(1<<63, "\x83j"),
		"malformed message: bad filter": {Op: wire.OpGetEventsFiltered, Bucket: []byte("b"),
			Filter: []byte{1}},
		"unknown bucket": {Op: wire.OpGetEvents, Bucket: []byte("nope")},
		"events of 16777217 bytes, the li": {Op: wire.OpEvents, Bucket: []byte("b"),
			Coded: []byte{0x81, 0x80, 0x80, 0x08}},
	} {
		payload, err := wire.AppendRequest(nil, &q)
		if err != nil {
			t.Fatal(err)
		}
		c := f.dial()
		if _, err := c.Write(wire.AppendFrame(nil, payload)); err != nil {
			t.Fatal(err)
		}
		got, err := wire.ReadFrame(c, nil, 1000)
		if msg, ok := wire.ParseError(got); err != nil || !ok || !strings.Contains(msg, want) {
			t.Errorf("got %q, %v, want %s", got, err, want)
		}
		if _, err := c.Read(make([]byte, 1)); err != io.EOF {
			t.Errorf("after %s the connection is open: %v", want, err)
		}
	}
	if _, err := st.Read(ctx, "b", 0, 100, func(*events.Event) error {
		return errors.New("an event was stored")
	}); err == nil || strings.Contains(err.Error(), "stored") {
		t.Error(err)
	}
}
