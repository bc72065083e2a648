package haggar

import (
	"bufio"
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

// place is where a point belongs.
type place struct {
	key  string
	slot int64
}

// store is a fake store: it keeps the points of every stream it is sent, and
// the bytes of every connection.
type store struct {
	ln   net.Listener
	done sync.WaitGroup

	mu      sync.Mutex
	opens   []string
	points  map[place]uint64
	twice   int      // points that came for a place already taken
	flushes int      // of both kinds
	raw     [][]byte // per connection, the open frame included
	breakAt int      // refuse the first stream after this many points; 0 is never
}

func newStore() *store { return &store{points: map[place]uint64{}} }

func listen(t *testing.T, s *store) *store {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.ln = ln
	s.done.Go(func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			s.done.Go(func() { s.serve(conn) })
		}
	})
	t.Cleanup(s.close)
	return s
}

// close waits until every connection has been read to its end.
func (s *store) close() {
	if s.ln != nil {
		s.ln.Close()
	}
	s.done.Wait()
}

func (s *store) serve(conn net.Conn) {
	defer conn.Close()
	var raw []byte
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.raw = append(s.raw, raw)
	}()
	r := bufio.NewReader(conn)
	payload, err := wire.ReadFrame(r, nil, 1000)
	if err != nil {
		return
	}
	raw = wire.AppendFrame(raw, payload)
	q, err := wire.ParseRequest(payload)
	if err != nil {
		return
	}
	s.mu.Lock()
	s.opens = append(s.opens, fmt.Sprintf("%d %s %d", q.Op, q.Bucket, q.Delay))
	s.mu.Unlock()
	p := wire.NewStreamParser(&q, wire.MinStreamLimit)
	sink := &storeSink{store: s, conn: conn}
	buf := make([]byte, 0, 4*wire.MinStreamLimit)
	for {
		n, err := r.Read(buf[len(buf):cap(buf)])
		if err != nil {
			return
		}
		raw = append(raw, buf[len(buf):len(buf)+n]...)
		buf = buf[:len(buf)+n]
		used, err := p.Parse(buf, sink, sink)
		if err == nil {
			err = sink.err
		}
		if err != nil {
			_, _ = conn.Write(wire.AppendFrame(nil, wire.AppendError(nil, err.Error())))
			_, _ = io.Copy(io.Discard, r)
			return
		}
		buf = buf[:copy(buf, buf[used:])]
	}
}

type storeSink struct {
	wire.PointByPoint
	*store
	conn     net.Conn
	received uint64
	total    int
	err      error
}

func (k *storeSink) Point(key []byte, slot, raw uint64) {
	k.received++
	k.total++
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.breakAt > 0 && len(k.opens) == 1 && k.total > k.breakAt {
		k.err = fmt.Errorf("refused after %d points", k.breakAt)
		return
	}
	at := place{string(key), int64(slot)}
	if _, ok := k.points[at]; ok {
		k.twice++
	}
	k.points[at] = raw
}

func (k *storeSink) Points(key []byte, slot uint64, data []byte) {
	for i := 0; i*point.Size < len(data); i++ {
		k.Point(key, slot+uint64(i), point.Get(data[i*point.Size:]))
	}
}

func (k *storeSink) Flush() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.flushes++
}

func (k *storeSink) FlushAck(seq uint64) {
	k.Flush()
	if k.err != nil {
		return
	}
	_, _ = k.conn.Write(
		wire.AppendFrame(nil, wire.AppendAck(nil, wire.Ack{Seq: seq, Received: k.received})))
	k.received = 0
}
