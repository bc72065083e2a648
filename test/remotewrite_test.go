package test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/klauspost/compress/s2"

	"dalmatiner/client"
	"dalmatiner/internal/testkit/protomsg"
	"dalmatiner/internal/wire"
)

// remoteWriter sends as a shard of Prometheus does: a request again and again until it is
// answered, and then the next one.
type remoteWriter struct {
	version int
	addr    *atomic.Pointer[string] // of the node's HTTP, while there is one
	series  int
	base    int64 // ms
	acked   atomic.Int64
}

// value and time are those of a sample, by series and number of the request.
func (s *remoteWriter) value(series, request int) float64 {
	return float64(series) + float64(request)/8
}

func (s *remoteWriter) time(series, request int) int64 {
	return s.base + int64(request)*1000 + int64(series*37%1000)
}

func (s *remoteWriter) bucket() string { return fmt.Sprintf("v%d", s.version) }

// body returns a request with one sample of each series.
func (s *remoteWriter) body(request int) []byte {
	var m protomsg.Message
	table := []string{"", "__name__", "load", "host"}
	for i := range s.series {
		sample := protomsg.Message(nil).Float(1, s.value(i, request)).
			Varint(2, uint64(s.time(i, request)))
		host := strconv.Itoa(i)
		if s.version == 2 {
			table = append(table, host)
			series := protomsg.Message(nil).Varints(1, 1, 2, 3, uint64(len(table)-1))
			m = m.Bytes(5, series.Bytes(2, sample))
			continue
		}
		label := func(name, value string) protomsg.Message {
			return protomsg.Message(nil).Text(1, name).Text(2, value)
		}
		series := protomsg.Message(nil).Bytes(1, label("__name__", "load")).
			Bytes(1, label("host", host))
		m = m.Bytes(1, series.Bytes(2, sample))
	}
	if s.version == 2 {
		var symbols protomsg.Message
		for _, text := range table {
			symbols = symbols.Text(4, text)
		}
		m = append(symbols, m...)
	}
	return s2.EncodeSnappy(nil, m)
}

// send sends a request once. Only an answer that a client does not try again is an error.
func (s *remoteWriter) send(ctx context.Context, body []byte) (taken bool, err error) {
	url := "http://" + *s.addr.Load() + "/prometheus/" + s.bucket() + "/api/v1/write"
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return false, err
	}
	r.Header.Set("Content-Encoding", "snappy")
	r.Header.Set("Content-Type", "application/x-protobuf")
	if s.version == 2 {
		r.Header.Set("Content-Type", "application/x-protobuf;proto=io.prometheus.write.v2.Request")
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return false, nil // the node is down
	}
	defer answer.Body.Close()
	text, _ := io.ReadAll(answer.Body)
	if answer.StatusCode/100 == 2 {
		if n := answer.Header.Get("X-Prometheus-Remote-Write-Samples-Written"); s.version == 2 &&
			n != strconv.Itoa(s.series) {
			return false, fmt.Errorf("%s samples are written, not %d", n, s.series)
		}
		return true, nil
	}
	if answer.StatusCode/100 == 5 {
		return false, nil
	}
	return false, fmt.Errorf("%s: %s", answer.Status, text)
}

// run sends requests until the time is over, and the last one until it is taken.
func (s *remoteWriter) run(over <-chan struct{}) error {
	for request := 0; ; request++ {
		body := s.body(request)
		for taken := false; !taken; {
			var err error
			if taken, err = s.send(context.Background(), body); err != nil {
				return err
			}
		}
		s.acked.Add(1)
		select {
		case <-over:
			return nil
		default:
		}
	}
}

// check reads every sample back: value, milliseconds, and one line of the account for each.
func (s *remoteWriter) check(t *testing.T, n *node) {
	t.Helper()
	c := n.dial()
	defer c.Close()
	requests := int(s.acked.Load())
	for i := range s.series {
		k := key(t, "load", "host="+strconv.Itoa(i))
		got, err := c.GetTimestamped(context.Background(), s.bucket(), k, s.base/1000, requests+1)
		if err != nil {
			t.Fatal(err)
		}
		for request := range requests {
			// A value without a fraction is an integer.
			want := client.Float(s.value(i, request))
			if request%8 == 0 {
				want = client.Int(int64(s.value(i, request)))
			}
			wantTime := uint64(s.time(i, request)) * 1_000_000
			if p := got[request]; p != (wire.Timestamped{Word: want, Time: wantTime}) {
				t.Fatalf("bucket %s, series %d, sample %d: %x at %d, want %x at %d", s.bucket(), i,
					request, p.Word, p.Time, want, wantTime)
			}
		}
	}
	row := n.account(s.bucket())
	if want := uint64(requests * s.series); row.Accepted != want ||
		row.Received != row.Accepted+row.Duplicate {
		t.Errorf("account of %s: %+v, want %d accepted", s.bucket(), row, want)
	}
}

// TestRemoteWriteSurvivesKill: what remote write was answered for is there with value and
// milliseconds, once each, however often the node is killed and the request is sent again.
func TestRemoteWriteSurvivesKill(t *testing.T) {
	rng := seeded(t)
	dir := t.TempDir()
	args := []string{"--set", "wal.sync=always", "--set", "self_monitor=off"}
	n := startNode(t, dir, args...)
	var addr atomic.Pointer[string]
	addr.Store(&n.http)
	over := make(chan struct{})
	base := time.Now().Add(-time.Hour).Unix() * 1000
	writers := []*remoteWriter{{version: 1, addr: &addr, series: 60, base: base},
		{version: 2, addr: &addr, series: 60, base: base}}
	var all sync.WaitGroup
	errs := make([]error, len(writers))
	for i, s := range writers {
		all.Go(func() { errs[i] = s.run(over) })
	}
	kills := 8
	if testing.Short() {
		kills = 2
	}
	for range kills {
		n = killAndRestart(t, n, dir, rng, writers, &addr, args)
	}
	close(over)
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	for _, s := range writers {
		s.check(t, n)
		t.Logf("version %d: %d requests", s.version, s.acked.Load())
	}
}

// killAndRestart kills a node once both senders went on, and a little later.
func killAndRestart(t *testing.T, n *node, dir string, rng *rand.Rand,
	writers []*remoteWriter, addr *atomic.Pointer[string], args []string) *node {
	t.Helper()
	for _, s := range writers {
		want := s.acked.Load() + 1 + rng.Int64N(20)
		eventually(t, "requests are answered", func() bool { return s.acked.Load() >= want })
	}
	n.kill()
	n = startNode(t, dir, args...)
	addr.Store(&n.http)
	return n
}
