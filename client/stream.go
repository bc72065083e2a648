package client

import (
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"time"

	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/model/metric"
	"dalmatiner/internal/wire"
)

// streamBuffer is how many bytes a stream gathers before it writes by itself.
const streamBuffer = 64 << 10

// reasonWait bounds how long a stream looks for the server's reason after a
// write failed: the ERROR frame was sent before the close that failed it.
const reasonWait = 500 * time.Millisecond

// Stream is a connection in stream mode. Points and other messages are buffered. Flush,
// FlushAck, Send, Write and Finish send the buffer, and so does every call that fills it.
//
// A failed send is final: every later call that adds or sends something returns its error.
// That wraps a *ServerError if the server said why, on a stream without acknowledgements.
// Calls that do not fit the state of the stream, and wrong keys, fail as well, but change
// nothing.
//
// The server answers nothing to a stream that is not acknowledged. What it refuses it only
// counts, and a stream that it does not accept fails at a later send, or in Finish.
type Stream struct {
	c       *Client
	ack     bool
	hpts    bool
	buf     []byte
	inBatch bool
	seq     uint64
	err     error
}

// OpenStream turns the connection into a stream without acknowledgements into bucket. The
// server writes points that no flush follows after delay slots, 1 to 255. The request to open
// is buffered like all messages. The store creates an unknown bucket if it is configured to.
func (c *Client) OpenStream(bucket string, delay uint8) (*Stream, error) {
	return c.open(wire.Request{Op: wire.OpStream, Bucket: []byte(bucket), Delay: delay})
}

// OpenAckStream turns the connection into an acknowledged stream into bucket: FlushAck asks
// for an answer as soon as the points are durable. Servers of the original do not know it.
func (c *Client) OpenAckStream(bucket string) (*Stream, error) {
	return c.open(wire.Request{Op: wire.OpAckStream, Bucket: []byte(bucket), Delay: 1})
}

// OpenTimestampedStream is OpenStream for points with timestamps. The bucket must be one with
// timestamps.
func (c *Client) OpenTimestampedStream(bucket string, delay uint8) (*Stream, error) {
	return c.open(wire.Request{Op: wire.OpStream2, HPTS: true, Bucket: []byte(bucket), Delay: delay})
}

// OpenTimestampedAckStream is OpenAckStream for points with timestamps.
func (c *Client) OpenTimestampedAckStream(bucket string) (*Stream, error) {
	return c.open(wire.Request{Op: wire.OpAckStream, HPTS: true, Bucket: []byte(bucket), Delay: 1})
}

func (c *Client) open(q wire.Request) (*Stream, error) {
	if q.Delay == 0 {
		return nil, errors.New("the delay of a stream is 0, it needs 1 to 255 points")
	}
	s := &Stream{c: c, ack: q.Op == wire.OpAckStream, hpts: q.HPTS}
	buf, mark := wire.BeginFrame(make([]byte, 0, streamBuffer))
	buf, err := wire.AppendRequest(buf, &q)
	if err != nil {
		return nil, err
	}
	wire.EndFrame(buf, mark)
	s.buf = buf
	return s, c.conn.SetDeadline(time.Time{})
}

var (
	errInBatch     = errors.New("a batch is open: end it first")
	errNoBatch     = errors.New("no batch is open")
	errNoAck       = errors.New("the stream is not an acknowledged one")
	errEmptyKey    = errors.New("the key of a point is empty")
	errTimestamped = errors.New("the points of the stream have timestamps: send timestamped ones")
	errStale       = errors.New("a stale marker on a stream without acknowledgements, whose server " +
		"takes it for unset: open an acknowledged stream")
	errPlain = errors.New("the points of the stream have no timestamps: open a timestamped " +
		"stream")
)

// ready checks that a message may be appended now, inside a batch or not.
func (s *Stream) ready(inBatch bool) error {
	switch {
	case s.err != nil:
		return s.err
	case s.inBatch && !inBatch:
		return errInBatch
	case !s.inBatch && inBatch:
		return errNoBatch
	}
	return nil
}

// marked checks that words of them may be sent: stale markers on an acknowledged stream only.
func (s *Stream) marked(words ...uint64) error {
	if !s.ack && slices.Contains(words, point.Stale) {
		return errStale
	}
	return nil
}

// point checks that points of the key may be sent now, with a timestamp or not.
func (s *Stream) point(inBatch, timestamped bool, key []byte, words ...uint64) error {
	if err := s.ready(inBatch); err != nil {
		return err
	}
	switch {
	case s.hpts && !timestamped:
		return errTimestamped
	case timestamped && !s.hpts:
		return errPlain
	}
	if err := s.marked(words...); err != nil {
		return err
	}
	return checkKey(key)
}

func checkKey(key []byte) error {
	if len(key) == 0 {
		return errEmptyKey
	}
	if len(key) > metric.MaxKey {
		return fmt.Errorf("a metric's key has %d bytes, the limit is %d", len(key), metric.MaxKey)
	}
	return nil
}

// Point adds one point of a series.
func (s *Stream) Point(key []byte, slot int64, word uint64) error {
	return s.Points(key, slot, word)
}

// Points adds points of a series in consecutive slots, from slot on. A word of point.Unset leaves
// its slot as it is. One of point.Stale says that the series has ended, on an acknowledged stream:
// it never overwrites a value, and reads as unset except by Get. The server takes at most 1 MiB in
// one call: some 130,000 words.
func (s *Stream) Points(key []byte, slot int64, words ...uint64) error {
	if err := s.point(false, false, key, words...); err != nil {
		return err
	}
	s.buf = wire.AppendEntry(s.buf, key, uint64(slot), words...)
	return s.spill()
}

