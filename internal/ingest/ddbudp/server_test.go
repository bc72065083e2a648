package ddbudp

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"log/slog"
	"net"
	"testing"
	"time"

	"go.uber.org/goleak"

	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/ingest/datagram"
	"dalmatiner/internal/model/account"
	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/model/metric"
	"dalmatiner/internal/store"
	"dalmatiner/internal/store/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const patience = time.Minute

type fixture struct {
	t     *testing.T
	store *store.Store
	srv   *Server
	conn  net.Conn
}

func newFixture(t *testing.T, listeners int, autoCreate bool) *fixture {
	t.Helper()
	so := storetest.Options()
	so.UnknownBuckets.Create = autoCreate
	st := storetest.Open(t, so)
	socks, err := datagram.Listen("127.0.0.1:0", listeners, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	srv := New(Options{Points: st.Intake(), Account: st.Account(),
		Logger: slog.New(slog.DiscardHandler)}, socks)
	served := make(chan error, 1)
	go func() { served <- srv.Serve() }()
	c, err := net.Dial("udp", socks.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Close()
		if err := socks.Close(); err != nil {
			t.Error(err)
		}
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return &fixture{t: t, store: st, srv: srv, conn: c}
}

func (f *fixture) send(datagram []byte) {
	f.t.Helper()
	if _, err := f.conn.Write(datagram); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fixture) eventually(what string, ok func() bool) {
	f.t.Helper()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-deadline.C:
			f.t.Fatalf("not within %v: %s; refused: %v", patience, what, f.store.Account().Requests())
		case <-tick.C:
		}
	}
}

func (f *fixture) counts(bucket string) account.Counts {
	info, err := f.store.BucketByName(bucket)
	if err != nil {
		return account.Counts{}
	}
	return f.store.Account().Total(info.ID)
}

// appendPut begins a datagram, appendEntry adds to it.
func appendPut(bucket string) []byte {
	return append([]byte{opPut, byte(len(bucket))}, bucket...)
}

func appendEntry(dst []byte, slot uint64, key []byte, words ...uint64) []byte {
	dst = binary.BigEndian.AppendUint64(dst, slot)
	dst = binary.BigEndian.AppendUint16(dst, uint16(len(key)))
	dst = append(dst, key...)
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(words)*point.Size))
	for _, w := range words {
		dst = point.Append(dst, w)
	}
	return dst
}

var testKey, _ = metric.Key("my", "key")

// vector is a datagram by its bytes: bucket foo, slot 1000, my.key, 1 and 2.
const vector = "\x00\x03foo" + "\x00\x00\x00\x00\x00\x00\x03\xe8" + "\x00\x07\x02my\x03key" +
	"\x00\x00\x00\x10" + "\x01\x00\x00\x00\x00\x00\x00\x01" + "\x01\x00\x00\x00\x00\x00\x00\x02"

func TestADatagramIsStored(t *testing.T) {
	f := newFixture(t, 2, true)
	d := appendEntry(appendPut("foo"), 1000, testKey, point.FromInt(1), point.FromInt(2))
	if string(d) != vector {
		t.Fatalf("the test writes %x", d)
	}
	f.send(d)
	f.eventually("both points are stored", func() bool {
		c := f.counts("foo")
		return c.StoredPoints() == 2
	})
	info, err := f.store.BucketByName("foo")
	if err != nil {
		t.Fatal(err)
	}
	var got [3]uint64
	if err := f.store.Read(context.Background(), info, testKey, 1000, got[:]); err != nil {
		t.Fatal(err)
	}
	if want := [3]uint64{point.FromInt(1), point.FromInt(2), 0}; got != want {
		t.Errorf("slots hold %x, want %x", got, want)
	}
}

func TestDatagramsThatAreRefused(t *testing.T) {
	f := newFixture(t, 1, true)
	n := uint64(0)
	for i := range len(vector) {
		if i == len("\x00\x03foo") {
			continue // a datagram without entries is whole
		}
		f.send([]byte(vector[:i]))
		n++
	}
	for _, change := range []struct {
		at   int
		to   byte
		what string
	}{
		{1, 0, "no bucket"}, {14, 0, "no metric"}, {25, 17, "half a point"}, {25, 0, "no points"},
		{22, 255, "more than 4 GB"},
	} {
		d := []byte(vector)
		d[change.at] = change.to
		if _, _, err := parse(d); err == nil {
			t.Errorf("%s is no error", change.what)
		}
		f.send(d)
		n++
	}
	f.send([]byte("\x05\x03foo"))
	f.eventually("all are counted", func() bool {
		r := f.store.Account().Requests()
		return r["udp_malformed"] == n && r["udp_unknown_opcode"] == 1
	})
	if got := f.counts("foo"); got.ReceivedPoints() != 0 {
		t.Errorf("the account holds %+v", got)
	}
}

func TestAnUnknownBucketIsRefused(t *testing.T) {
	f := newFixture(t, 1, false)
	f.send([]byte(vector))
	f.eventually("it is counted", func() bool {
		return f.store.Account().Requests()["udp_unknown_bucket"] == 1
	})
	if _, err := f.store.CreateBucket(buckets.Info{Name: "foo", Resolution: 1000,
		PPF: 1000}); err != nil {
		t.Fatal(err)
	}
	f.send([]byte(vector))
	f.eventually("the listener goes on",
		func() bool { c := f.counts("foo"); return c.StoredPoints() == 2 })
}

// TestMoreBucketsThanSessions: every bucket gets its points, also those whose
// session had to make room.
func TestMoreBucketsThanSessions(t *testing.T) {
	f := newFixture(t, 1, true)
	const buckets = maxBuckets + 10
	for round := range uint64(2) {
		for i := range buckets {
			f.send(appendEntry(appendPut(fmt.Sprint("b", i)), 1000+round, testKey, point.FromInt(1)))
			name := fmt.Sprint("b", i)
			f.eventually("the point is stored", func() bool {
				c := f.counts(name)
				return c.StoredPoints() == round+1
			})
		}
	}
}

func FuzzDatagram(f *testing.F) {
	f.Add([]byte(vector))
	f.Add(appendEntry(appendEntry(appendPut("b"), 1, testKey, 5), 2, testKey, 6, 7))
	f.Add([]byte("\x00\x01b\x00\x00\x00\x00\x00\x00\x00\x01\xff\xff"))
	f.Fuzz(func(t *testing.T, src []byte) {
		bucket, entries, err := parse(src)
		if err != nil {
			return
		}
		again := appendPut(string(bucket))
		for len(entries) > 0 {
			var e entry
			e, entries = nextEntry(entries)
			var words []uint64
			for d := e.data; len(d) > 0; d = d[point.Size:] {
				words = append(words, point.Get(d))
			}
			again = appendEntry(again, e.slot, e.key, words...)
		}
		if !bytes.Equal(again, src) {
			t.Fatalf("%x comes back as %x", src, again)
		}
	})
}
