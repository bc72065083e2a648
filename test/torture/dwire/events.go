package dwire

import (
	"encoding/binary"
	"fmt"

	"github.com/klauspost/compress/snappy"
)

// Event is an event on the wire: its term is Erlang's external form.
type Event struct {
	Time int64 // ns
	Term []byte
}

// Events sends an EVENTS frame, and an INFO whose answer says that it was taken. That it is
// durable nothing says.
func (c *Conn) Events(bucket string, events []Event) error {
	var list []byte
	for _, e := range events {
		list = binary.BigEndian.AppendUint64(list, uint64(e.Time))
		list = binary.BigEndian.AppendUint32(list, uint32(len(e.Term)))
		list = append(list, e.Term...)
	}
	if err := c.send(append(appendName8([]byte{0x0d}, bucket),
		snappy.Encode(nil, list)...)); err != nil {
		return err
	}
	if err := c.send(appendName8([]byte{0x07}, bucket)); err != nil {
		return err
	}
	_, err := c.frame()
	return err
}

// GetEvents returns the events from start on and before end. With a ServerError some are missing,
// and the others are returned.
func (c *Conn) GetEvents(bucket string, start, end int64) ([]Event, error) {
	b := binary.BigEndian.AppendUint64(appendName8([]byte{0x0e}, bucket), uint64(start))
	if err := c.send(binary.BigEndian.AppendUint64(b, uint64(end))); err != nil {
		return nil, err
	}
	var out []Event
	for {
		f, err := c.frame()
		switch {
		case err != nil:
			return out, err
		case len(f) == 1 && f[0] == 0x10:
			return out, nil
		case len(f) == 0 || f[0] != 0x0f:
			return out, fmt.Errorf("a frame of events that begins with %x", f[:min(1, len(f))])
		}
		list, err := snappy.Decode(nil, f[1:])
		if err != nil {
			return out, err
		}
		for len(list) > 0 {
			if len(list) < 12 || len(list)-12 < int(binary.BigEndian.Uint32(list[8:])) {
				return out, fmt.Errorf("a list of events that ends inside one")
			}
			n := 12 + int(binary.BigEndian.Uint32(list[8:]))
			out = append(out, Event{int64(binary.BigEndian.Uint64(list)), list[12:n]})
			list = list[n:]
		}
	}
}
