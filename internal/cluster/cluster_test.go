package cluster

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"go.uber.org/goleak"

	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/disk/wal"
	"dalmatiner/internal/model/account"
	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/model/metric"
	"dalmatiner/internal/query/source"
	"dalmatiner/internal/store"
	"dalmatiner/internal/store/storetest"
	"dalmatiner/internal/write"
)

func TestMain(m *testing.M) {
	// dskit does not read the connections any more that come as it ends; those who handed one over
	// wait for ever.
	goleak.VerifyTestMain(m,
		goleak.IgnoreAnyFunction(
			"github.com/grafana/dskit/kv/memberlist.(*TCPTransport).handleConnection"))
}

// testNode is a node of a cluster in this process, which may be ended and started again.
type testNode struct {
	t     testing.TB
	name  string
	fs    *vfs.MemFS
	log   io.Writer
	store *store.Store
	c     *Cluster
	join  []string
	more  func(o *Options)
	cut   atomic.Bool // nothing goes to other nodes
}

var noUnsynced = vfs.CrashCloneCfg{}

// noSource stands for the store as queries read it, where none do.
type noSource struct{ source.Source }

func testPace() Pace {
	return Pace{Tick: 20 * time.Millisecond, Timeout: 5 * time.Second, Resend: 100 * time.Millisecond,
		Compare:   200 * time.Millisecond,
		Heartbeat: 50 * time.Millisecond, Silence: 2 * time.Second, Redial: 20 * time.Millisecond,
		Patience: 2 * time.Second}
}

// quorum is r and w of majorities.
func quorum(n, members int) (r, w int) {
	m := min(n, members)/2 + 1
	return m, m
}

func (n *testNode) start() {
	n.t.Helper()
	so := storetest.Options()
	so.FS, so.WALSync = n.fs, wal.Always
	so.Logger = slog.New(slog.NewTextHandler(n.log, nil)).With("node", n.name)
	s, err := store.Open(so)
	if err != nil {
		n.t.Fatal(err)
	}
	o := Options{FS: n.fs, Dir: so.Dir, Store: s, Local: noSource{}, Logger: so.Logger, Now: time.Now,
		Name: n.name, Listen: "127.0.0.1:0", Gossip: "127.0.0.1:0", Join: n.join, Partitions: 16,
		Copies: 3, Quorums: quorum,
		MaxHints: 1 << 20, AutoCreate: &BucketDefaults{Resolution: 1000, PPF: 604800}, Pace: testPace()}
	o.lose = n.cut.Load
	if n.more != nil {
		n.more(&o)
	}
	c, err := Open(o)
	if err != nil {
		_ = s.Close()
		n.t.Fatal(err)
	}
	n.store, n.c = s, c
}

// end stops a node. Its disk has what it has after an orderly end.
func (n *testNode) end() {
	n.t.Helper()
	if n.c == nil {
		return
	}
	if err := n.c.Close(); err != nil {
		n.t.Errorf("closing %s: %v", n.name, err)
	}
	if err := n.store.Close(); err != nil {
		n.t.Errorf("closing the store of %s: %v", n.name, err)
	}
	n.c, n.store = nil, nil
}

// kill ends a node as a loss of power does: what was not synced is gone.
func (n *testNode) kill() {
	n.t.Helper()
	after := n.fs.CrashClone(noUnsynced)
	n.end()
	n.fs = after
}

// startNodes starts so many empty nodes, which form one ring.
func startNodes(t testing.TB, number int, more func(o *Options)) []*testNode {
	t.Helper()
	nodes := make([]*testNode, number)
	for i := range nodes {
		n := &testNode{t: t, name: fmt.Sprint("n", i), fs: vfs.NewCrashableMem(), log: testLog{t},
			more: more}
		if i > 0 {
			n.join = []string{nodes[0].c.Gossip().Addr()}
		}
		n.start()
		t.Cleanup(n.end)
		nodes[i] = n
	}
	agree(t, nodes...)
	return nodes
}

// agree waits until all nodes see each other in one ring.
func agree(t testing.TB, nodes ...*testNode) {
	t.Helper()
	waitFor(t, "one ring of all nodes", func() bool {
		for _, n := range nodes {
			if len(n.c.View().Members()) != len(nodes) ||
				n.c.View().Version() != nodes[0].c.View().Version() || !n.c.ready() {
				return false
			}
			for _, o := range nodes {
				if !n.c.IsUp(o.c.Self()) {
					return false
				}
			}
		}
		return true
	})
}

// testLog writes to the log of a test.
type testLog struct{ t testing.TB }

func (l testLog) Write(b []byte) (int, error) {
	if testing.Verbose() {
		fmt.Printf("%s", b)
	}
	return len(b), nil
}

// waitFor waits for a condition.
func waitFor(t testing.TB, what string, is func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(30 * time.Second)
	for !is() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatal("waited in vain for: " + what)
		}
	}
}

// base is a slot of now.
func base() uint64 { return uint64(time.Now().Unix()) - 100 }

