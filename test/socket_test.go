package test

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/s2"

	"dalmatiner/internal/wire"
)

// socket is a connection without a client library between the test and the
// bytes.
type socket struct {
	t *testing.T
	net.Conn
}

func (n *node) socket() *socket {
	n.t.Helper()
	c, err := net.Dial("tcp", n.tcp)
	if err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(func() { _ = c.Close() }) // it may be closed already
	if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
		n.t.Fatal(err)
	}
	return &socket{n.t, c}
}

// send writes bytes in one write.
func (s *socket) send(p []byte) {
	s.t.Helper()
	if _, err := s.Write(p); err != nil {
		s.t.Fatal(err)
	}
}

// ask sends a payload as a frame.
func (s *socket) ask(payload []byte) {
	s.t.Helper()
	s.send(frame(payload))
}

// frame returns a payload behind its length.
func frame(payload []byte) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(payload))), payload...)
}

// reply reads one frame: its length, then that many bytes.
func (s *socket) reply() []byte {
	s.t.Helper()
	var length [4]byte
	if _, err := io.ReadFull(s, length[:]); err != nil {
		s.t.Fatalf("read the length of a frame: %v", err)
	}
	payload := make([]byte, binary.BigEndian.Uint32(length[:]))
	if _, err := io.ReadFull(s, payload); err != nil {
		s.t.Fatalf("read a frame of %d bytes: %v", len(payload), err)
	}
	return payload
}

// names reads a reply that lists names.
func (s *socket) names() []string {
	s.t.Helper()
	payload := s.reply()
	if len(payload) < 8 || binary.BigEndian.Uint64(payload) != uint64(len(payload)-8) {
		s.t.Fatalf("the list %x does not begin with its size", payload)
	}
	var names []string
	for rest := payload[8:]; len(rest) > 0; {
		n := 2 + int(binary.BigEndian.Uint16(rest))
		names = append(names, string(rest[2:n]))
		rest = rest[n:]
	}
	return names
}

// slots reads the frames of a GET reply and returns the bytes of all slots.
// No frame may have more than most slots.
func (s *socket) slots(size, most int) []byte {
	s.t.Helper()
	if head := s.reply(); !bytes.Equal(head, []byte{0xff}) {
		s.t.Fatalf("the reply begins with %x instead of ff: %s", head, head)
	}
	var out []byte
	for {
		payload := s.reply()
		var coded []byte
		padding := 0
		switch payload[0] {
		case 0:
			return out
		case 1:
			coded = payload[1:]
		case 3:
			padding, coded = int(binary.BigEndian.Uint32(payload[1:])), payload[5:]
		default:
			s.t.Fatalf("a data frame begins with %02x", payload[0])
		}
		var data []byte
		if len(coded) > 0 {
			var err error
			if data, err = s2.Decode(nil, coded); err != nil {
				s.t.Fatal(err)
			}
		}
		if n := len(data)/size + padding; n > most {
			s.t.Errorf("a frame of %d slots, the limit is %d", n, most)
		}
		out = append(append(out, data...), make([]byte, padding*size)...)
	}
}

// refusal reads an ERROR frame and the end of the connection behind it.
func (s *socket) refusal() string {
	s.t.Helper()
	payload := s.reply()
	if len(payload) < 2 || payload[0] != 0xff || int(payload[1]) != len(payload)-2 {
		s.t.Fatalf("%x is no ERROR", payload)
	}
	s.closed()
	return string(payload[2:])
}

// closed checks that the server ends the connection and says nothing more.
func (s *socket) closed() {
	s.t.Helper()
	n, err := s.Read(make([]byte, 1))
	if n != 0 || err == nil {
		s.t.Fatal("the server goes on after the end")
	}
	if timeout := (net.Error)(nil); errors.As(err, &timeout) && timeout.Timeout() {
		s.t.Fatalf("the server does not close the connection: %v", err)
	}
}

// unhex decodes hexadecimal digits with blanks between them.
func unhex(t *testing.T, text string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(text, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// payload returns the payload of a request.
func payload(t *testing.T, q wire.Request) []byte {
	t.Helper()
	p, err := wire.AppendRequest(nil, &q)
	if err != nil {
		t.Fatal(err)
	}
	return p
}
