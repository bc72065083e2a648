package ddbtcp

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"dalmatiner/client"
	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/disk/wal"
	"dalmatiner/internal/host/memory"
	"dalmatiner/internal/model/account"
	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/model/metric"
	"dalmatiner/internal/store"
	"dalmatiner/internal/store/storetest"
	"dalmatiner/internal/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const patience = time.Minute

type fixture struct {
	t     *testing.T
	store *store.Store
	srv   *Server
	addr  string
}

func newFixture(t *testing.T, change func(*store.Options, *Options)) *fixture {
	so := storetest.Options()
	so.WALSync = wal.Always
	o := Options{Logger: slog.New(slog.DiscardHandler)}
	if change != nil {
		change(&so, &o)
	}
	st := storetest.Open(t, so)
	if o.Store = st; o.Points == nil {
		o.Points = st.Intake()
	}
	srv := New(o)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- srv.Serve(ln) }()
	t.Cleanup(func() {
		_ = ln.Close()
		srv.Shutdown()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return &fixture{t: t, store: st, srv: srv, addr: ln.Addr().String()}
}

// openAcked opens an acknowledged stream into bucket b.
func (f *fixture) openAcked() *client.Stream {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	f.t.Cleanup(cancel)
	c, err := client.Dial(ctx, f.addr)
	if err != nil {
		f.t.Fatal(err)
	}
	s, err := c.OpenAckStream("b")
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { _ = s.Close() })
	return s
}

func (f *fixture) dial() net.Conn {
	f.t.Helper()
	c, err := net.Dial("tcp", f.addr)
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { _ = c.Close() })
	if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
		f.t.Fatal(err)
	}
	return c
}

func (f *fixture) get(key []byte, slot int64, n int) []uint64 {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	c, err := client.Dial(ctx, f.addr)
	if err != nil {
		f.t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	words, err := c.Get(ctx, "b", key, slot, n)
	if err != nil {
		f.t.Fatal(err)
	}
	return words
}

// eventually waits for a condition that another goroutine brings about.
func (f *fixture) eventually(what string, ok func() bool) {
	f.t.Helper()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-deadline.C:
			f.t.Fatalf("not within %v: %s", patience, what)
		case <-tick.C:
		}
	}
}

var testKey, _ = metric.Key("my", "key")

func streamOpen(bucket string) []byte {
	payload, err := wire.AppendRequest(nil, &wire.Request{Op: wire.OpStream, Bucket: []byte(bucket),
		Delay: 1})
	if err != nil {
		panic(err)
	}
	return wire.AppendFrame(nil, payload)
}

func (f *fixture) counts() account.Counts {
	info, err := f.store.BucketByName("b")
	if err != nil {
		return account.Counts{}
	}
	return f.store.Account().Total(info.ID)
}

func TestAStreamCutIntoBytesIsTheSameStream(t *testing.T) {
	f := newFixture(t, nil)
	slot := time.Now().Unix()
	msg := streamOpen("b")
	msg = wire.AppendEntry(msg, testKey, uint64(slot), point.FromInt(1), point.FromInt(2))
	msg = wire.AppendFlush(msg)
	msg = wire.AppendBatchStart(msg, uint64(slot+2))
	msg = wire.AppendBatchPoint(msg, testKey, point.FromInt(3))
	msg = wire.AppendBatchEnd(msg)
	msg = wire.AppendFlush(msg)
	c := f.dial()
	for i := range msg {
		if _, err := c.Write(msg[i : i+1]); err != nil {
			t.Fatal(err)
		}
	}
	f.eventually("three points are stored",
		func() bool { c := f.counts(); return c.StoredPoints() == 3 })
	for i, w := range f.get(testKey, slot, 3) {
		if w != point.FromInt(int64(i)+1) {
			t.Errorf("slot %d holds %x", i, w)
		}
	}
}

func TestPointsWithoutAFlushAreStoredAfterTheDelay(t *testing.T) {
	f := newFixture(t, nil)
	c := f.dial()
	msg := wire.AppendEntry(streamOpen("b"), testKey, uint64(time.Now().Unix()), point.FromInt(1))
	if _, err := c.Write(msg); err != nil {
		t.Fatal(err)
	}
	f.eventually("the point is stored", func() bool { c := f.counts(); return c.Accepted == 1 })
}

func TestShutdownKeepsWhatWasReceived(t *testing.T) {
	f := newFixture(t, nil)
	c := f.dial()
	if _, err := c.Write(wire.AppendEntry(streamOpen("b"), testKey, 100,
		point.FromInt(1))); err != nil {
		t.Fatal(err)
	}
	f.eventually("the bytes arrived", func() bool { return f.srv.Stats().BytesRead.Load() > 20 })
	f.srv.Shutdown()
	if got := f.counts(); got.Accepted != 1 {
		t.Errorf("after the shutdown the account is %+v", got)
	}
}

func TestAckCoversWhatCameBefore(t *testing.T) {
	f := newFixture(t, nil)
	s := f.openAcked()
	slot := time.Now().Unix()
	for i := range int64(3) {
		if err := s.Point(testKey, slot+i, point.FromInt(i)); err != nil {
			t.Fatal(err)
		}
		if err := s.Point(testKey, slot+1_000_000, point.FromInt(i)); err != nil { // too far ahead
			t.Fatal(err)
		}
		if _, err := s.FlushAck(); err != nil {
			t.Fatal(err)
		}
	}
	for range 3 {
		ack, err := s.ReadAck()
		if err != nil {
			t.Fatal(err)
		}
		if ack.Received != 2 || ack.Refused != 1 {
			t.Errorf("ack %+v, want 2 received and 1 refused", ack)
		}
	}
	if got := f.counts(); got.Accepted != 3 || got.Refused[account.Future] != 3 {
		t.Errorf("account %+v", got)
	}
}

