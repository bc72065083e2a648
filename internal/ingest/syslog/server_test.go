package syslog

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"dalmatiner/internal/host/loglimit"
	"dalmatiner/internal/host/memory"
	"dalmatiner/internal/ingest/ahead"
	"dalmatiner/internal/ingest/datagram"
	"dalmatiner/internal/model/account"
	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/model/term"
	"dalmatiner/internal/store/events"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// memoryEvents keeps what was written.
type memoryEvents struct {
	mu   sync.Mutex
	got  []string
	fail error
}

func (e *memoryEvents) EnsureBucket(name string, _ buckets.Form) (buckets.Info, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return buckets.Info{Name: name}, e.fail
}

func (e *memoryEvents) Write(bucket string, list []events.Event) (events.Written, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, ev := range list {
		if _, err := term.Normalize(ev.Body); err != nil {
			return events.Written{}, err
		}
		if ev.Time == 0 {
			ev.Time = now.UnixNano()
		}
		message, _ := term.Root(ev.Body).Field("message")
		text, _ := message.Text()
		e.got = append(e.got, fmt.Sprintf("%s %d %s", bucket, ev.Time, text))
	}
	return events.Written{}, nil
}

func (e *memoryEvents) messages() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.got)
}

func (e *memoryEvents) setFail(err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.fail = err
}

type fixture struct {
	*testing.T
	s      *Server
	acc    *account.Account
	events *memoryEvents
	ln     net.Listener
	socks  *datagram.Sockets
	log    *lines
}

// lines are those of a log.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) count(part string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text.String(), part)
}

func start(t *testing.T) *fixture {
	return startWith(t, Options{Memory: memory.New(0, time.Now, nil)})
}

// startWith starts a server with some options.
func startWith(t *testing.T, o Options) *fixture {
	f := &fixture{T: t, acc: account.New(), events: &memoryEvents{}, log: new(lines)}
	o.Events, o.Buckets, o.Account = f.events, f.events, f.acc
	o.Now, o.Bucket, o.Logger = func() time.Time {
		return now
	}, "logs", slog.New(slog.NewTextHandler(f.log, nil))
	o.Ahead = ahead.New(loglimit.New(o.Logger, time.Now))
	f.s = New(o)
	var err error
	if f.ln, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	if f.socks, err = datagram.Listen("127.0.0.1:0", 1, 1<<20); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() { _ = f.s.Serve(f.ln) })
	wg.Go(func() { _ = f.s.ServePackets(f.socks) })
	t.Cleanup(func() {
		_ = f.ln.Close()
		_ = f.socks.Close()
		f.s.Shutdown()
		wg.Wait()
	})
	return f
}

func (f *fixture) send(network, addr string, data ...string) {
	f.Helper()
	nc, err := net.Dial(network, addr)
	if err != nil {
		f.Fatal(err)
	}
	for _, d := range data {
		if _, err := io.Copy(nc, strings.NewReader(d)); err != nil {
			f.Fatal(err)
		}
	}
	if err := nc.Close(); err != nil {
		f.Fatal(err)
	}
}

func (f *fixture) eventually(what string, ok func() bool) {
	f.Helper()
	for end := time.Now().Add(10 * time.Second); !ok(); runtime.Gosched() {
		if time.Now().After(end) {
			f.Fatalf("never: %s; got %.300q, refused %v", what, f.events.messages(), f.acc.Requests())
		}
	}
}

func (f *fixture) expect(want ...string) {
	f.Helper()
	f.eventually(fmt.Sprintf("%.300q", want), func() bool {
		return slices.Equal(f.events.messages(), want)
	})
}

func TestOverTCP(t *testing.T) {
	f := start(t)
	f.send("tcp", f.ln.Addr().String(), "<13>Jan  1 00:00:00 h a: one\n14 <13>h a: tw",
		"o\nx<13>three")
	f.expect("logs 1767225600000000000 one", "logs 1767225630000000000 h a: two\nx",
		"logs 1767225630000000000 three")
}

func TestOverUDP(t *testing.T) {
	f := start(t)
	f.send("udp", f.socks.Addr().String(), "<13>1 2026-01-01T00:00:00.000000001Z - - - - - one\ntwo\n")
	f.expect("logs 1767225600000000001 one\ntwo")
}

func TestLargeMessages(t *testing.T) {
	f := start(t)
	long := strings.Repeat("x", MaxMessage)
	f.send("tcp", f.ln.Addr().String(), long+"\n", "<13>"+long+"\n",
		fmt.Sprintf("%d %s", len(long)+5, "<13>a"+long), "<13>last\n")
	at := "logs 1767225630000000000 "
	f.expect(at+long, at+"last")
	if got := f.acc.Requests()["syslog_too_long"]; got != 2 {
		t.Errorf("%d messages are counted as too long", got)
	}
	if got := f.s.Stats().Messages.Load(); got != 4 {
		t.Errorf("%d messages are counted", got)
	}
}

func TestCutAndBadFraming(t *testing.T) {
	f := start(t)
	f.send("tcp", f.ln.Addr().String(), "100 <13>cut")
	f.eventually("the cut message is counted", func() bool {
		return f.acc.Requests()["syslog_cut"] == 1
	})
	f.send("tcp", f.ln.Addr().String(), "<13>good\n2026x no framing")
	f.eventually("it is counted", func() bool { return f.acc.Requests()["syslog_bad_framing"] == 1 })
	f.expect("logs 1767225630000000000 good")
	f.eventually("all connections are closed", func() bool { return f.s.Connections().Open() == 0 })
}

