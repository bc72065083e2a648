package graphite

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/host/loglimit"
	"dalmatiner/internal/ingest/ahead"
	"dalmatiner/internal/ingest/datagram"
	"dalmatiner/internal/model/account"
	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/model/metric"
	"dalmatiner/internal/store"
	"dalmatiner/internal/store/storetest"
	"dalmatiner/internal/store/tagstore"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const patience = time.Minute

type fixture struct {
	t      *testing.T
	store  *store.Store
	srv    *Server
	log    *logText
	text   string // addresses
	pickle string
	udp    string
}

// logText collects log lines.
type logText struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logText) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logText) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func newFixture(t *testing.T, change func(*store.Options, *Options)) *fixture {
	t.Helper()
	so := storetest.Options()
	f := &fixture{t: t, log: &logText{}}
	o := Options{Logger: slog.New(slog.NewTextHandler(f.log, nil))}
	if change != nil {
		change(&so, &o)
	}
	st := storetest.Open(t, so)
	o.Points, o.Memory, o.Account, f.store = st.Intake(), st.Memory(), st.Account(), st
	if o.Now == nil {
		o.Now = st.Now
	}
	if o.Tags == nil {
		o.Tags = tagstore.Tagger{Of: st.Tags()}
	}
	f.srv = New(o)
	text, pickle := f.listen(), f.listen()
	socks, err := datagram.Listen("127.0.0.1:0", 1, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	f.text, f.pickle, f.udp = text.Addr().String(), pickle.Addr().String(), socks.Addr().String()
	served := make(chan error, 3)
	go func() { served <- f.srv.ServeText(text) }()
	go func() { served <- f.srv.ServePickle(pickle) }()
	go func() { served <- f.srv.ServePackets(socks) }()
	t.Cleanup(func() {
		_, _, _ = text.Close(), pickle.Close(), socks.Close()
		f.srv.Shutdown()
		for range 3 {
			if err := <-served; err != nil {
				t.Error(err)
			}
		}
	})
	return f
}

func (f *fixture) listen() net.Listener {
	f.t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		f.t.Fatal(err)
	}
	return ln
}

func (f *fixture) dial(network, addr string) net.Conn {
	f.t.Helper()
	c, err := net.Dial(network, addr)
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { _ = c.Close() }) // it may be closed already
	if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
		f.t.Fatal(err)
	}
	return c
}

func (f *fixture) send(c net.Conn, data string) {
	f.t.Helper()
	if _, err := c.Write([]byte(data)); err != nil {
		f.t.Fatal(err)
	}
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
			f.t.Fatalf("not within %v: %s; refused: %v, account: %+v", patience, what,
				f.store.Account().Requests(), f.counts())
		case <-tick.C:
		}
	}
}

func (f *fixture) counts() account.Counts {
	info, err := f.store.BucketByName(defaultBucket)
	if err != nil {
		return account.Counts{}
	}
	return f.store.Account().Total(info.ID)
}

func (f *fixture) refused(r reason) uint64 {
	return f.store.Account().Requests()["graphite_"+r.String()]
}

// holds checks a slot of a series.
func (f *fixture) holds(slot int64, want uint64, parts ...string) {
	f.t.Helper()
	key, err := metric.Key(parts...)
	if err != nil {
		f.t.Fatal(err)
	}
	info, err := f.store.BucketByName(defaultBucket)
	if err != nil {
		f.t.Fatal(err)
	}
	var got [1]uint64
	if err := f.store.Read(context.Background(), info, key, slot, got[:]); err != nil {
		f.t.Fatal(err)
	}
	if got[0] != want {
		f.t.Errorf("%q slot %d holds %x, want %x", parts, slot, got[0], want)
	}
}

func TestTextCutIntoBytesIsTheSameText(t *testing.T) {
	f := newFixture(t, nil)
	now := time.Now().Unix()
	c := f.dial("tcp", f.text)
	for _, b := range fmt.Appendf(nil, "a.b 1 %d\n\r\n\nbad\na.b 2.5 %d\n", now, now+1) {
		f.send(c, string(b))
	}
	f.eventually("two points are stored", func() bool { c := f.counts(); return c.Accepted == 2 })
	f.holds(now, point.FromInt(1), "a", "b")
	f.holds(now+1, point.FromFloat(2.5), "a", "b")
	if f.refused(malformed) != 1 || f.srv.Stats().Lines.Load() != 3 {
		t.Errorf("%d of %d lines refused", f.refused(malformed), f.srv.Stats().Lines.Load())
	}
}