func key(t testing.TB, i int) []byte {
	t.Helper()
	k, err := metric.Key("series", fmt.Sprint(i))
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// write writes a point of each of some series through a node, and returns what became of them.
func (n *testNode) write(bucket string, from, series int, slot uint64, value int64) account.Counts {
	n.t.Helper()
	info, err := n.c.Points().EnsureBucket(bucket, buckets.Form{})
	if err != nil {
		n.t.Fatal(err)
	}
	return n.writeTo(info, from, series, slot, value)
}

func (n *testNode) writeTo(info buckets.Info, from, series int, slot uint64,
	value int64) account.Counts {
	n.t.Helper()
	return n.writeWord(info, from, series, slot, point.FromInt(value))
}

func (n *testNode) writeWord(info buckets.Info, from, series int, slot,
	word uint64) account.Counts {
	n.t.Helper()
	var got account.Counts
	reports := 0
	p := n.c.Points()
	s, err := p.Open(info, write.Options{Stale: true, Report: func(_ write.Token, c account.Counts) {
		got.Add(&c)
		reports++
	}})
	if err != nil {
		n.t.Fatal(err)
	}
	for i := from; i < from+series; i++ {
		s.Point(key(n.t, i), slot, word)
	}
	token, err := s.Commit()
	if err != nil {
		n.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if err := p.WaitDurable(ctx, token); err != nil {
		n.t.Fatalf("%s: %v", n.name, err)
	}
	if reports != 1 {
		n.t.Errorf("%d reports of one commit", reports)
	}
	if err := s.Close(); err != nil {
		n.t.Error(err)
	}
	return got
}

// local returns what the store of a node itself has of a slot.
func (n *testNode) local(bucket string, i int, slot uint64) (value int64, ok bool) {
	n.t.Helper()
	info, err := n.store.BucketByName(bucket)
	if err != nil {
		return 0, false
	}
	var word [1]uint64
	if err := n.store.Read(context.Background(), info, key(n.t, i), int64(slot), word[:]); err != nil {
		n.t.Fatal(err)
	}
	return point.Int(word[0]), word[0] != point.Unset
}

// awaitValue waits until a client of a node reads a value.
func (n *testNode) awaitValue(bucket string, from, series int, slot uint64, value int64) {
	n.t.Helper()
	of := n.c.Store()
	info, err := of.BucketByName(bucket)
	if err != nil {
		n.t.Fatal(err)
	}
	for i := from; i < from+series; i++ {
		var word [1]uint64
		if err := of.Read(context.Background(), info, key(n.t, i), int64(slot), word[:]); err != nil ||
			word[0] != point.FromInt(value) {
			n.t.Errorf("series %d through %s: %x, %v, want %d", i, n.name, word, err, value)
		}
	}
	seen := make(map[string]bool)
	if err := of.Metrics(context.Background(), info, nil, func(key []byte) bool {
		seen[string(key)] = true
		return true
	}); err != nil {
		n.t.Errorf("metrics through %s: %v", n.name, err)
	}
	for i := from; i < from+series; i++ {
		if !seen[string(key(n.t, i))] {
			n.t.Errorf("series %d is not listed through %s", i, n.name)
		}
	}
}

// awaitEverywhere waits until the stores of all nodes have a value.
func awaitEverywhere(t testing.TB, nodes []*testNode, bucket string, from, series int, slot uint64,
	value int64) {
	t.Helper()
	for _, n := range nodes {
		for i := from; i < from+series; i++ {
			waitFor(t, fmt.Sprintf("series %d of %s at %s", i, bucket, n.name), func() bool {
				v, ok := n.local(bucket, i, slot)
				return ok && v == value
			})
		}
	}
}

// Empty nodes form one ring with no command. What is written through any of them is on all.
func TestThreeNodes(t *testing.T) {
	nodes := startNodes(t, 3, nil)
	slot := base()
	for i, n := range nodes {
		got := n.write("b", 100*i, 100, slot, int64(i+1))
		if got.Accepted != 100 || got.ReceivedPoints() != 100 {
			t.Errorf("through %s: %+v", n.name, got)
		}
	}
	for i := range nodes {
		for _, n := range nodes {
			n.awaitValue("b", 100*i, 100, slot, int64(i+1)) // at once: r + w > n
		}
		awaitEverywhere(t, nodes, "b", 100*i, 100, slot, int64(i+1))
	}
	// The account has each point once: at the node that took it.
	var received uint64
	for _, n := range nodes {
		info, err := n.store.BucketByName("b")
		if err != nil {
			t.Fatal(err)
		}
		total := n.store.Account().Total(info.ID)
		received += total.ReceivedPoints()
		if copies := n.store.Copies().Total(info.ID); copies.StoredPoints() < 300 {
			t.Errorf("%s has stored %+v copies", n.name, copies)
		}
	}
	if received != 300 {
		t.Errorf("the account has %d points, 300 were sent", received)
	}
}