// TestALineThatBeginsWithADate: it is a message, even where the connection ends within it.
func TestALineThatBeginsWithADate(t *testing.T) {
	f := start(t)
	f.send("tcp", f.ln.Addr().String(), "2026-01-01 00:00:00 one\n2026 Jan  1 two\n01:00:00 three")
	at := "logs 1767225630000000000 "
	f.expect(at+"2026-01-01 00:00:00 one", at+"2026 Jan  1 two", at+"01:00:00 three")
	if got := f.acc.Requests(); len(got) > 0 {
		t.Errorf("refused: %v", got)
	}
}

// TestAClockThatIsAhead: its messages have the time of arrival, are counted, and the log names the
// sender once a minute.
func TestAClockThatIsAhead(t *testing.T) {
	f := start(t)
	const ahead = "<13>1 2027-01-01T00:00:00Z h a - - - x\n"
	const zone, soon = "<13>Jan  1 02:00:00 h a: x\n", "<13>Jan  1 00:10:00 h a: y\n"
	f.send("tcp", f.ln.Addr().String(), zone+ahead+soon)
	arrival := "logs 1767225630000000000 "
	f.expect(arrival+"x", arrival+"x", "logs 1767226200000000000 y")
	if got := f.s.Stats().Ahead.Load(); got != 2 {
		t.Errorf("%d messages are counted", got)
	}
	if got := f.acc.Requests(); len(got) > 0 {
		t.Errorf("refused: %v", got)
	}
	const line = "the clock of a sender is ahead"
	f.eventually("the log names the sender", func() bool { return f.log.count(line) == 1 })
	if f.log.count("peer=127.0.0.1 ") != 1 || f.log.count("sent=2026-01-01T02:00:00") != 1 {
		t.Errorf("the log has %s", &f.log.text)
	}
}

func TestABucketThatIsNotThere(t *testing.T) {
	f := start(t)
	f.events.setFail(fmt.Errorf("bucket logs: %w", buckets.ErrUnknown))
	f.send("udp", f.socks.Addr().String(), "<13>lost")
	f.eventually("it is counted", func() bool {
		return f.acc.Requests()["syslog_unknown_bucket"] == 1
	})
	f.events.setFail(nil)
	f.send("udp", f.socks.Addr().String(), "<13>kept")
	f.expect("logs 1767225630000000000 kept")
}

// TestAFailedStoreEndsTheConnection: a sender must not believe that anybody listens.
func TestAFailedStoreEndsTheConnection(t *testing.T) {
	f := start(t)
	f.events.setFail(errors.New("input/output error"))
	nc, err := net.Dial("tcp", f.ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = nc.Close() }()
	if _, err := nc.Write(bytes.Repeat([]byte("<13>x\n"), 100)); err != nil {
		t.Fatal(err)
	}
	if _, err := nc.Read(make([]byte, 1)); err == nil {
		t.Error("the connection is open")
	}
}

// TestMemoryOfUnfinishedMessages: the buffers of messages that are not whole are counted and
// leased, connections without progress make room, and everything is given back.
func TestMemoryOfUnfinishedMessages(t *testing.T) {
	const limit = 16 << 20 // of which buffers and leases have 1 MiB each
	began := time.Now()
	budget := memory.New(limit, func() time.Time { return began.Add(100 * time.Since(began)) }, nil)
	f := startWith(t, Options{Memory: budget, InputStall: time.Hour})
	var open []net.Conn
	for range 40 { // 80 KiB each
		nc, err := net.Dial("tcp", f.ln.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		open = append(open, nc)
		if _, err := fmt.Fprintf(nc, "60000 <13>%s", strings.Repeat("x", 50_000)); err != nil {
			t.Fatal(err)
		}
	}
	f.eventually("a connection without progress is cut off", func() bool {
		budget.Sweep()
		for _, p := range budget.Pools() {
			if p.Name == "syslog-unfinished" && p.Use > limit/16 {
				t.Fatalf("%d bytes are lent", p.Use)
			}
		}
		return f.acc.Requests()["syslog_cut_pressure"] > 0
	})
	for _, nc := range open {
		_ = nc.Close() // the node may have done so
	}
	f.eventually("all connections are closed, and everything is given back", func() bool {
		for _, p := range budget.Pools() {
			if strings.HasPrefix(p.Name, "syslog-") && p.Name != "syslog-batches" && p.Use != 0 {
				return false
			}
		}
		return f.s.Connections().Open() == 0
	})
	long := strings.Repeat("y", 60_000)
	f.send("tcp", f.ln.Addr().String(), fmt.Sprintf("%d <13>%s", len(long)+4, long), "<13>short\n")
	f.eventually("a good sender is served", func() bool { return len(f.events.messages()) == 2 })
}

// TestBatchesAreShared: more senders than there are batches wait while the store is slow, and all
// of their messages come.
func TestBatchesAreShared(t *testing.T) {
	f := start(t)
	f.events.mu.Lock() // the store takes nothing
	var open []net.Conn
	for i := range 3 * maxBatches {
		nc, err := net.Dial("tcp", f.ln.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		open = append(open, nc)
		if _, err := fmt.Fprintf(nc, "<13>%d\n", i); err != nil {
			t.Fatal(err)
		}
	}
	for end := time.Now().Add(10 * time.Second); len(f.s.batches.free) > 0; runtime.Gosched() {
		if time.Now().After(end) {
			t.Fatalf("%d batches are free", len(f.s.batches.free))
		}
	}
	f.events.mu.Unlock()
	f.eventually("all messages are stored", func() bool {
		return len(f.events.messages()) == len(open)
	})
	for _, nc := range open {
		_ = nc.Close() // nobody reads from it
	}
	f.eventually("the batches are back", func() bool { return len(f.s.batches.free) == maxBatches })
	if n := f.s.batches.bytes.Load(); n <= 0 || n > maxBatches<<20 {
		t.Errorf("%d bytes of batches are counted", n)
	}
}