// BatchStart opens a batch: all points until BatchEnd belong to slot. Other points and flushes
// are an error meanwhile.
func (s *Stream) BatchStart(slot int64) error {
	if err := s.ready(false); err != nil {
		return err
	}
	s.inBatch = true
	s.buf = wire.AppendBatchStart(s.buf, uint64(slot))
	return nil
}

// BatchPoint adds one point of a series to the open batch.
func (s *Stream) BatchPoint(key []byte, word uint64) error {
	if err := s.point(true, false, key, word); err != nil {
		return err
	}
	s.buf = wire.AppendBatchPoint(s.buf, key, word)
	return s.spill()
}

// TimestampedPoints is Points for points with timestamps.
func (s *Stream) TimestampedPoints(key []byte, slot int64, points ...wire.Timestamped) error {
	if err := s.point(false, true, key); err != nil {
		return err
	}
	for _, p := range points {
		if err := s.marked(p.Word); err != nil {
			return err
		}
	}
	s.buf = wire.AppendTimestampedEntry(s.buf, key, uint64(slot), points...)
	return s.spill()
}

// TimestampedBatchPoint is BatchPoint for a point with a timestamp.
func (s *Stream) TimestampedBatchPoint(key []byte, p wire.Timestamped) error {
	if err := s.point(true, true, key, p.Word); err != nil {
		return err
	}
	s.buf = wire.AppendTimestampedBatchPoint(s.buf, key, p)
	return s.spill()
}

// BatchEnd closes the batch.
func (s *Stream) BatchEnd() error {
	if err := s.ready(true); err != nil {
		return err
	}
	s.inBatch = false
	s.buf = wire.AppendBatchEnd(s.buf)
	return s.spill()
}

// Flush sends the buffer and asks the server to write all points. It does not wait.
func (s *Stream) Flush() error {
	if err := s.ready(false); err != nil {
		return err
	}
	s.buf = wire.AppendFlush(s.buf)
	return s.Send()
}

// FlushAck sends the buffer and asks for an acknowledgement, which ReadAck returns with the
// same number. It does not wait, and several may be outstanding. It is an error on a stream
// that is not acknowledged.
func (s *Stream) FlushAck() (seq uint64, err error) {
	if err := s.ready(false); err != nil {
		return 0, err
	}
	if !s.ack {
		return 0, errNoAck
	}
	s.seq++
	s.buf = wire.AppendFlushAck(s.buf, s.seq)
	return s.seq, s.Send()
}

// ReadAck waits for the next acknowledgement, in the order of the calls of FlushAck, without
// a bound but SetDeadline's. One goroutine may call it while another one sends. A
// *ServerError that it wraps says why the server has ended the stream.
func (s *Stream) ReadAck() (wire.Ack, error) {
	if !s.ack {
		return wire.Ack{}, errNoAck
	}
	payload, err := s.c.reply()
	if err != nil {
		return wire.Ack{}, fmt.Errorf("wait for an acknowledgement: %w", err)
	}
	return wire.ParseAck(payload)
}

// Send sends the buffer.
func (s *Stream) Send() error { return s.Write(nil) }

// Write sends the buffer and then raw, messages that the caller has encoded (package wire).
// On a TCP connection that is one system call.
func (s *Stream) Write(raw []byte) error {
	if s.err != nil {
		return s.err
	}
	var err error
	switch {
	case len(s.buf) > 0 && len(raw) > 0:
		both := net.Buffers{s.buf, raw}
		_, err = both.WriteTo(s.c.conn)
	case len(s.buf) > 0:
		_, err = s.c.conn.Write(s.buf)
	case len(raw) > 0:
		_, err = s.c.conn.Write(raw)
	}
	s.buf = s.buf[:0]
	if err != nil {
		s.err = fmt.Errorf("send to the stream: %w", s.reason(err))
	}
	return s.err
}

// spill sends the buffer once it is full.
func (s *Stream) spill() error {
	if len(s.buf) < streamBuffer {
		return nil
	}
	return s.Send()
}

// reason returns the server's own words for a failed write where there are
// any. An acknowledged stream has a reader that gets them.
func (s *Stream) reason(err error) error {
	if s.ack {
		return err
	}
	_ = s.c.conn.SetReadDeadline(time.Now().Add(reasonWait))
	if _, why := s.c.reply(); isServerError(why) {
		return why
	}
	return err
}

// SetDeadline bounds all sends and reads that follow, and those under way. The zero time is
// no bound, which a new Stream has.
func (s *Stream) SetDeadline(t time.Time) error { return s.c.conn.SetDeadline(t) }

// Finish sends the buffer, says that nothing follows, and waits at most timeout until the
// server has read everything and closed. Then it closes the connection. It returns the
// *ServerError that the server may have sent. Acknowledgements that were not read are
// dropped, and no other goroutine may read meanwhile. On a connection that cannot be closed
// for writing alone it closes without waiting.
func (s *Stream) Finish(timeout time.Duration) error {
	defer s.Close()
	if err := s.Send(); err != nil {
		return err
	}
	half, ok := s.c.conn.(interface{ CloseWrite() error })
	if !ok {
		return s.Close()
	}
	if err := half.CloseWrite(); err != nil {
		return fmt.Errorf("end the stream: %w", err)
	}
	if err := s.c.conn.SetReadDeadline(time.Now().Add(timeout)); err != nil {
		return fmt.Errorf("end the stream: %w", err)
	}
	for {
		_, err := s.c.reply()
		if isServerError(err) {
			return err
		}
		if err != nil {
			return endOfStream(err)
		}
	}
}

// Close closes the connection and drops what is in the buffer.
func (s *Stream) Close() error { return s.c.Close() }

// endOfStream tells the end a server makes of a finished stream from a fault.
func endOfStream(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return fmt.Errorf("wait for the server to take the end of the stream: %w", err)
}
