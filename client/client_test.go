package client

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/wire"
)

func TestBuckets(t *testing.T) {
	ctx := context.Background()
	c := startServer(t).dial(t)
	in, err := c.AddBucket(ctx, "new", 100, 36000, 7)
	if want := (wire.Info{Resolution: 100, PointsPerFile: 36000, TTL: 7}); err != nil || in != want {
		t.Fatalf("AddBucket: %+v, %v, want %+v", in, err, want)
	}
	if in, err := c.SetTTL(ctx, "new", 0); err != nil || in.TTL != 0 {
		t.Errorf("SetTTL: %+v, %v", in, err)
	}
	names, err := c.Buckets(ctx)
	slices.Sort(names)
	if err != nil || !slices.Equal(names, []string{"b", "new"}) {
		t.Errorf("Buckets: %q, %v", names, err)
	}
	if err := c.DeleteBucket(ctx, "new"); err != nil {
		t.Error(err)
	}
	if names, err := c.Buckets(ctx); err != nil || !slices.Equal(names, []string{"b"}) {
		t.Errorf("Buckets after the deletion: %q, %v", names, err)
	}
}

func TestLists(t *testing.T) {
	ctx := context.Background()
	c := startServer(t).dial(t)
	if names, err := c.List(ctx, "b"); err != nil || !slices.Equal(names, []string{"\x01k", "\x01l"}) {
		t.Errorf("List: %q, %v", names, err)
	}
	if names, err := c.ListPrefix(ctx, "b", []byte{1}); err != nil ||
		!slices.Equal(names, []string{"\x01k"}) {
		t.Errorf("ListPrefix: %q, %v", names, err)
	}
}

func TestGet(t *testing.T) {
	ctx := context.Background()
	c := startServer(t).dial(t)
	for _, count := range []int{0, 1, 10, 25} {
		words, err := c.Get(ctx, "b", []byte("k"), 1000, count)
		if err != nil || len(words) != count {
			t.Fatalf("Get of %d slots: %d words, %v", count, len(words), err)
		}
		for i, w := range words {
			if w != point.FromInt(1000+int64(i)) {
				t.Errorf("slot %d of %d is %x", i, count, w)
			}
		}
	}
	words, err := c.Get(ctx, "b", []byte("unknown"), 1000, 15)
	if err != nil || !slices.Equal(words, make([]uint64, 15)) {
		t.Errorf("Get of an unknown series: %x, %v", words, err)
	}
	if _, err := c.Get(ctx, "b", nil, 0, MaxGet+1); err == nil ||
		!strings.Contains(err.Error(), "67108864") {
		t.Errorf("Get beyond the limit: %v", err)
	}
	if words, err := c.Get(ctx, "b", []byte("short"), 0, 12); !errors.Is(err, wire.ErrMalformed) {
		t.Errorf("a reply of 11 slots for 12: %d words, %v", len(words), err)
	}
}

func TestErrorFramesBecomeErrors(t *testing.T) {
	c := startServer(t).dial(t)
	_, err := c.Info(context.Background(), "none")
	var server *ServerError
	if !errors.As(err, &server) || server.Message != `no bucket "none"` {
		t.Errorf("Info of an unknown bucket: %v", err)
	}
}

func TestRequestsEndWithTheirContext(t *testing.T) {
	here, there := net.Pipe()
	defer there.Close()
	c := NewClient(here)
	defer c.Close()
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		// The request arrives whole, and is never answered.
		_, _ = wire.ReadFrame(there, nil, 100)
		cancel()
	}()
	if _, err := c.Buckets(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("a canceled request: %v", err)
	}
	if _, err := c.Buckets(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("a request begun after that: %v", err)
	}
}

