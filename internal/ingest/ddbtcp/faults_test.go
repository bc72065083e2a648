package ddbtcp

import (
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/ingest/conns"
	"dalmatiner/internal/model/account"
	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/model/metric"
	"dalmatiner/internal/store"
	"dalmatiner/internal/store/storetest"
	"dalmatiner/internal/wire"
	"dalmatiner/internal/write"
	"dalmatiner/internal/write/intake"
)

// hookedConn calls before ahead of the first SetReadDeadline that the hook
// wants.
type hookedConn struct {
	net.Conn
	once   sync.Once
	wants  func(time.Time) bool
	before func()
}

func (c *hookedConn) SetReadDeadline(t time.Time) error {
	if c.wants(t) {
		c.once.Do(c.before)
	}
	return c.Conn.SetReadDeadline(t)
}

// A shutdown ends a connection whatever deadline it is just setting.
func TestShutdownIsNotOvertakenByADeadline(t *testing.T) {
	for name, wants := range map[string]func(time.Time) bool{
		"to commit":          func(d time.Time) bool { return !d.IsZero() },
		"none, after a rest": func(d time.Time) bool { return d.IsZero() },
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, nil)
			here, there := net.Pipe()
			ended := make(chan struct{})
			told := make(chan struct{})
			hooked := &hookedConn{Conn: there, wants: wants, before: func() {
				go func() {
					f.srv.Shutdown()
					close(ended)
				}()
				<-told
			}}
			f.srv.conns.Start(&toldConn{hookedConn: hooked, told: told}, f.srv.serve)
			// A delay of one slot: the points are committed after a second.
			msg := streamOpen("b")
			msg = append(msg, entry(testKey, uint64(time.Now().Unix()), point.FromInt(1))...)
			if _, err := here.Write(msg); err != nil {
				t.Fatal(err)
			}
			select {
			case <-ended:
			case <-time.After(patience):
				t.Fatal("the shutdown waits for a connection that waits for ever")
			}
			_ = here.Close()
		})
	}
}

// toldConn says when the shutdown has set its deadline.
type toldConn struct {
	*hookedConn
	told chan struct{}
	once sync.Once
}

func (c *toldConn) SetReadDeadline(t time.Time) error {
	if t.Equal(conns.LongAgo) {
		defer c.once.Do(func() { close(c.told) })
		return c.hookedConn.Conn.SetReadDeadline(t)
	}
	return c.hookedConn.SetReadDeadline(t)
}

func entry(key []byte, slot uint64, words ...uint64) []byte {
	return wire.AppendEntry(nil, key, slot, words...)
}

// When the log fails, an acknowledged stream ends: its sender must not wait for
// an answer that cannot come.
func TestAFailedLogEndsAcknowledgedStreams(t *testing.T) {
	var broken atomic.Bool
	fs := errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
		if broken.Load() && strings.Contains(op.Path, "/wal") &&
			(op.Kind == errorfs.OpFileSync || op.Kind == errorfs.OpFileSyncData) {
			return errorfs.ErrInjected
		}
		return nil
	}))
	so := storetest.Options()
	so.FS = fs
	st, err := store.Open(so)
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{t: t, store: st,
		srv: New(Options{Points: st.Intake(), Store: st, Logger: so.Logger})}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f.addr = ln.Addr().String()
	served := make(chan error, 1)
	go func() { served <- f.srv.Serve(ln) }()
	c := f.dial()
	if _, err := st.EnsureBucket("b"); err != nil { // to create it syncs the log as well
		t.Fatal(err)
	}
	payload, err := wire.AppendRequest(nil, &wire.Request{Op: wire.OpAckStream, Bucket: []byte("b"),
		Delay: 1})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Write(wire.AppendFrame(nil, payload)); err != nil {
		t.Fatal(err)
	}
	broken.Store(true)
	msg := entry(testKey, uint64(time.Now().Unix()), point.FromInt(1))
	if _, err := c.Write(wire.AppendFlushAck(msg, 1)); err != nil {
		t.Fatal(err)
	}
	if reply, err := io.ReadAll(c); err != nil || len(reply) != 0 {
		t.Errorf("the connection gave %x, %v; want its end without an answer", reply, err)
	}
	_ = ln.Close()
	f.srv.Shutdown()
	if err := <-served; err != nil {
		t.Error(err)
	}
	if st.Close() == nil {
		t.Error("closing the store is no error after its log failed")
	}
}

// wantingListener fails a few times as one without file descriptors does.
type wantingListener struct {
	net.Listener
	left atomic.Int32
}

