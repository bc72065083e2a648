package cluster

import (
	"context"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"dalmatiner/internal/model/account"
	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/store/deletion"
)

// Two buckets of one name were created on two sides of a partition of the network. Points of the
// one count as confirmed only where they are stored, and other buckets are repaired as ever.
func TestABucketThatOthersCannotTake(t *testing.T) {
	nodes := startNodes(t, 3, func(o *Options) { o.Pace.Timeout = time.Second })
	slot := base()
	nodes[0].write("c", 0, 30, slot, 1)
	awaitEverywhere(t, nodes, "c", 0, 30, slot, 1)
	// They have not heard of each other's buckets yet.
	for _, n := range nodes[1:] {
		if _, err := n.store.AdoptBucket(buckets.Info{Name: "b", Resolution: 10000, PPF: 604800},
			0); err != nil {
			t.Fatal(err)
		}
	}
	nodes[2].cut.Store(true)
	nodes[0].write("c", 0, 30, slot+1, 2)
	if got := nodes[0].write("b", 0, 30, slot, 1); got.Refused[account.Unconfirmed] != 30 ||
		got.ReceivedPoints() != 30 {
		t.Errorf("only one node has a place for the points: %+v", got)
	}
	nodes[2].cut.Store(false)
	awaitEverywhere(t, nodes, "c", 0, 30, slot+1, 2)
}

// What other nodes missed of a bucket that is deleted now is kept for nobody.
func TestHintsOfADeletedBucket(t *testing.T) {
	nodes := startNodes(t, 4, func(o *Options) { o.Pace.Timeout = 2 * time.Second })
	slot := base()
	nodes[0].write("b", 0, 50, slot, 1)
	nodes[0].write("c", 0, 50, slot, 1)
	lost := nodes[3].c.Self()
	nodes[3].end()
	awaitDown(t, lost, nodes[:3]...)
	if got := nodes[0].write("b", 0, 50, slot+1, 2); got.Accepted != 50 {
		t.Fatalf("%+v", got)
	}
	if got := nodes[0].write("c", 0, 50, slot+1, 2); got.Accepted != 50 {
		t.Fatalf("%+v", got)
	}
	hints := func() (sum int) {
		for _, n := range nodes {
			if n.c == nil {
				continue
			}
			n.c.runtime.mu.Lock()
			sum += len(n.c.data.Hints())
			n.c.runtime.mu.Unlock()
		}
		return sum
	}
	if hints() == 0 {
		t.Fatal("no hints")
	}
	if _, err := nodes[0].c.Store().DeleteSeries(context.Background(), "b",
		deletion.Choice{Key: key(t, 1)}, false); err != nil {
		t.Fatal(err)
	}
	if err := nodes[0].c.Store().DeleteBucket("b"); err != nil {
		t.Fatal(err)
	}
	nodes[3].start()
	agree(t, nodes...)
	if got := nodes[3].write("c", 0, 50, slot+2, 2); got.Accepted != 50 {
		t.Fatalf("%+v", got)
	}
	waitFor(t, "no hints are left", func() bool { return hints() == 0 })
	if got := nodes[3].write("b", 0, 50, slot+2, 2); got.Accepted != 50 {
		t.Fatalf("the bucket anew: %+v", got)
	}
}

// A node that is no member gets no bucket by what senders do: with one it would have data, and
// could not join.
func TestSendersKeepNoNodeFromJoining(t *testing.T) {
	nodes := startNodes(t, 1, nil)
	nodes[0].write("b", 0, 1, base(), 1)
	late := &testNode{t: t, name: "late", fs: vfs.NewCrashableMem(), log: testLog{t},
		join: []string{nodes[0].c.Gossip().Addr()}}
	late.start()
	t.Cleanup(late.end)
	if _, err := late.c.Points().EnsureBucket("new", buckets.Form{}); err == nil {
		t.Error("a point creates a bucket at a node that is no member")
	}
	if _, err := late.c.Store().CreateBucket(buckets.Info{Name: "new", Resolution: 1000,
		PPF: 10}); err == nil {
		t.Error("a node that is no member creates a bucket")
	}
	if late.c.buckets.any() {
		t.Error("the node has data")
	}
}
