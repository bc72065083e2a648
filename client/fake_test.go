package client

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fakeServer answers as a store with bucket "b" and series "k" whose slot s
// holds the integer s would, and records and keeps what streams carry.
type fakeServer struct {
	ln     net.Listener
	closed sync.WaitGroup

	mu      sync.Mutex
	buckets map[string]wire.Info
	calls   []string
	words   map[pointAt]uint64
}

type pointAt struct {
	key  string
	slot uint64
}

// listen starts a server that ends with stop.
func listen() (s *fakeServer, stop func(), err error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, nil, err
	}
	s = &fakeServer{
		ln:      ln,
		buckets: map[string]wire.Info{"b": {Resolution: 1000, PointsPerFile: 604800}},
		words:   map[pointAt]uint64{},
	}
	s.closed.Go(func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			s.closed.Go(func() {
				defer conn.Close()
				s.serve(conn)
			})
		}
	})
	return s, func() {
		ln.Close()
		s.closed.Wait()
	}, nil
}

func startServer(t *testing.T) *fakeServer {
	t.Helper()
	s, stop, err := listen()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	return s
}

// StartServer is for the example: a server, its address, and what ends it.
func StartServer() (addr string, stop func()) {
	s, stop, err := listen()
	if err != nil {
		panic(err)
	}
	return s.ln.Addr().String(), stop
}

func (s *fakeServer) dial(t *testing.T) *Client {
	t.Helper()
	c, err := Dial(context.Background(), s.ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func (s *fakeServer) serve(conn net.Conn) {
	r := bufio.NewReader(conn)
	for {
		payload, err := wire.ReadFrame(r, nil, 1<<20)
		if err != nil {
			return
		}
		q, err := wire.ParseRequest(payload)
		if err == nil && (q.Op == wire.OpStream || q.Op == wire.OpAckStream) {
			s.stream(conn, r, &q)
			return
		}
		var replies [][]byte
		if err == nil {
			replies, err = s.answer(&q)
		}
		if err != nil {
			replies = append(replies, wire.AppendError(nil, err.Error()))
		}
		for _, p := range replies {
			if _, werr := conn.Write(wire.AppendFrame(nil, p)); werr != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

func (s *fakeServer) answer(q *wire.Request) ([][]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	in, known := s.buckets[string(q.Bucket)]
	switch {
	case q.Op == wire.OpBuckets:
		var names []string
		for b := range s.buckets {
			names = append(names, b)
		}
		return [][]byte{nameList(names...)}, nil
	case q.Op == wire.OpAdd:
		s.buckets[string(q.Bucket)] = wire.Info{Resolution: q.Resolution, PointsPerFile: q.PointsPerFile,
			TTL: q.TTL}
		return nil, nil
	case !known:
		return nil, fmt.Errorf("no bucket %q", q.Bucket)
	}
	switch q.Op {
	case wire.OpList:
		return [][]byte{nameList("\x01k", "\x01l")}, nil
	case wire.OpListPrefix:
		return [][]byte{nameList(string(q.Key) + "k")}, nil
	case wire.OpInfo:
		return [][]byte{wire.AppendInfo(nil, in)}, nil
	case wire.OpDelete:
		delete(s.buckets, string(q.Bucket))
	case wire.OpTTL:
		in.TTL = q.TTL
		s.buckets[string(q.Bucket)] = in
	case wire.OpGet:
		return s.points(q), nil
	}
	return nil, nil
}

func nameList(names ...string) []byte {
	list, mark := wire.BeginNames(nil)
	for _, n := range names {
		list = wire.AppendName(list, []byte(n))
	}
	wire.EndNames(list, mark)
	return list
}

// points answers a GET in frames of 10 slots; the key "short" gets one slot
// too few.
func (s *fakeServer) points(q *wire.Request) [][]byte {
	e := wire.GetEncoder{Exact: q.Options.Exact}
	out := [][]byte{wire.AppendGetHeader(nil)}
	count := int(q.Count)
	if string(q.Key) == "short" {
		count--
	}
	for at := 0; at < count; at += 10 {
		words := make([]uint64, min(10, count-at))
		for i := range words {
			slot := q.Slot + uint64(at+i)
			if words[i] = s.words[pointAt{string(q.Key), slot}]; string(q.Key) == "k" {
				words[i] = point.FromInt(int64(slot))
			}
		}
		out = append(out, e.AppendData(nil, words))
	}
	return append(out, wire.AppendGetEnd(nil))
}

// stream records the calls. The key "bad" makes it answer ERROR and close.
func (s *fakeServer) stream(conn net.Conn, r io.Reader, q *wire.Request) {
	sink := &streamSink{s: s, conn: conn}
	p := wire.NewStreamParser(q, wire.MinStreamLimit)
	buf := make([]byte, 0, 2*wire.MinStreamLimit)
	for sink.err == nil {
		n, err := r.Read(buf[len(buf):cap(buf)])
		if err != nil {
			return
		}
		buf = buf[:len(buf)+n]
		used, err := p.Parse(buf, sink, sink)
		if err != nil {
			sink.err = err
		}
		buf = buf[:copy(buf, buf[used:])]
	}
	_, _ = conn.Write(wire.AppendFrame(nil, wire.AppendError(nil, sink.err.Error())))
	_, _ = io.Copy(io.Discard, r)
}

type streamSink struct {
	wire.PointByPoint
	s        *fakeServer
	conn     net.Conn
	received uint64
	err      error
}

func (k *streamSink) keep(key []byte, slot, word uint64) {
	k.s.mu.Lock()
	defer k.s.mu.Unlock()
	k.s.words[pointAt{string(key), slot}] = word
}

func (k *streamSink) record(format string, args ...any) {
	k.s.mu.Lock()
	defer k.s.mu.Unlock()
	k.s.calls = append(k.s.calls, fmt.Sprintf(format, args...))
}

func (k *streamSink) Point(key []byte, slot, raw uint64) {
	if bytes.Equal(key, []byte("bad")) {
		k.err = errors.New("bad key")
	}
	k.received++
	k.keep(key, slot, raw)
	k.record("point %s %d %d", key, slot, point.Int(raw))
}

func (k *streamSink) Points(key []byte, slot uint64, data []byte) {
	k.received += uint64(len(data) / point.Size)
	for i := range len(data) / point.Size {
		k.keep(key, slot+uint64(i), point.Get(data[i*point.Size:]))
	}
	k.record("points %s %d %d bytes", key, slot, len(data))
}

func (k *streamSink) Flush() { k.record("flush") }

func (k *streamSink) FlushAck(seq uint64) {
	k.record("flushack %d", seq)
	_, _ = k.conn.Write(
		wire.AppendFrame(nil, wire.AppendAck(nil, wire.Ack{Seq: seq, Received: k.received})))
	k.received = 0
}

func (s *fakeServer) recorded() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.calls...)
}
