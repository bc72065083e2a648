package wire

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/klauspost/compress/s2"
)

// MaxEvents is the most bytes that a list of events has before compression. A server splits its
// replies below it, and refuses longer lists.
const MaxEvents = 16 << 20

// eventHeader is what an event has before its term.
const eventHeader = 12

// Event is one event of a list.
type Event struct {
	Time uint64 // in nanoseconds since 1970, from 1 on
	Term []byte // an Erlang external term, unchecked
}

// AppendEvent appends an event to a list.
func AppendEvent(list []byte, e Event) []byte {
	list = binary.BigEndian.AppendUint64(list, e.Time)
	list = binary.BigEndian.AppendUint32(list, uint32(len(e.Term)))
	return append(list, e.Term...)
}

// CodeEvents appends a list of events to dst, compressed, as it stands in Request.Coded. The empty
// list has no bytes.
func CodeEvents(dst, list []byte) []byte {
	if len(list) == 0 {
		return dst
	}
	dst = slices.Grow(dst, s2.MaxEncodedLen(len(list)))
	coded := s2.EncodeSnappy(dst[len(dst):cap(dst)], list)
	return dst[:len(dst)+len(coded)]
}

// AppendReplyEvents appends the payload of a REPLY_EVENTS with a list of events.
func AppendReplyEvents(dst, list []byte) []byte {
	return CodeEvents(append(dst, byte(OpReplyEvents)), list)
}

// AppendEndEvents appends the payload behind the last REPLY_EVENTS.
func AppendEndEvents(dst []byte) []byte { return append(dst, byte(OpEndEvents)) }

// ParseReplyEvents decodes the payload of a frame that answers OpGetEvents: the compressed list, or
// the end. The caller calls ParseError first. The error wraps ErrMalformed.
func ParseReplyEvents(payload []byte) (coded []byte, end bool, err error) {
	switch {
	case len(payload) > 0 && Op(payload[0]) == OpReplyEvents:
		return payload[1:], false, nil
	case len(payload) == 1 && Op(payload[0]) == OpEndEvents:
		return nil, true, nil
	}
	return nil, false, fmt.Errorf("%w: %d bytes are no frame of events, which starts with 0f or is 10",
		ErrMalformed, len(payload))
}

// EventsSize returns how many bytes a compressed list of events has before compression. The error
// wraps ErrMalformed, or ErrTooLarge above MaxEvents.
func EventsSize(coded []byte) (int, error) {
	if len(coded) == 0 {
		return 0, nil
	}
	n, err := s2.DecodedLen(coded)
	switch {
	case err != nil:
		return 0, fmt.Errorf("%w: events: %v", ErrMalformed, err)
	case n > MaxEvents:
		return 0, fmt.Errorf("%w: events of %d bytes, the limit is %d: send fewer at once", ErrTooLarge,
			n, MaxEvents)
	case n/64 > len(coded):
		// Snappy makes at most 64 bytes from 3.
		return 0, fmt.Errorf("%w: events of %d bytes in %d", ErrMalformed, n, len(coded))
	}
	return n, nil
}

// DecodeEvents returns a compressed list of events uncompressed, in the memory of buf where that is
// large enough. The error is that of EventsSize, or wraps ErrMalformed.
func DecodeEvents(buf, coded []byte) ([]byte, error) {
	if n, err := EventsSize(coded); n == 0 {
		return nil, err
	}
	list, err := s2.Decode(buf[:cap(buf)], coded)
	if err != nil {
		return nil, fmt.Errorf("%w: events: %v", ErrMalformed, err)
	}
	return list, nil
}

// NextEvent takes the first event off a list that is not empty. Its term is part of the list. The
// error wraps ErrMalformed.
func NextEvent(list []byte) (e Event, rest []byte, err error) {
	r := reader{src: list}
	e.Time = r.u64()
	e.Term = r.take(int(r.u32()))
	if r.short {
		return Event{}, list,
			fmt.Errorf("%w: a list of events ends %d bytes after the start of one, which has %d and a term",
				ErrMalformed, len(list), eventHeader)
	}
	if e.Time == 0 {
		return Event{}, list, fmt.Errorf("%w: an event at 0 ns, times are from 1 on", ErrMalformed)
	}
	return e, r.src, nil
}
