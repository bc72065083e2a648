package node

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"dalmatiner/client"
	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/host/config"
	"dalmatiner/internal/host/monitor"
	"dalmatiner/internal/model/account"
	"dalmatiner/internal/model/metric"
	"dalmatiner/internal/store/storetest"
)

// TestMain leaves out connections that dskit's transport had accepted when it was shut down: each
// waits for ever for somebody to take its packet. A process ends with them.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		goleak.IgnoreTopFunction(
			"github.com/grafana/dskit/kv/memberlist.(*TCPTransport).handleConnection"))
}

const patience = time.Minute

// running is a node of a test.
type running struct {
	tcp, http string
	stop      context.CancelFunc
	ended     chan error
}

func start(t testing.TB, dir, name string) *running {
	t.Helper()
	return startWith(t, dir, name, func(*config.Config) {})
}

// startWith is start with settings.
func startWith(t testing.TB, dir, name string, set func(c *config.Config)) *running {
	t.Helper()
	c := config.Default()
	c.DataDir, c.Node, c.TCPAddr, c.HTTPAddr = dir, name, "127.0.0.1:0", "127.0.0.1:0"
	c.MinFree = 0
	set(&c)
	ctx, stop := context.WithCancel(context.Background())
	r := &running{stop: stop, ended: make(chan error, 1)}
	ready := make(chan struct{})
	go func() {
		r.ended <- Run(ctx, c, slog.New(slog.DiscardHandler), func(tcp, http string) {
			r.tcp, r.http = tcp, http
			close(ready)
		})
	}()
	select {
	case <-ready:
	case err := <-r.ended:
		t.Fatalf("node %s: %v", name, err)
	case <-time.After(patience):
		t.Fatalf("node %s is not ready within %v", name, patience)
	}
	return r
}

func (r *running) end(t testing.TB) {
	t.Helper()
	r.stop()
	select {
	case err := <-r.ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(patience):
		t.Fatalf("the node did not end within %v", patience)
	}
}

func (r *running) client(t *testing.T) *client.Client {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	c, err := client.Dial(ctx, r.tcp)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func (r *running) send(t *testing.T, bucket string, key []byte, slot, value int64) {
	t.Helper()
	s, err := r.client(t).OpenAckStream(bucket)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	if err := s.Point(key, slot, point.FromInt(value)); err != nil {
		t.Fatal(err)
	}
	if _, err := s.FlushAck(); err != nil {
		t.Fatal(err)
	}
	if err := s.Send(); err != nil {
		t.Fatal(err)
	}
	if ack, err := s.ReadAck(); err != nil || ack.Received != 1 || ack.Refused != 0 {
		t.Fatalf("%+v, %v", ack, err)
	}
}

// query returns the values of the first result.
func (r *running) query(t *testing.T, dql string) []float64 {
	t.Helper()
	httpClient := &http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := httpClient.Get("http://" + r.http + "/?q=" + url.QueryEscape(dql))
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close() // it was read to its end
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s, %v: %s", resp.Status, err, body)
	}
	var reply struct {
		Results []struct{ Values []float64 }
	}
	if err := json.Unmarshal(body, &reply); err != nil || len(reply.Results) == 0 {
		t.Fatalf("%v: %s", err, body)
	}
	return reply.Results[0].Values
}

// Two nodes in one process share nothing; what one got is there after a stop
// and a start, and nothing stays behind.
func TestTwoNodesInOneProcess(t *testing.T) {
	dirs := [2]string{t.TempDir(), t.TempDir()}
	slot := time.Now().Unix() - 10
	key, err := metric.Key("my", "metric")
	if err != nil {
		t.Fatal(err)
	}
	for round := range int64(2) {
		var nodes [2]*running
		for i := range nodes {
			nodes[i] = start(t, dirs[i], fmt.Sprintf("node%d", i))
		}
		for i, n := range nodes {
			value := int64(100*i) + 7
			n.send(t, "b", key, slot+round, value)
			words, err := n.client(t).Get(t.Context(), "b", key, slot, int(round)+1)
			if err != nil {
				t.Fatal(err)
			}
			for j, w := range words {
				if w != point.FromInt(value) {
					t.Errorf("node %d slot %d holds %x", i, j, w)
				}
			}
			if got := n.query(t, "SELECT max('my'.'metric' BUCKET 'b', 10m) LAST 10m"); !slices.Contains(got,
				float64(value)) {
				t.Errorf("node %d answers %v, want %d", i, got, value)
			}
		}
		for _, n := range nodes {
			n.end(t)
		}
	}
}

