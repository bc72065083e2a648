package eventing

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"dalmatiner/internal/cluster/call"
	"dalmatiner/internal/cluster/ring"
	"dalmatiner/internal/disk/wal"
	"dalmatiner/internal/host/loglimit"
	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/store"
	"dalmatiner/internal/store/events"
	"dalmatiner/internal/store/storetest"
	"dalmatiner/internal/write"
)

// world is the nodes of a cluster whose events alone are shared.
type world struct {
	t       testing.TB
	random  *rand.Rand
	nodes   []*node
	copies  int
	timeout time.Duration
	faults  atomic.Bool // requests and replies are lost now and then
	behind  atomic.Bool // a node does not know the ring yet

	mu sync.Mutex // of random in ask
}

type node struct {
	w      *world
	id     ring.ID
	fs     *vfs.MemFS
	store  *store.Store
	e      *Eventing
	view   atomic.Pointer[ring.View]
	down   atomic.Bool   // nobody reaches it
	silent atomic.Bool   // it takes requests and says nothing,
	lost   chan struct{} // until the connection is lost
	gone   bool          // it is not a member
}

func nodeID(n int) ring.ID { return ring.ID{15: byte(n + 1)} }

const bucketName = "app"

func newWorld(t testing.TB, seed uint64, members int, timeout time.Duration) *world {
	t.Helper()
	w := &world{t: t, random: rand.New(rand.NewPCG(seed, 1)), copies: 3, timeout: timeout}
	for i := range members {
		n := &node{w: w, id: nodeID(i), fs: vfs.NewCrashableMem(), lost: make(chan struct{})}
		w.nodes = append(w.nodes, n)
		n.open()
	}
	t.Cleanup(func() {
		for _, n := range w.nodes {
			n.close()
		}
	})
	return w
}

// waitFor waits for a condition.
func (w *world) waitFor(what string, is func() bool) {
	w.t.Helper()
	deadline, tick := time.After(30*time.Second), time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !is() {
		select {
		case <-deadline:
			w.t.Fatalf("not within 30 s: %s", what)
		case <-tick.C:
		}
	}
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (n *node) open() {
	n.w.t.Helper()
	o := storetest.Options()
	o.FS, o.WALSync, o.Logger = n.fs, wal.Always, slog.New(slog.DiscardHandler)
	o.BackgroundMerge = false
	opened, err := store.Open(o) // what was asked before a kill still asks the store of then
	n.w.must(err)
	n.store = opened
	_, err = opened.EnsureBucket(bucketName)
	n.w.must(err)
	up := func(id ring.ID) bool { return !n.down.Load() && !n.w.node(id).down.Load() }
	n.e = New(Options{
		Self: n.id, Own: events.Copies{Local: opened.Events()},
		Log: loglimit.New(slog.New(slog.DiscardHandler), time.Now), Now: time.Now,
		Bucket: opened.BucketByName, Private: func(string) bool { return false },
		ByID: func(id uint64) (buckets.Info, bool) {
			info, err := opened.BucketByName(bucketName)
			return info, err == nil && info.ID == id
		},
		Durable: func(ctx context.Context, t write.Token) error {
			return opened.Intake().WaitDurable(ctx, t)
		},
		View: n.view.Load, Up: up, Reaches: up, Copies: func(uint64) int { return 0 },
		Quorum: func(*ring.View, uint64) Quorum { return Quorum{Reads: 2, Writes: 2, Next: 2} },
		Agreed: func(*ring.View) bool { return !n.w.behind.Load() },
		Name:   ring.ID.String, Check: func() error { return nil }, Ask: n.ask,
		Define: func(uint64) []byte { return []byte("defined") },
		Learn: func(b []byte) error {
			if string(b) != "defined" {
				return errors.New("not a definition")
			}
			return nil
		},
		Timeout: n.w.timeout, Compare: time.Hour, Retry: 20 * time.Millisecond, Follow: time.Hour,
	})
}

func (n *node) close() {
	n.w.t.Helper()
	n.e.Close()
	n.w.must(n.store.Close())
}

// kill ends a node as a loss of power does, and starts it again.
func (n *node) kill() {
	n.down.Store(true)
	after := n.fs.CrashClone(vfs.CrashCloneCfg{})
	n.close()
	n.fs = after
	n.open()
	n.down.Store(false)
}

func (w *world) node(id ring.ID) *node { return w.nodes[id[15]-1] }

// members tells all nodes who is up.
func (w *world) members() {
	for _, n := range w.nodes {
		others := make(map[ring.ID]bool)
		for _, m := range n.view.Load().Members() {
			if m.ID != n.id {
				others[m.ID] = !n.down.Load() && !w.node(m.ID).down.Load()
			}
		}
		n.e.Members(others)
	}
}

// reconnectAll lets all members be reached.
func (w *world) reconnectAll() {
	for _, n := range w.nodes {
		n.down.Store(n.gone)
	}
	w.members()
}

// ask has another node serve, with copies of all bytes. With faults a request or a reply is lost
// now and then.
func (n *node) ask(ctx context.Context, to ring.ID, request []byte, part func([]byte) error) error {
	of := n.w.node(to)
	lost := &call.Error{Peer: to, Code: call.Unreachable, Text: "the connection ended"}
	if n.down.Load() || of.down.Load() || len(request) > call.MaxRequest {
		return lost
	}
	if of.silent.Load() {
		select {
		case <-of.lost:
			return lost
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	fate := 0
	if n.w.faults.Load() {
		n.w.mu.Lock()
		fate = rand.IntN(12)
		n.w.mu.Unlock()
	}
	if fate == 1 {
		return lost
	}
	err := of.e.Serve(ctx, n.id, bytes.Clone(request), func(b []byte) error {
		if len(b) > call.MaxPart {
			n.w.t.Errorf("a part of %d bytes", len(b))
		}
		return part(bytes.Clone(b))
	})
	if fate == 2 {
		return lost
	}
	if e := (*call.Error)(nil); err != nil && !errors.As(err, &e) && ctx.Err() == nil {
		err = &call.Error{Peer: to, Code: call.Failed, Text: err.Error()}
	}
	return err
}

// ring gives nodes a ring whose members have these states; 0: none. Some nodes learn of it later.
func (w *world) ring(number uint64, states ...ring.State) *ring.View {
	w.t.Helper()
	config := ring.Config{Number: number, Partitions: 16, Copies: w.copies}
	for i, s := range states {
		if s == 0 {
			continue
		}
		m := ring.Member{ID: nodeID(i), Name: fmt.Sprint("n", i), State: s}
		tokens := rand.New(rand.NewPCG(uint64(i), 2))
		for range 32 {
			m.Tokens = append(m.Tokens, tokens.Uint32())
		}
		config.Members = append(config.Members, m)
	}
	v, err := ring.New(config)
	w.must(err)
	return v
}
