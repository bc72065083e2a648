package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"strings"
	"testing"

	"github.com/klauspost/compress/s2"
)

func TestEventsErrors(t *testing.T) {
	f := func(coded []byte, kind error, mention string) {
		t.Helper()
		list, err := DecodeEvents(nil, coded)
		for err == nil && len(list) > 0 {
			_, list, err = NextEvent(list)
		}
		if !errors.Is(err, kind) || !strings.Contains(err.Error(), mention) {
			t.Errorf("%v, want %v that mentions %q", err, kind, mention)
		}
	}
	one := AppendEvent(nil, Event{Time: 1, Term: []byte{131, 106}})
	f([]byte{0xff}, ErrMalformed, "events: ")
	f(CodeEvents(nil, one[:11]), ErrMalformed, "ends 11 bytes after the start of one")
	f(CodeEvents(nil, one[:13]), ErrMalformed, "ends 13 bytes after")
	f(CodeEvents(nil, append(one[:14:14], 0)), ErrMalformed, "ends 1 bytes after")
	f(CodeEvents(nil, AppendEvent(nil, Event{Term: []byte("x")})), ErrMalformed, "an event at 0 ns")
	f(s2.EncodeSnappy(nil, make([]byte, MaxEvents+1)), ErrTooLarge,
		"16777217 bytes, the limit is 16777216")
	f(binary.AppendUvarint(nil, MaxEvents), ErrMalformed, "16777216 bytes in 4")
	f(binary.AppendUvarint(nil, 1<<40), ErrMalformed, "events: ")
	huge := append(binary.BigEndian.AppendUint64(nil, 1), 0xff, 0xff, 0xff, 0xff)
	f(CodeEvents(nil, huge), ErrMalformed, "ends 12 bytes after")
	for _, payload := range []string{"", "\x10x", "\x0d", "\xff"} {
		if _, _, err := ParseReplyEvents([]byte(payload)); !errors.Is(err, ErrMalformed) {
			t.Errorf("%q is a frame of events: %v", payload, err)
		}
	}
}

func TestEventsRoundTrip(t *testing.T) {
	var list []byte
	terms := []string{"a", "", strings.Repeat("long ", 10_000)}
	for i, s := range terms {
		list = AppendEvent(list, Event{Time: uint64(i + 1), Term: []byte(s)})
	}
	payload := AppendReplyEvents(nil, list)
	coded, end, err := ParseReplyEvents(payload)
	if err != nil || end || len(payload) > 5000 {
		t.Fatal(end, err, len(payload))
	}
	buf := make([]byte, len(list))
	got, err := DecodeEvents(buf, coded)
	if err != nil || &got[0] != &buf[0] || !bytes.Equal(got, list) {
		t.Fatal(err)
	}
	for i, s := range terms {
		var e Event
		if e, got, err = NextEvent(got); err != nil || e.Time != uint64(i+1) || string(e.Term) != s {
			t.Fatal(e.Time, err)
		}
	}
}

// FuzzEvents: a frame of events that is taken says the same when it is written again.
func FuzzEvents(f *testing.F) {
	seed(f, "events")
	f.Fuzz(func(t *testing.T, payload []byte) {
		coded, end, err := ParseReplyEvents(payload)
		if err != nil || end {
			return
		}
		if n, err := EventsSize(coded); err != nil || n > 1<<20 {
			return
		}
		list, err := DecodeEvents(nil, coded)
		if err != nil {
			return
		}
		var again []byte
		for left := list; len(left) > 0; {
			var e Event
			if e, left, err = NextEvent(left); err != nil {
				return
			}
			again = AppendEvent(again, e)
		}
		if !bytes.Equal(again, list) {
			t.Fatalf("%x became %x", list, again)
		}
		if back, err := DecodeEvents(nil, CodeEvents(nil, again)); err != nil ||
			!bytes.Equal(back, list) {
			t.Fatalf("%x compressed: %x, %v", list, back, err)
		}
	})
}