// In a bucket with timestamps a point gets the time of its line, also when the
// time is that of the line before.
func TestLinesGiveTheirTimeAsTheTimestamp(t *testing.T) {
	f := newFixture(t, nil)
	info, err := f.store.CreateBucket(buckets.Info{Name: defaultBucket, Resolution: 10_000, PPF: 60480,
		HPTS: true})
	if err != nil {
		t.Fatal(err)
	}
	slot := time.Now().Unix() / 10
	c := f.dial("tcp", f.text)
	f.send(c, fmt.Sprintf("a 1 %d\nb 2 %d\nc 3 %d.25\nd 4 -1\n", slot*10+7, slot*10+7, slot*10+7))
	f.eventually("four points are stored", func() bool { c := f.counts(); return c.Accepted == 4 })
	for name, want := range map[string]uint64{"a": 7e9, "b": 7e9, "c": 7.25e9} {
		key, err := metric.Key(name)
		if err != nil {
			t.Fatal(err)
		}
		var value, timestamp [1]uint64
		if err := f.store.ReadTimestamped(t.Context(), info, key, slot, value[:],
			timestamp[:]); err != nil {
			t.Fatal(err)
		}
		if got := timestamp[0] - uint64(slot)*10e9; value[0] == 0 || got != want {
			t.Errorf("%s holds %x %d ns into its slot, want %d", name, value[0], got, want)
		}
	}
}

func TestALineBeyondTheLimitIsPassedOver(t *testing.T) {
	f := newFixture(t, func(_ *store.Options, o *Options) { o.MaxLine = 100 })
	c := f.dial("tcp", f.text)
	long := strings.Repeat("x", 200)
	for range 3 { // longer than any buffer, so that it comes in pieces
		f.send(c, strings.Repeat(long, 4000))
	}
	f.send(c, "\na 1 -1\n"+long+" 1 -1\nb 1 -1\n"+strings.Repeat("y", 95)+" 1 -1\n")
	f.eventually("the lines between are stored", func() bool {
		c := f.counts()
		return c.Accepted == 3
	})
	if n := f.refused(lineTooLong); n != 2 {
		t.Errorf("%d lines are too long", n)
	}
}

func TestACutLineIsNoPoint(t *testing.T) {
	f := newFixture(t, nil)
	c := f.dial("tcp", f.text)
	f.send(c, "a 1 -1\na 15 1500000")
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	f.eventually("the cut line is counted", func() bool { return f.refused(lineCut) == 1 })
	if got := f.counts(); got.ReceivedPoints() != 1 {
		t.Errorf("account %+v", got)
	}
}

func TestTheLogIsASample(t *testing.T) {
	f := newFixture(t, nil)
	f.send(f.dial("tcp", f.text), strings.Repeat("a x -1\n", 10_000)+"a 1 -1\n")
	f.eventually("the good line is stored", func() bool { c := f.counts(); return c.Accepted == 1 })
	if n := f.refused(badValue); n != 10_000 {
		t.Errorf("%d lines are counted", n)
	}
	f.srv.Shutdown()
	log := f.log.String()
	lines := strings.Count(log, "\n")
	if lines < 1 || lines > 100 || !strings.Contains(log, `"\"a x -1\""`) ||
		!strings.Contains(log, "bad_value") {
		t.Errorf("%d log lines:\n%.1000s", lines, log)
	}
	sum := 0
	for line := range strings.Lines(log) {
		if strings.Contains(line, `msg="input refused"`) {
			sum++
		}
		if _, text, found := strings.Cut(line, "left_out="); found {
			var n int
			if _, err := fmt.Sscan(text, &n); err != nil {
				t.Fatal(err, line)
			}
			sum += n
		}
	}
	if sum != 10_000 {
		t.Errorf("the log tells of %d refusals", sum)
	}
}

func TestDatagramsHoldLines(t *testing.T) {
	f := newFixture(t, nil)
	c := f.dial("udp", f.udp)
	f.send(c, "a 1 -1\nnope\nb 2 -1\n")
	f.send(c, "c 3 -1") // no newline
	f.eventually("three points are stored", func() bool { c := f.counts(); return c.Accepted == 3 })
	if f.refused(malformed) != 1 {
		t.Errorf("refused: %v", f.store.Account().Requests())
	}
}

func framed(payload string) string {
	return string(binary.BigEndian.AppendUint32(nil, uint32(len(payload)))) + payload
}

func TestPickledFrames(t *testing.T) {
	f := newFixture(t, nil)
	c := f.dial("tcp", f.pickle)
	f.send(c, framed(pythonFrames[2])+framed("cos\nsystem\n.")+framed("K\x01."))
	f.send(c, framed(strings.Repeat("x", maxFrame+1)))
	// ten thousands of new series take their time
	long := func(n int) string { return fmt.Sprintf("n%0200d", n) }
	big := []byte("\x80\x02](")
	n := 0
	for ; len(big) < maxFrame-300; n++ {
		big = appendEntry(big, long(n), 1_500_000_000, 1)
	}
	f.send(c, framed(string(append(big, "e."...))))
	half := framed(pythonFrames[0])
	f.send(c, half+half[:20])
	f.eventually("all points are stored", func() bool {
		c := f.counts()
		return c.ReceivedPoints() == uint64(n+4)
	})
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	f.eventually("the cut frame is counted", func() bool { return f.refused(frameCut) == 1 })
	f.holds(1_500_000_000, point.FromFloat(1.5), "a", "b")
	f.holds(1_500_000_000, point.FromInt(7), "c", "é")
	f.holds(1_500_000_000, point.FromFloat(1), long(n-1))
	if f.refused(badPickle) != 2 || f.refused(frameTooLong) != 1 {
		t.Errorf("refused: %v", f.store.Account().Requests())
	}
}