type wanting struct{ error }

func (wanting) Temporary() bool { return true }

func (l *wantingListener) Accept() (net.Conn, error) {
	if l.left.Add(-1) >= 0 {
		return nil, wanting{errors.New("too many open files")}
	}
	return l.Listener.Accept()
}

func TestAcceptGoesOnAfterAWant(t *testing.T) {
	f := newFixture(t, nil)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &wantingListener{Listener: ln}
	w.left.Store(3)
	served := make(chan error, 1)
	go func() { served <- f.srv.Serve(w) }()
	f.addr = ln.Addr().String()
	c := f.dial()
	if _, err := c.Write(wire.AppendFrame(nil, []byte{byte(wire.OpBuckets)})); err != nil {
		t.Fatal(err)
	}
	if n, err := c.Read(make([]byte, 1)); n != 1 || err != nil {
		t.Errorf("no answer: %v", err)
	}
	_ = ln.Close()
	if err := <-served; err != nil {
		t.Error(err)
	}
}

// FuzzStream feeds any bytes, in pieces of any size, to a stream: nothing
// panics, and the session has received what a second parser counts (I3).
func FuzzStream(f *testing.F) {
	st := storetest.Open(f, storetest.Options())
	plain, err := st.EnsureBucket("b")
	if err != nil {
		f.Fatal(err)
	}
	timestamped, err := st.CreateBucket(buckets.Info{Name: "h", Resolution: 1000, PPF: 1, HPTS: true})
	if err != nil {
		f.Fatal(err)
	}
	now := uint64(time.Now().Unix())
	other, _ := metric.Key("other")
	f.Add(uint8(1), false, entry(testKey, now, point.FromInt(1), point.Unset, 3<<56,
		point.FromFloat(2)))
	f.Add(uint8(7), false,
		append(entry(nil, now, 1, 2), entry(other, 1<<64-1, point.FromInt(3), point.FromInt(4))...))
	f.Add(uint8(200), false,
		wire.AppendFlushAck(wire.AppendFlush(entry(other, now+1, point.FromInt(3))), 9))
	f.Add(uint8(9), true,
		wire.AppendTimestampedEntry(nil, testKey, now,
			wire.Timestamped{Word: point.FromInt(1), Time: now * 1e9}, wire.Timestamped{Time: 5}))
	f.Add(uint8(3), true, wire.AppendTimestampedBatchPoint(wire.AppendBatchStart(nil, now), testKey,
		wire.Timestamped{Word: 3 << 56}))
	f.Add(uint8(3), true, wire.AppendTimestampedEntry(nil, nil, 1<<64-1, wire.Timestamped{Word: 1},
		wire.Timestamped{Word: point.FromFloat(1)}))
	f.Fuzz(func(t *testing.T, size uint8, hpts bool, stream []byte) {
		var received uint64
		report := func(_ write.Token, c account.Counts) { received += c.ReceivedPoints() }
		info := plain
		if hpts {
			info = timestamped
		}
		session, err := st.Intake().Open(info, write.Options{Timestamps: hpts, Report: report})
		if err != nil {
			t.Fatal(err)
		}
		open := &wire.Request{Op: wire.OpStream2, HPTS: hpts}
		p := wire.NewStreamParser(open, wire.MinStreamLimit)
		for rest, end := stream, 0; end < len(rest); {
			end = min(len(rest), end+1+int(size))
			n, err := p.Parse(rest[:end], session, noFlush{})
			if err != nil {
				break
			}
			rest, end = rest[n:], end-n
		}
		if err := session.Close(); err != nil {
			t.Fatal(err)
		}
		count := counter{size: point.Size}
		if hpts {
			count.size = intake.TimestampedSize
		}
		_, _ = wire.NewStreamParser(open, wire.MinStreamLimit).Parse(stream, &count, &count)
		if received != count.points {
			t.Fatalf("%d points received, the stream has %d", received, count.points)
		}
	})
}

// noFlush is flushes that do nothing.
type noFlush struct{}

func (noFlush) Flush()          {}
func (noFlush) FlushAck(uint64) {}

type counter struct {
	wire.PointByPoint
	size   int // bytes of a point
	points uint64
}

func (c *counter) Point([]byte, uint64, uint64)           { c.points++ }
func (c *counter) Points(_ []byte, _ uint64, data []byte) { c.points += uint64(len(data) / c.size) }
func (c *counter) Flush()                                 {}
func (c *counter) FlushAck(uint64)                        {}