// selfNode is a node that only monitors itself, by hand.
func selfNode(t *testing.T) (*node, *selfWriter) {
	t.Helper()
	o := storetest.Options()
	st := storetest.Open(t, o)
	n := &node{cfg: config.Default(), logger: o.Logger, rec: monitor.New(), store: st,
		points: st.Intake()}
	n.cfg.Node = "me"
	w := &selfWriter{n: n}
	if err := w.open(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.close)
	return n, w
}

// own returns the value of one of the node's own metrics.
func own(t *testing.T, n *node, now time.Time, parts ...string) (word uint64) {
	t.Helper()
	info, err := n.store.BucketByName(selfBucket)
	if err != nil {
		t.Fatal(err)
	}
	key, err := metric.Key(append([]string{"me"}, parts...)...)
	if err != nil {
		t.Fatal(err)
	}
	dst := make([]uint64, 1)
	if err := n.store.Read(t.Context(), info, key, now.Unix(), dst); err != nil {
		t.Fatal(err)
	}
	return dst[0]
}

func ingest(t *testing.T, n *node, bucket string, slots ...int64) {
	t.Helper()
	info, err := n.store.EnsureBucket(bucket)
	if err != nil {
		t.Fatal(err)
	}
	x, err := n.store.NewSession(info)
	if err != nil {
		t.Fatal(err)
	}
	for _, slot := range slots {
		x.Point([]byte("\x01m"), uint64(slot), point.FromInt(1))
	}
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
}

// The names are those of the original.
func TestSelfMonitorWritesTheNamesOfTheOriginal(t *testing.T) {
	n, w := selfNode(t)
	now := time.Now()
	ingest(t, n, "b", now.Unix(), now.Unix()+1, now.Unix()+10000)
	operations := []string{"get", "mput", "list_buckets", "list_metrics", "mstore.read",
		"mstore.write"}
	for op := range operations {
		n.rec.Observe(monitor.Op(op), 250*time.Microsecond)
	}
	if err := w.write(now); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]int64{"mps": 2, "drop.write": 1, "account.b.accepted": 2,
		"account.b.refused.future": 1} {
		if got := own(t, n, now, strings.Split(path, ".")...); got != point.FromInt(want) {
			t.Errorf("%s is %x, want %d", path, got, want)
		}
	}
	for _, op := range operations {
		for _, figure := range strings.Fields(
			"max mean median min p50 p75 p90 p95 p99 p999 p9999 count") {
			if own(t, n, now, append(strings.Split(op, "."), figure)...) == 0 {
				t.Errorf("%s.%s was not written", op, figure)
			}
		}
	}
	next := now.Add(time.Second)
	if err := w.write(next); err != nil {
		t.Fatal(err)
	}
	if got := own(t, n, next, "drop", "write"); got != 0 {
		t.Errorf("drop.write is %x in a second without one", got)
	}
	if got := own(t, n, next, "mps"); got != point.FromInt(0) {
		t.Errorf("mps is %x in a second without points", got)
	}
}

// A deleted bucket's points are no news of the second it was deleted in, and
// the monitor's own bucket comes back when somebody deletes it.
func TestSelfMonitorSurvivesDeletedBuckets(t *testing.T) {
	n, w := selfNode(t)
	now := time.Now()
	ingest(t, n, "b", now.Unix()-2, now.Unix()-1, now.Unix())
	if err := w.write(now); err != nil {
		t.Fatal(err)
	}
	for _, bucket := range []string{"b", selfBucket} {
		if err := n.store.DeleteBucket(bucket); err != nil {
			t.Fatal(err)
		}
		now = now.Add(time.Second)
		if err := w.write(now); err != nil {
			t.Fatal(err)
		}
		if got := own(t, n, now, "mps"); got != point.FromInt(0) {
			t.Errorf("mps is %x after %s was deleted, want 0", got, bucket)
		}
		if got := own(t, n, now, "account", "deleted buckets", "accepted"); got != 0 {
			t.Errorf("%x points were accepted in deleted buckets", got)
		}
	}
	if c := n.store.Account().Total(account.DeletedBuckets); c.RefusedTotal() != 0 {
		t.Errorf("the monitor wrote into its deleted bucket: %+v", c)
	}
}

// An address that is taken is refused by key and remedy before the store opens.
func TestTakenAddress(t *testing.T) {
	n := start(t, t.TempDir(), "first")
	defer n.end(t)
	c := config.Default()
	dir := t.TempDir()
	c.DataDir, c.TCPAddr, c.HTTPAddr = dir, "127.0.0.1:0", n.http
	var out bytes.Buffer
	err := Run(context.Background(), c, slog.New(slog.NewTextHandler(&out, nil)),
		func(string, string) {
			t.Error("the node is ready")
		})
	if err == nil || !strings.Contains(err.Error(), "http.addr") ||
		!strings.Contains(err.Error(), "--http-addr") {
		t.Errorf("error: %v", err)
	}
}