func TestAnotherProtocolOnThePickleAddress(t *testing.T) {
	f := newFixture(t, nil)
	c := f.dial("tcp", f.pickle)
	f.send(c, "GET / HTTP/1.1\r\n\r\n")
	if n, err := c.Read(make([]byte, 1)); err == nil {
		t.Errorf("the connection goes on: %d bytes came", n)
	}
	f.eventually("it is counted", func() bool { return f.refused(frameTooLong) == 1 })
}

func TestABucketThatIsDeletedIsMadeAnew(t *testing.T) {
	f := newFixture(t, nil)
	c := f.dial("tcp", f.text)
	f.send(c, "a 1 -1\n")
	f.eventually("the first point is stored", func() bool { c := f.counts(); return c.Accepted == 1 })
	if err := f.store.DeleteBucket(defaultBucket); err != nil {
		t.Fatal(err)
	}
	f.send(c, "a 1 -1\n")
	f.eventually("the bucket is back with one point", func() bool {
		c := f.counts()
		return c.Accepted == 1
	})
}

func TestWithoutABucketEveryLineIsRefused(t *testing.T) {
	f := newFixture(t, func(so *store.Options, _ *Options) { so.UnknownBuckets.Create = false })
	c := f.dial("tcp", f.text)
	f.send(c, "a 1 -1\nnope\na 2 -1\n")
	f.eventually("both points are refused", func() bool {
		return f.store.Account().Requests()["graphite_unknown_bucket"] == 2
	})
	if _, err := f.store.CreateBucket(buckets.Info{Name: defaultBucket, Resolution: 60_000,
		PPF: 1000}); err != nil {
		t.Fatal(err)
	}
	f.send(c, "a 3 1500000030\n")
	f.eventually("the connection goes on",
		func() bool { c := f.counts(); return c.StoredPoints() == 1 })
	f.holds(25_000_000, point.FromInt(3), "a")
}

func TestConnectionsBeyondTheLimit(t *testing.T) {
	f := newFixture(t, func(_ *store.Options, o *Options) { o.MaxConnections = 1 })
	f.dial("tcp", f.text)
	f.eventually("the first connection is open", func() bool {
		return f.srv.Connections().Open() == 1
	})
	if n, err := f.dial("tcp", f.pickle).Read(make([]byte, 1)); err == nil {
		t.Errorf("a connection beyond the limit got %d bytes", n)
	}
	if f.refused(manyConns) != 1 || !strings.Contains(f.log.String(), "graphite.max_connections") {
		t.Errorf("refused: %v\n%s", f.store.Account().Requests(), f.log)
	}
}

func TestShutdownKeepsWhatWasReceived(t *testing.T) {
	f := newFixture(t, nil)
	c := f.dial("tcp", f.text)
	f.send(c, "a 1 -1\nb 2")
	f.eventually("the bytes arrived", func() bool { return f.srv.Stats().BytesRead.Load() == 10 })
	f.srv.Shutdown()
	if got := f.counts(); got.Accepted != 1 || f.refused(lineCut) != 1 {
		t.Errorf("after the shutdown the account is %+v, refused %v", got, f.store.Account().Requests())
	}
}

// TestClocksThatAreAhead: points that are refused as too far ahead are found by their sender, over
// every protocol, and the log names it once a minute.
func TestClocksThatAreAhead(t *testing.T) {
	var senders *ahead.Senders
	f := newFixture(t, func(_ *store.Options, o *Options) {
		senders = ahead.New(loglimit.New(o.Logger, time.Now))
		o.Ahead = senders
	})
	now := f.store.Now().Unix()
	lines := fmt.Sprintf("a 1 %d\nb 2 %d\nc 3 %d\nd 4 -1\n", now, now+7200, now+3600)
	f.send(f.dial("tcp", f.text), lines)
	f.send(f.dial("udp", f.udp), lines)
	found := func() ahead.Sender {
		if list := senders.List(); len(list) == 1 {
			return list[0]
		}
		return ahead.Sender{}
	}
	f.eventually("the sender is found", func() bool { return found().Count == 4 })
	if got := found(); got.Listener != "graphite" || !got.Addr.IsLoopback() ||
		got.Most < 2*time.Hour-time.Minute || got.Most > 2*time.Hour+time.Minute {
		t.Errorf("%+v", got)
	}
	if n := strings.Count(f.log.String(), "the clock of a sender is ahead"); n != 1 {
		t.Errorf("%d lines: %s", n, f.log)
	}
}
