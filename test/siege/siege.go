// Package siege is what a hostile or broken client does to a node's listeners:
// messages that never end, connections that never speak, answers nobody reads.
// Each attack holds what it opened until it is closed.
package siege

import (
	"encoding/binary"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"dalmatiner/internal/wire"
)

// Attack is connections that are held.
type Attack struct {
	Opened atomic.Int64 // connections that were accepted by the system
	Sent   atomic.Int64 // bytes that the node took

	mu    sync.Mutex
	conns []net.Conn
	done  chan struct{}
	all   sync.WaitGroup
}

// piece is what an attacker writes at a time.
const piece = 64 << 10

// Start opens n connections to addr and runs each in a goroutine of its own. The
// connection stays open when run returns.
func Start(addr string, n int, run func(a *Attack, nc net.Conn) error) *Attack {
	a := &Attack{done: make(chan struct{})}
	for range n {
		a.all.Go(func() {
			nc, err := net.Dial("tcp", addr)
			if err != nil {
				return
			}
			a.Opened.Add(1)
			a.mu.Lock()
			a.conns = append(a.conns, nc)
			a.mu.Unlock()
			_ = run(a, nc) // the node may cut it off: that is what is looked for
		})
	}
	return a
}

// Close ends the attack.
func (a *Attack) Close() {
	close(a.done)
	a.mu.Lock()
	for _, nc := range a.conns {
		_ = nc.Close()
	}
	a.mu.Unlock()
	a.all.Wait()
}

// send sends head and then n bytes of body.
func send(head, body []byte, n int) func(*Attack, net.Conn) error {
	return func(a *Attack, nc net.Conn) error {
		if _, err := nc.Write(head); err != nil {
			return err
		}
		buf := make([]byte, 0, piece+len(body))
		for len(body) > 0 && len(buf) < piece {
			buf = append(buf, body...)
		}
		for left := n; left > 0; {
			m, err := nc.Write(buf[:min(len(buf), left)])
			a.Sent.Add(int64(m))
			left -= m
			if err != nil {
				return err
			}
		}
		return nil
	}
}

// Frame begins a request frame of size bytes and leaves out the last one.
func Frame(size int) func(*Attack, net.Conn) error {
	return send(binary.BigEndian.AppendUint32(nil, uint32(size)), []byte{0}, size-1)
}

// Entry opens a stream and begins an entry of the given bytes of points.
func Entry(bucket string, size int) func(*Attack, net.Conn) error {
	open, err := wire.AppendRequest(nil, &wire.Request{
		Op:     wire.OpStream,
		Bucket: []byte(bucket),
		Delay:  1,
	})
	if err != nil {
		return func(*Attack, net.Conn) error { return err }
	}
	head := wire.AppendFrame(nil, open)
	head = append(head, byte(wire.OpEntry))
	head = binary.BigEndian.AppendUint64(head, 1)
	head = append(head, 0, 2, 1, 'x')
	head = binary.BigEndian.AppendUint32(head, uint32(size))
	return send(head, []byte{1, 0, 0, 0, 0, 0, 0, 7}, size-1)
}

// Pickle begins a pickled list of size bytes.
func Pickle(size int) func(*Attack, net.Conn) error {
	return send(binary.BigEndian.AppendUint32(nil, uint32(size)), []byte{'('}, size-1)
}

// Body begins the body of an HTTP request.
func Body(path string, size int) func(*Attack, net.Conn) error {
	head := fmt.Sprintf("POST %s HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Dalmatiner: 1\r\nContent-Type: "+
		"text/plain\r\nContent-Length: %d\r\n\r\n", path, size)
	return send([]byte(head), []byte(" "), size-1)
}

// Silent says nothing.
func Silent(*Attack, net.Conn) error { return nil }

// Unread sends a request again and again and never reads an answer.
func Unread(request []byte) func(*Attack, net.Conn) error {
	return func(a *Attack, nc net.Conn) error {
		if t, ok := nc.(*net.TCPConn); ok {
			_ = t.SetReadBuffer(4096) // what it takes does not hold the answer
		}
		for {
			if _, err := nc.Write(request); err != nil {
				return err
			}
			select {
			case <-a.done:
				return nil
			case <-time.After(100 * time.Millisecond):
			}
		}
	}
}

// Get is a request for count slots of a metric nobody has sent.
func Get(bucket string, count uint32) []byte {
	return frame(&wire.Request{
		Op:     wire.OpGet,
		Bucket: []byte(bucket),
		Key:    []byte("\x01x"),
		Count:  count,
	})
}

// List is a request for all metrics of a bucket.
func List(bucket string) []byte {
	return frame(&wire.Request{Op: wire.OpList, Bucket: []byte(bucket)})
}

func frame(q *wire.Request) []byte {
	payload, err := wire.AppendRequest(nil, q)
	if err != nil {
		panic(err) // the names are those of a test
	}
	return wire.AppendFrame(nil, payload)
}

// Message begins a message of syslog that announces size bytes, and leaves out the last one.
func Message(size int) func(*Attack, net.Conn) error {
	head := fmt.Sprintf("%d <13>", size)
	return send([]byte(head), []byte("x"), size-5)
}

// Follow asks for a live tail of events and never reads it.
func Follow(bucket string) func(*Attack, net.Conn) error {
	return func(a *Attack, nc net.Conn) error {
		if t, ok := nc.(*net.TCPConn); ok {
			_ = t.SetReadBuffer(4096) // what it takes does not hold the answer
		}
		_, err := fmt.Fprintf(nc, "GET /events?bucket=%s&follow=1 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
			bucket)
		return err
	}
}
