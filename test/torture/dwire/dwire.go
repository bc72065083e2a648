// Package dwire speaks the TCP port of a node, written from the description of
// the protocol alone (docs/protocol.md), so that a fault in the store's own codec
// cannot hide itself.
package dwire

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/klauspost/compress/snappy"
)

// maxReply is the largest frame that is believed: 65,536 slots of 16 bytes, or a
// list of names.
const maxReply = 64 << 20

// Conn is a connection in normal mode. Its calls are not for concurrent use.
type Conn struct {
	conn    net.Conn
	in      *bufio.Reader
	timeout time.Duration
}

// ServerError is an ERROR frame.
type ServerError string

func (e ServerError) Error() string { return "server: " + string(e) }

// Dial connects; every call has timeout.
func Dial(addr string, timeout time.Duration) (*Conn, error) {
	c, err := net.DialTimeout("tcp", addr, timeout)
	if err != nil {
		return nil, err
	}
	return &Conn{conn: c, in: bufio.NewReaderSize(c, 64<<10), timeout: timeout}, nil
}

// Close closes the connection.
func (c *Conn) Close() { _ = c.conn.Close() } // nothing is lost with it

func appendName8(b []byte, s string) []byte { return append(append(b, byte(len(s))), s...) }

func appendName16(b, s []byte) []byte {
	return append(binary.BigEndian.AppendUint16(b, uint16(len(s))), s...)
}

// Key is the wire form of a metric of these parts.
func Key(parts ...string) []byte {
	var b []byte
	for _, p := range parts {
		b = appendName8(b, p)
	}
	return b
}

func (c *Conn) send(payload []byte) error {
	_ = c.conn.SetDeadline(time.Now().Add(c.timeout)) // a failure shows in the write
	_, err := c.conn.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(payload))),
		payload...))
	return err
}

func (c *Conn) frame() ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(c.in, head[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(head[:])
	if n > maxReply {
		return nil, fmt.Errorf("a frame of %d bytes", n)
	}
	b := make([]byte, n)
	if _, err := io.ReadFull(c.in, b); err != nil {
		return nil, err
	}
	if len(b) > 1 && b[0] == 0xff && int(b[1]) == len(b)-2 {
		return nil, ServerError(b[2:])
	}
	return b, nil
}

// Add creates a bucket and waits until it is there. ttl is in points, 0 = none.
func (c *Conn) Add(bucket string, resolution, ttl uint64, hpts bool) error {
	b := appendName8([]byte{0x08}, bucket)
	b = binary.BigEndian.AppendUint64(b, resolution)
	b = binary.BigEndian.AppendUint64(b, 604800)
	b = binary.BigEndian.AppendUint64(b, ttl)
	if hpts {
		b = append(b, 1)
	}
	if err := c.send(b); err != nil {
		return err
	}
	if err := c.send(appendName8([]byte{0x07}, bucket)); err != nil {
		return err
	}
	_, err := c.frame()
	return err
}

func (c *Conn) names(request []byte) ([]string, error) {
	if err := c.send(request); err != nil {
		return nil, err
	}
	b, err := c.frame()
	if err != nil {
		return nil, err
	}
	if len(b) < 8 || binary.BigEndian.Uint64(b) != uint64(len(b)-8) {
		return nil, errors.New("a list whose length is wrong")
	}
	var names []string
	for b = b[8:]; len(b) > 0; {
		if len(b) < 2 || len(b) < 2+int(binary.BigEndian.Uint16(b)) {
			return nil, errors.New("a list that ends inside a name")
		}
		n := 2 + int(binary.BigEndian.Uint16(b))
		names, b = append(names, string(b[2:n])), b[n:]
	}
	return names, nil
}

// Buckets lists the buckets.
func (c *Conn) Buckets() ([]string, error) { return c.names([]byte{0x03}) }

// List returns the keys of a bucket.
func (c *Conn) List(bucket string) ([]string, error) {
	return c.names(appendName8([]byte{0x01}, bucket))
}

func getRequest(bucket string, key []byte, slot int64, count uint32) []byte {
	b := appendName16(appendName8([]byte{0x02}, bucket), key)
	return binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint64(b, uint64(slot)), count)
}

// Refusal sends a GET and returns the message of the ERROR that answers it, ""
// when the answer begins like one with points.
func (c *Conn) Refusal(bucket string, key []byte, slot int64, count uint32) (string, error) {
	if err := c.send(getRequest(bucket, key, slot, count)); err != nil {
		return "", err
	}
	_, err := c.frame()
	var refusal ServerError
	if errors.As(err, &refusal) {
		return string(refusal), nil
	}
	return "", err
}

// Get returns count slots from slot on, 8 bytes each, 16 with timestamps.
func (c *Conn) Get(bucket string, key []byte, slot int64, count int,
	timestamps bool) ([]byte, error) {
	const hpts, exact = 1, 2
	flags, width := byte(exact), 8
	if timestamps {
		flags, width = exact|hpts, 16
	}
	b := append(getRequest(bucket, key, slot, uint32(count)), flags, 2, 0)
	if err := c.send(b); err != nil {
		return nil, err
	}
	head, err := c.frame()
	if err != nil {
		return nil, err
	}
	if len(head) != 1 || head[0] != 0xff {
		return nil, fmt.Errorf("a reply that begins with %x", head)
	}
	out := make([]byte, 0, count*width)
	for {
		f, err := c.frame()
		if err != nil {
			return nil, err
		}
		if len(f) == 1 && f[0] == 0 {
			break
		}
		if out, err = appendData(out, f, width); err != nil {
			return nil, err
		}
	}
	if len(out) != count*width {
		return nil, fmt.Errorf("asked for %d slots, got %d", count, len(out)/width)
	}
	return out, nil
}

func appendData(out, f []byte, width int) ([]byte, error) {
	var unset int
	var data []byte
	switch {
	case len(f) >= 1 && f[0] == 1:
		data = f[1:]
	case len(f) >= 5 && f[0] == 3:
		unset, data = int(binary.BigEndian.Uint32(f[1:])), f[5:]
	default:
		return nil, fmt.Errorf("a data frame of %d bytes of an unknown kind", len(f))
	}
	if len(data) > 0 {
		d, err := snappy.Decode(nil, data)
		if err != nil {
			return nil, err
		}
		out = append(out, d...)
	}
	return append(out, make([]byte, unset*width)...), nil
}
