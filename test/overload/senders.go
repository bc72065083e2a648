package overload

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"

	"dalmatiner/internal/metric"
	"dalmatiner/internal/point"
	"dalmatiner/internal/wire"
)

// width is the number of series of a sender that go into one message.
const width = 1000

// variants is the number of messages with different values that a stream sends
// in turn: making values would be the work of the sender.
const variants = 8

// Stream sends batches over TCP: a message is a slot of all its series.
type Stream struct {
	nc   net.Conn
	msgs [variants][]byte
	slot uint64
}

// NewStream opens a classic stream into a bucket. Slots count up from first.
func NewStream(ctx context.Context, addr, bucket string, number int, first int64) (*Stream, error) {
	nc, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	open, mark := wire.BeginFrame(nil)
	open, err = wire.AppendRequest(open, &wire.Request{Op: wire.OpStream, Bucket: []byte(bucket), Delay: 1})
	if err != nil {
		return nil, err
	}
	wire.EndFrame(open, mark)
	if _, err := nc.Write(open); err != nil {
		return nil, err
	}
	s := &Stream{nc: nc, slot: uint64(first)}
	r := rand.New(rand.NewPCG(uint64(number), 1))
	for v := range s.msgs {
		msg := wire.AppendBatchStart(nil, 0)
		for i := range width {
			key, err := metric.Key("sender"+strconv.Itoa(number), "metric", strconv.Itoa(i))
			if err != nil {
				return nil, err
			}
			msg = wire.AppendBatchPoint(msg, key, point.FromInt(r.Int64N(1000)))
		}
		s.msgs[v] = wire.AppendFlush(wire.AppendBatchEnd(msg))
	}
	return s, nil
}

// Points is the number of points of a message.
func (s *Stream) Points() int { return width }

// Send sends the next slot.
func (s *Stream) Send() error {
	msg := s.msgs[s.slot%variants]
	wire.AppendBatchStart(msg[:0], s.slot) // in the place of the one before
	s.slot++
	_, err := s.nc.Write(msg)
	return err
}

// Close ends the stream; what was sent is taken.
func (s *Stream) Close() error { return s.nc.Close() }

// Lines sends datagrams of Graphite's lines.
type Lines struct {
	nc    net.Conn
	names []string
	slot  int64
	next  int
	msg   []byte
}

// lines is the number of points of a datagram.
const lines = 100

// NewLines opens a socket to a Graphite port. Times count up from first.
func NewLines(ctx context.Context, addr string, number int, first int64) (*Lines, error) {
	nc, err := (&net.Dialer{}).DialContext(ctx, "udp", addr)
	if err != nil {
		return nil, err
	}
	l := &Lines{nc: nc, slot: first}
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
		l.slot++
	}
	_, err := l.nc.Write(l.msg)
	return err
}

// Close closes the socket.
func (l *Lines) Close() error { return l.nc.Close() }