// request sends one frame and returns what comes back until the server closes.
func (f *fixture) request(payload []byte) string {
	f.t.Helper()
	c := f.dial()
	if _, err := c.Write(wire.AppendFrame(nil, payload)); err != nil {
		f.t.Fatal(err)
	}
	if err := c.(*net.TCPConn).CloseWrite(); err != nil {
		f.t.Fatal(err)
	}
	reply, err := io.ReadAll(c)
	if err != nil {
		f.t.Fatal(err)
	}
	return string(reply)
}

func TestRefusalsNameTheThing(t *testing.T) {
	f := newFixture(t, func(so *store.Options, o *Options) {
		so.UnknownBuckets.Create = false
		o.MaxFrame = 1000
	})
	check := func(name string, payload []byte, reason string, texts ...string) {
		t.Helper()
		reply := f.request(payload)
		if len(reply) < 6 || reply[4] != 0xff {
			t.Errorf("%s: reply %q is no ERROR", name, reply)
			return
		}
		for _, text := range texts {
			if !strings.Contains(reply, text) {
				t.Errorf("%s: %q does not say %q", name, reply[6:], text)
			}
		}
		if f.store.Account().Requests()[reason] == 0 {
			t.Errorf("%s: not counted under %s: %v", name, reason, f.store.Account().Requests())
		}
	}
	check("stream", []byte("\x04\x05\x01b"), "unknown_bucket", "'b'", "ddb admin buckets create")
	check("list", []byte("\x01\x01b"), "unknown_bucket", "'b'")
	check("truncated get", []byte("\x02\x01b\x00\x05ab"), "malformed")
	check("oversize frame", bytes.Repeat([]byte{1}, 1001), "too_large", "1000")
	check("events", []byte("\x0d\x01bxx"), "unsupported")
	check("unknown opcode", []byte{99}, "unknown_opcode", "99")
	check("bucket without resolution", append([]byte("\x08\x01c"), make([]byte, 24)...),
		"invalid_bucket", "resolution")
}

// A list that does not fit is refused with the numbers, and charges nothing
// afterwards.
func TestListsAreChargedForMemory(t *testing.T) {
	b := memory.New(1<<30, time.Now, nil)
	leases := b.NewLeases(memory.LeaseOptions{Name: "queries", Holds: "lists", Limit: 1 << 20,
		Small: 1 << 20})
	f := newFixture(t, func(_ *store.Options, o *Options) { o.Memory = leases })
	c := f.dial()
	msg := streamOpen("b")
	for i := range 20_000 {
		long, err := metric.Key(fmt.Sprintf("%050d", i))
		if err != nil {
			t.Fatal(err)
		}
		msg = wire.AppendEntry(msg, long, uint64(time.Now().Unix()), point.FromInt(1))
	}
	if _, err := c.Write(msg); err != nil {
		t.Fatal(err)
	}
	f.eventually("the points are stored",
		func() bool { c := f.counts(); return c.StoredPoints() == 20_000 })
	if reply := f.request([]byte("\x01\x01b")); len(reply) < 6 || reply[4] != 0xff ||
		!strings.Contains(reply, "memory.limit") {
		t.Errorf("a list of a megabyte gets %d bytes: %.100q", len(reply), reply)
	}
	if f.store.Account().Requests()["memory"] != 1 || b.Pools()[0].Use != 0 {
		t.Errorf("counted %v, %d bytes are charged", f.store.Account().Requests(), b.Pools()[0].Use)
	}
}

func TestTooManyConnectionsAreToldSo(t *testing.T) {
	f := newFixture(t, func(_ *store.Options, o *Options) { o.MaxConnections = 1 })
	f.dial()
	f.eventually("the first connection is open", func() bool {
		return f.srv.Connections().Open() == 1
	})
	reply, err := io.ReadAll(f.dial())
	if err != nil || !strings.Contains(string(reply), "tcp_max_connections") {
		t.Errorf("the second connection got %q, %v", reply, err)
	}
}

func TestGetIsCutIntoBoundedFrames(t *testing.T) {
	f := newFixture(t, nil)
	if _, err := f.store.CreateBucket(buckets.Info{Name: "b", Resolution: 1000,
		PPF: 100_000}); err != nil {
		t.Fatal(err)
	}
	payload, err := wire.AppendRequest(nil, &wire.Request{Op: wire.OpGet, Bucket: []byte("b"),
		Key: testKey, Slot: 99_000, Count: 150_000})
	if err != nil {
		t.Fatal(err)
	}
	reply := []byte(f.request(payload))
	var sizes []uint64
	for len(reply) > 0 {
		frame, rest, err := wire.ParseFrame(reply, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		g, err := wire.ParseGetFrame(frame)
		if err != nil {
			t.Fatal(err)
		}
		if g.Kind == wire.GetData {
			sizes = append(sizes, g.Padding)
		}
		reply = rest
	}
	// Cut at multiples of the points per file and at 65,536 slots.
	want := []uint64{1000, 65536, 34464, 49000}
	if len(sizes) != len(want) {
		t.Fatalf("frames of %v slots, want %v", sizes, want)
	}
	for i := range want {
		if sizes[i] != want[i] {
			t.Fatalf("frames of %v slots, want %v", sizes, want)
		}
	}
}
