package ddbtcp

import (
	"bytes"
	"io"
	"net"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"dalmatiner/internal/ingest/conns"
	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/wire"
)

// scripted is a client that has sent everything and takes every reply at once.
type scripted struct {
	net.Conn
	sent io.Reader
}

func (s scripted) Read(b []byte) (int, error)       { return s.sent.Read(b) }
func (s scripted) Write(b []byte) (int, error)      { return len(b), nil }
func (s scripted) SetReadDeadline(time.Time) error  { return nil }
func (s scripted) SetWriteDeadline(time.Time) error { return nil }
func (s scripted) Close() error                     { return nil }
func (s scripted) RemoteAddr() net.Addr             { return &net.TCPAddr{} }

// TestRequestsLetOthersRun: whoever is ready runs between two requests of a client
// that asks for more and more, and between two frames of a long reply.
func TestRequestsLetOthersRun(t *testing.T) {
	f := newFixture(t, nil)
	if _, err := f.store.CreateBucket(buckets.Info{Name: "b", Resolution: 1000,
		PPF: 4096}); err != nil {
		t.Fatal(err)
	}
	get := func(n uint32) []byte {
		b, err := wire.AppendRequest(nil, &wire.Request{Op: wire.OpGet, Bucket: []byte("b"),
			Key: []byte("\x01x"), Count: n})
		if err != nil {
			t.Fatal(err)
		}
		return wire.AppendFrame(nil, b)
	}
	const times = 1000
	for what, sent := range map[string][]byte{"requests": bytes.Repeat(get(1), times),
		"frames": get(times * 4096)} {
		func() {
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
			var ended atomic.Bool
			others := make(chan int)
			go func() {
				n := 0
				for ; !ended.Load(); n++ {
					runtime.Gosched()
				}
				others <- n
			}()
			served := make(chan struct{})
			f.srv.conns.Start(scripted{sent: bytes.NewReader(sent)}, func(c *conns.Conn) {
				f.srv.serve(c)
				close(served)
			})
			<-served
			ended.Store(true)
			if n := <-others; n < times/2 {
				t.Errorf("others ran %d times beside %d %s", n, times, what)
			}
		}()
	}
}
