package tftp

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"time"
)

// The kinds of packets. Sources: RFC 1350, and RFC 2347 for the last.
const (
	reads   = 1
	writes  = 2
	data    = 3
	ack     = 4
	failed  = 5
	options = 6
)

// What holds for a machine that asks for nothing else.
const (
	plainBlock  = 512
	plainWait   = time.Second
	mostTries   = 5
	mostRequest = 2048
	mostPlain   = 65464 // of a block: RFC 2348
	leastPlain  = 8
)

// request is a file that a machine asks for, and what it wants to agree on.
type request struct {
	name  string
	block int // bytes; 0: it does not say
	wait  int // seconds; 0: it does not say
	size  bool
}

// errNone is the error of a packet that is no request: nothing is said to it.
var errNone = errors.New("it is no request of TFTP")

// parse reads a request. Names of options and modes are the same in all cases: RFC 1350 and 2347.
// An option that is not known, or whose value is none, is passed over: nobody agrees on it. So is a
// mode that is none: some firmware adds bytes to the name that it finds in DHCP's answer.
func parse(packet []byte) (q request, err error) {
	if len(packet) < 2 {
		return q, errNone
	}
	kind, texts := binary.BigEndian.Uint16(packet), bytes.Split(packet[2:], []byte{0})
	switch {
	case kind == writes:
		return q, errors.New("nobody writes here")
	case kind != reads || len(texts) < 2:
		return q, errNone
	case strings.EqualFold(string(texts[1]), "netascii") ||
		strings.EqualFold(string(texts[1]), "mail"):
		return q, fmt.Errorf("%q: files are given in mode octet", texts[1])
	}
	q.name = string(texts[0])
	for list := texts[2:]; len(list) > 1; list = list[2:] { // some firmware leaves out the last zero
		n, err := strconv.Atoi(string(list[1]))
		switch name := strings.ToLower(string(list[0])); {
		case err != nil:
		case name == "blksize" && n >= leastPlain && n <= mostPlain:
			q.block = n
		case name == "timeout" && n >= 1 && n <= 255:
			q.wait = n
		case name == "tsize":
			q.size = true
		}
	}
	return q, nil
}

// failure returns the packet that says an error.
func failure(why error) []byte {
	code := byte(0)
	if errors.Is(why, ErrNone) {
		code = 1 // file not found
	}
	return append([]byte{0, failed, 0, code}, why.Error()+"\x00"...)
}

// transfer is a file on its way to a machine.
type transfer struct {
	conn   *net.UDPConn // to that machine
	block  int
	wait   time.Duration
	answer []byte // that was read last
}

// agree says which of its options a machine has, if any: sizes of blocks up to the one that fits.
func (t *transfer) agree(q *request, size int64, most int) error {
	said := []byte{0, options}
	add := func(name string, value int64) { said = fmt.Appendf(said, "%s\x00%d\x00", name, value) }
	if q.block > 0 {
		t.block = min(q.block, most)
		add("blksize", int64(t.block))
	}
	if q.size {
		add("tsize", size)
	}
	if q.wait > 0 {
		t.wait = time.Duration(q.wait) * time.Second
		add("timeout", int64(q.wait))
	}
	if len(said) == 2 {
		return nil
	}
	return t.exchange(said, 0)
}

// send sends a file in blocks. The last one is shorter than all others; end is called ahead of it.
func (t *transfer) send(from io.Reader, size int64, end func()) error {
	packet := make([]byte, 4+t.block)
	for number := uint16(1); ; number++ {
		n := int(min(size, int64(t.block)))
		if _, err := io.ReadFull(from, packet[4:4+n]); err != nil {
			_, _ = t.conn.Write(failure(errors.New("the file cannot be read")))
			return err
		}
		if size -= int64(n); size == 0 && end != nil {
			end()
			end = nil
		}
		binary.BigEndian.PutUint16(packet, data)
		binary.BigEndian.PutUint16(packet[2:], number)
		if err := t.exchange(packet[:4+n], number); err != nil || n < t.block {
			return err
		}
	}
}

// exchange sends a packet until the machine says that it has it. That it has the one before, again,
// is not answered: both sides would send all that follows twice.
func (t *transfer) exchange(packet []byte, number uint16) error {
	for range mostTries {
		if _, err := t.conn.Write(packet); err != nil {
			return err
		}
		if err := t.conn.SetReadDeadline(time.Now().Add(t.wait)); err != nil {
			return err
		}
		switch is, err := t.acknowledged(number); {
		case is:
			return nil
		case !errors.Is(err, os.ErrDeadlineExceeded):
			return err
		}
	}
	return fmt.Errorf("it does not answer block %d", number)
}

// acknowledged reads until a machine says that it has a block, or the time is over.
func (t *transfer) acknowledged(number uint16) (bool, error) {
	for {
		n, err := t.conn.Read(t.answer)
		switch got := t.answer[:n]; {
		case err != nil:
			return false, err
		case n >= 4 && binary.BigEndian.Uint16(got) == failed:
			return false, fmt.Errorf("it says: %.100q", bytes.TrimRight(got[4:], "\x00"))
		case n >= 4 && binary.BigEndian.Uint16(got) == ack && binary.BigEndian.Uint16(got[2:]) == number:
			return true, nil
		}
	}
}
