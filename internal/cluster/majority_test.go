package cluster

import (
	"errors"
	"testing"
	"time"

	"dalmatiner/internal/cluster/replication"
	"dalmatiner/internal/model/account"
	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/store/events"
)

// create creates a bucket through a node.
func (n *testNode) create(name string) error {
	_, err := n.c.Store().CreateBucket(buckets.Info{Name: name, Resolution: 1000, PPF: 604800})
	return err
}

// hasBucket reports whether the store of a node has a bucket.
func (n *testNode) hasBucket(name string) bool {
	_, err := n.store.BucketByName(name)
	return err == nil
}

// A bucket is created and deleted only while more than half of the members answer, and is on the
// disks of as many when that is answered.
func TestBucketsNeedAMajority(t *testing.T) {
	nodes := startNodes(t, 3, func(o *Options) { o.Pace.Timeout = time.Second })
	if err := nodes[0].create("b"); err != nil {
		t.Fatal(err)
	}
	first, second := nodes[1].c.Self(), nodes[2].c.Self()
	nodes[1].end()
	awaitDown(t, first, nodes[0], nodes[2])
	if err := nodes[0].create("two"); err != nil || !nodes[2].hasBucket("two") {
		t.Errorf("with two of three nodes: %v, known to the other one: %v", err,
			nodes[2].hasBucket("two"))
	}
	if err := nodes[2].c.Store().DeleteBucket("two"); err != nil || nodes[0].hasBucket("two") {
		t.Errorf("with two of three nodes: %v, known to the other one: %v", err,
			nodes[0].hasBucket("two"))
	}
	nodes[2].end()
	awaitDown(t, second, nodes[0])
	if err := nodes[0].create("alone"); !errors.Is(err, buckets.ErrNoMajority) ||
		nodes[0].hasBucket("alone") {
		t.Errorf("creation by one of three nodes: %v, known: %v", err, nodes[0].hasBucket("alone"))
	}
	_, err := nodes[0].c.Points().EnsureBucket("sent", buckets.Form{})
	if !errors.Is(err, buckets.ErrNoMajority) ||
		nodes[0].hasBucket("sent") {
		t.Errorf("points for a new bucket: %v, known: %v", err, nodes[0].hasBucket("sent"))
	}
	if _, err := nodes[0].c.Points().EnsureBucket("b", buckets.Form{}); err != nil {
		t.Errorf("points for a bucket that is there: %v", err)
	}
	if err := nodes[0].c.Store().DeleteBucket("b"); !errors.Is(err, buckets.ErrNoMajority) ||
		!nodes[0].hasBucket("b") {
		t.Errorf("deletion by one of three nodes: %v, known: %v", err, nodes[0].hasBucket("b"))
	}
	nodes[1].start()
	agree2(t, nodes[0], nodes[1])
	if err := nodes[0].create("alone"); err != nil || !nodes[1].hasBucket("alone") {
		t.Errorf("creation when two are back: %v", err)
	}
}

// agree2 waits until two nodes of a larger ring see each other.
func agree2(t *testing.T, a, b *testNode) {
	t.Helper()
	waitFor(t, "two nodes see each other", func() bool {
		return a.c.IsUp(b.c.Self()) && b.c.IsUp(a.c.Self())
	})
}

// Members that do not answer count for no majority, though they look up.
func TestBucketsOfNodesThatAreNotHeard(t *testing.T) {
	nodes := startNodes(t, 3, func(o *Options) {
		o.Pace.Timeout = 500 * time.Millisecond
		o.Pace.Silence = 20 * time.Second
	})
	if err := nodes[0].create("b"); err != nil {
		t.Fatal(err)
	}
	nodes[0].cut.Store(true)
	if err := nodes[0].create("c"); !errors.Is(err, buckets.ErrNoMajority) || nodes[0].hasBucket("c") {
		t.Errorf("creation unheard by the others: %v, known: %v", err, nodes[0].hasBucket("c"))
	}
	if err := nodes[0].c.Store().DeleteBucket("b"); !errors.Is(err, buckets.ErrNoMajority) ||
		!nodes[0].hasBucket("b") {
		t.Errorf("deletion unheard by the others: %v, known: %v", err, nodes[0].hasBucket("b"))
	}
}

// Who changes a bucket learns first what the others know of its name.
func TestAChangeLearnsWhatOthersKnow(t *testing.T) {
	nodes := startNodes(t, 3, nil)
	if err := nodes[0].create("gone"); err != nil {
		t.Fatal(err)
	}
	news := replication.NewBuckets()
	news.Create(replication.Bucket{Name: "theirs", Resolution: 500, PPF: 1000}, 1)
	news.NoteDeleted(replication.NameDeletion{Name: "gone", Clock: uint64(time.Now().UnixNano())})
	for _, n := range nodes[1:] { // node 0 has not heard of it
		if err := n.c.buckets.learn(news); err != nil {
			t.Fatal(err)
		}
	}
	if err := nodes[0].create("theirs"); !errors.Is(err, buckets.ErrExists) {
		t.Errorf("a bucket that two other nodes have: %v", err)
	}
	if info, err := nodes[0].store.BucketByName("theirs"); err != nil || info.Resolution != 500 {
		t.Errorf("the bucket of the others: %+v, %v", info, err)
	}
	if err := nodes[0].c.Store().DeleteBucket("gone"); !errors.Is(err, buckets.ErrUnknown) {
		t.Errorf("a bucket that the others have deleted: %v", err)
	}
}

// Owners that know of a deletion elsewhere refuse points and events of the bucket. Nothing that is
// thrown away counts as accepted.
func TestOwnersRefuseWhatWasDeleted(t *testing.T) {
	nodes := startNodes(t, 3, nil)
	slot := base()
	nodes[0].write("b", 0, 30, slot, 1)
	awaitEverywhere(t, nodes, "b", 0, 30, slot, 1)
	info, err := nodes[0].store.BucketByName("b")
	if err != nil {
		t.Fatal(err)
	}
	news := replication.NewBuckets()
	news.NoteDeleted(replication.NameDeletion{Name: "b", Clock: uint64(time.Now().UnixNano())})
	for _, n := range nodes[1:] {
		if err := n.c.buckets.learn(news); err != nil {
			t.Fatal(err)
		}
	}
	for _, series := range []int{30, 3000} { // the second in columns, too
		if got := nodes[0].writeTo(info, 0, series, slot+1,
			2); got.Refused[account.BucketDeleted] != uint64(series) ||
			got.ReceivedPoints() != uint64(series) {
			t.Errorf("%d points of a deleted bucket: %+v", series, got)
		}
	}
	written, err := nodes[0].c.Events().Write("b",
		[]events.Event{{Time: time.Now().UnixNano(), Body: []byte{131, 106}}})
	if err != nil || written.Counts.Refused[account.BucketDeleted] != 1 ||
		written.Counts.ReceivedPoints() != 1 {
		t.Errorf("an event of a deleted bucket: %+v, %v", written.Counts, err)
	}
}
