package dwire

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"net"
	"time"
)

// Stream is a connection in acknowledged stream mode. One goroutine writes,
// another one may call ReadAck.
type Stream struct {
	conn net.Conn
	out  *bufio.Writer
	in   *Conn
}

// Ack is one answer: what was sent before the question seq is durable, but for
// the refused points.
type Ack struct{ Seq, Received, Refused uint64 }

// OpenStream opens an acknowledged stream into a bucket.
func OpenStream(addr, bucket string, timestamps bool, timeout time.Duration) (*Stream, error) {
	c, err := Dial(addr, timeout)
	if err != nil {
		return nil, err
	}
	version := byte(1)
	if timestamps {
		version = 2
	}
	if err := c.send(appendName8([]byte{0x20, version, 5}, bucket)); err != nil {
		c.Close()
		return nil, err
	}
	return &Stream{conn: c.conn, out: bufio.NewWriterSize(c.conn, 64<<10), in: c}, nil
}

// Close closes the connection.
func (s *Stream) Close() { s.in.Close() }

// Entry writes consecutive points of one series; points are those bytes.
func (s *Stream) Entry(key []byte, slot int64, points []byte) {
	b := binary.BigEndian.AppendUint64([]byte{0x05}, uint64(slot))
	b = appendName16(b, key)
	b = binary.BigEndian.AppendUint32(b, uint32(len(points)))
	_, _ = s.out.Write(append(b, points...)) // an error stays until Ask
}

// BeginBatch begins a batch for a slot.
func (s *Stream) BeginBatch(slot int64) {
	// an error stays until Ask
	_, _ = s.out.Write(binary.BigEndian.AppendUint64([]byte{0x0a}, uint64(slot)))
}

// BatchPoint adds a point, of 8 or 16 bytes, to the batch.
func (s *Stream) BatchPoint(key, point []byte) {
	// an error stays until Ask
	_, _ = s.out.Write(append(appendName16(make([]byte, 0, len(key)+18), key), point...))
}

// EndBatch ends the batch.
func (s *Stream) EndBatch() { _, _ = s.out.Write([]byte{0, 0}) } // an error stays until Ask

// Ask sends everything, and the question whether it is durable.
func (s *Stream) Ask(seq uint64) error {
	_ = s.conn.SetWriteDeadline(time.Now().Add(s.in.timeout)) // a failure shows in the write
	_, _ = s.out.Write(binary.BigEndian.AppendUint64([]byte{0x21}, seq))
	return s.out.Flush()
}

// ReadAck waits for the next answer.
func (s *Stream) ReadAck() (Ack, error) {
	_ = s.conn.SetReadDeadline(time.Now().Add(s.in.timeout)) // a failure shows in the read
	b, err := s.in.frame()
	if err != nil {
		return Ack{}, err
	}
	if len(b) != 25 || b[0] != 0x21 {
		return Ack{}, fmt.Errorf("an acknowledgement of %d bytes that begins with %x", len(b),
			b[:min(1, len(b))])
	}
	return Ack{
		Seq:      binary.BigEndian.Uint64(b[1:]),
		Received: binary.BigEndian.Uint64(b[9:]),
		Refused:  binary.BigEndian.Uint64(b[17:]),
	}, nil
}