func TestStreamCarriesEveryMessage(t *testing.T) {
	srv := startServer(t)
	s, err := srv.dial(t).OpenStream("b", 2)
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{
		s.Point([]byte("k"), 5, point.FromInt(1)),
		s.Points([]byte("l"), 6, point.FromInt(1), point.FromInt(2)),
		s.BatchStart(7),
		s.BatchPoint([]byte("k"), point.FromInt(3)),
		s.BatchEnd(),
		s.Flush(),
		s.Point([]byte("k"), 8, point.FromInt(4)),
		s.Write(wire.AppendEntry(nil, []byte("raw"), 9, point.FromInt(5))),
		s.Finish(10 * time.Second),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	want := "point k 5 1; points l 6 16 bytes; point k 7 3; flush; point k 8 4; point raw 9 5"
	if got := strings.Join(srv.recorded(), "; "); got != want {
		t.Errorf("the server got %s\nwant %s", got, want)
	}
}

func TestStreamRefusesWrongOrder(t *testing.T) {
	s, err := startServer(t).dial(t).OpenStream("b", 2)
	if err != nil {
		t.Fatal(err)
	}
	f := func(err, want error) {
		t.Helper()
		if !errors.Is(err, want) {
			t.Errorf("%v, want %v", err, want)
		}
	}
	one := point.FromInt(1)
	f(s.BatchPoint([]byte("k"), one), errNoBatch)
	f(s.BatchEnd(), errNoBatch)
	f(s.BatchStart(1), nil)
	f(s.BatchStart(1), errInBatch)
	f(s.Point([]byte("k"), 1, one), errInBatch)
	f(s.BatchPoint(nil, one), errEmptyKey)
	f(s.Flush(), errInBatch)
	f(s.BatchEnd(), nil)
	_, err = s.FlushAck()
	f(err, errNoAck)
}

func TestAcknowledgedStream(t *testing.T) {
	srv := startServer(t)
	s, err := srv.dial(t).OpenAckStream("b")
	if err != nil {
		t.Fatal(err)
	}
	for flush := 1; flush <= 3; flush++ {
		for i := range flush {
			if err := s.Point([]byte("k"), int64(i), 1); err != nil {
				t.Fatal(err)
			}
		}
		if seq, err := s.FlushAck(); err != nil || seq != uint64(flush) {
			t.Fatalf("flush %d: seq %d, %v", flush, seq, err)
		}
	}
	for flush := uint64(1); flush <= 3; flush++ {
		ack, err := s.ReadAck()
		if want := (wire.Ack{Seq: flush, Received: flush}); err != nil || ack != want {
			t.Errorf("got %+v, %v, want %+v", ack, err, want)
		}
	}
}

func TestStreamTellsTheServersReason(t *testing.T) {
	srv := startServer(t)
	s, err := srv.dial(t).OpenStream("b", 2)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Point([]byte("bad"), 1, point.FromInt(1)); err != nil {
		t.Fatal(err)
	}
	err = s.Finish(10 * time.Second)
	var server *ServerError
	if !errors.As(err, &server) || server.Message != "bad key" {
		t.Errorf("Finish: %v, want the server's message", err)
	}
	if err := s.Flush(); err == nil {
		t.Error("a flush after the end gave no error")
	}
}

// A point has the form that its stream was opened for.
func TestStreamsKeepTimestampsApart(t *testing.T) {
	s := startServer(t)
	k := []byte("k")
	plain, err := s.dial(t).OpenStream("b", 1)
	if err != nil {
		t.Fatal(err)
	}
	timestamped, err := s.dial(t).OpenTimestampedStream("b", 1)
	if err != nil {
		t.Fatal(err)
	}
	if err := plain.TimestampedPoints(k, 1, wire.Timestamped{}); !errors.Is(err, errPlain) {
		t.Errorf("a plain stream took a timestamp: %v", err)
	}
	if err := timestamped.Points(k, 1, 5); !errors.Is(err, errTimestamped) {
		t.Errorf("a stream with timestamps took a point without: %v", err)
	}
	for _, x := range []*Stream{plain, timestamped} {
		if err := x.BatchStart(1); err != nil {
			t.Fatal(err)
		}
	}
	if err := plain.TimestampedBatchPoint(k, wire.Timestamped{}); !errors.Is(err, errPlain) {
		t.Errorf("a plain batch took a timestamp: %v", err)
	}
	if err := timestamped.BatchPoint(k, 5); !errors.Is(err, errTimestamped) {
		t.Errorf("a batch with timestamps took a point without: %v", err)
	}
	for _, x := range []*Stream{plain, timestamped} {
		if err := x.Close(); err != nil {
			t.Error(err)
		}
	}
}
