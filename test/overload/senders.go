package overload

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"sync/atomic"

	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/model/metric"
	"dalmatiner/internal/wire"
)

// width is the number of series of a sender that go into one message.
const width = 1000

// variants is the number of messages with different values that a stream sends
// in turn: making values would be the work of the sender.
const variants = 8

// Stream sends batches over TCP: a message is a slot of width series.
type Stream struct {
	nc    net.Conn
	parts [][variants][]byte
	slot  uint64
	next  int // of parts
}

// NewStream opens a classic stream into a bucket, of parts times width series.
// Slots count up from first.
func NewStream(ctx context.Context, addr, bucket string, number, parts int,
	first int64) (*Stream, error) {
	nc, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	open, mark := wire.BeginFrame(nil)
	open, err = wire.AppendRequest(open, &wire.Request{
		Op:     wire.OpStream,
		Bucket: []byte(bucket),
		Delay:  1,
	})
	if err != nil {
		return nil, err
	}
	wire.EndFrame(open, mark)
	if _, err := nc.Write(open); err != nil {
		return nil, err
	}
	s := &Stream{nc: nc, slot: uint64(first), parts: make([][variants][]byte, parts)}
	r := rand.New(rand.NewPCG(uint64(number), 1))
	for p := range s.parts {
		for v := range variants {
			msg := wire.AppendBatchStart(nil, 0)
			for i := range width {
				key, err := metric.Key("sender"+strconv.Itoa(number), "metric", strconv.Itoa(p*width+i))
				if err != nil {
					return nil, err
				}
				msg = wire.AppendBatchPoint(msg, key, point.FromInt(r.Int64N(1000)))
			}
			s.parts[p][v] = wire.AppendFlush(wire.AppendBatchEnd(msg))
		}
	}
	return s, nil
}

// Points is the number of points of a message.
func (s *Stream) Points() int { return width }

// Send sends the next part of the slot, or the first one of the next slot.
func (s *Stream) Send() error {
	msg := s.parts[s.next][s.slot%variants]
	wire.AppendBatchStart(msg[:0], s.slot) // in the place of the one before
	if s.next++; s.next == len(s.parts) {
		s.next = 0
		s.slot++
	}
	_, err := s.nc.Write(msg)
	return err
}

// Taken is true: Send waits for the other side.
func (s *Stream) Taken() (bool, error) { return true, nil }

// Close ends the stream; what was sent is taken.
func (s *Stream) Close() error { return s.nc.Close() }

// Lines sends datagrams of Graphite's lines.
type Lines struct {
	nc    net.Conn
	port  string // of the other side, as the kernel prints it
	clock *atomic.Int64
	names []string
	slot  int64
	next  int
	sent  int
	msg   []byte
}

const (
	// lines is the number of points of a datagram.
	lines = 100

	// A sender that is not to lose anything looks at the socket's queue every
	// lookEvery datagrams, and sends while less than mostQueued waits there.
	lookEvery  = 16
	mostQueued = 1 << 20
)

// NewLines opens a socket to a Graphite port. All senders of an experiment have
// one clock, as agents have: without it one would run ahead of the other, whose
// points were late then.
func NewLines(ctx context.Context, addr string, number int, clock *atomic.Int64) (*Lines, error) {
	nc, err := (&net.Dialer{}).DialContext(ctx, "udp", addr)
	if err != nil {
		return nil, err
	}
	port := nc.RemoteAddr().(*net.UDPAddr).Port
	l := &Lines{nc: nc, port: fmt.Sprintf("%04X", port), clock: clock, slot: clock.Load()}
	for i := range width {
		l.names = append(l.names, fmt.Sprintf("sender%d.metric.%d ", number, i))
	}
	return l, nil
}

// Points is the number of points of a datagram.
func (l *Lines) Points() int { return lines }

// Send sends the next lines.
func (l *Lines) Send() error {
	l.msg = l.msg[:0]
	var end []byte
	end = strconv.AppendInt(append(end, " "...), l.slot, 10)
	end = append(end, '\n')
	for range lines {
		l.msg = append(append(append(l.msg, l.names[l.next]...), '7'), end...)
		l.next++
	}
	if l.next == width {
		l.next = 0
		l.clock.CompareAndSwap(l.slot, l.slot+1)
		l.slot = max(l.slot+1, l.clock.Load())
	}
	_, err := l.nc.Write(l.msg)
	return err
}

// Taken reports whether the other side keeps up.
func (l *Lines) Taken() (bool, error) {
	if l.sent++; l.sent%lookEvery != 0 {
		return true, nil
	}
	table, err := os.ReadFile("/proc/net/udp")
	if err != nil {
		return false, err
	}
	n, err := queued(table, l.port)
	if n > mostQueued {
		l.sent-- // look again before the next one
	}
	return n <= mostQueued, err
}

// queued returns the bytes that wait at the sockets of a port.
func queued(table []byte, port string) (sum uint64, err error) {
	for line := range bytes.Lines(table) {
		// sl local_address rem_address st tx_queue:rx_queue …
		columns := bytes.Fields(line)
		if len(columns) < 5 || !bytes.HasSuffix(columns[1], []byte(":"+port)) {
			continue
		}
		_, rx, _ := bytes.Cut(columns[4], []byte(":"))
		n, err := strconv.ParseUint(string(rx), 16, 64)
		if err != nil {
			return 0, fmt.Errorf("/proc/net/udp: %w", err)
		}
		sum += n
	}
	return sum, nil
}

// Close closes the socket.
func (l *Lines) Close() error { return l.nc.Close() }
