package cluster

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"dalmatiner/internal/cluster/replication"
	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/model/account"
	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/model/metric"
	"dalmatiner/internal/store/deletion"
	"dalmatiner/internal/write"
)

// awaitDown waits until the others know that a node is.
func awaitDown(t testing.TB, id [16]byte, others ...*testNode) {
	t.Helper()
	for _, n := range others {
		waitFor(t, "a node is down for "+n.name, func() bool { return !n.c.IsUp(id) })
	}
}

// equal waits until the copies of all nodes are the same, by their digests.
func equal(t testing.TB, nodes ...*testNode) {
	t.Helper()
	digests := func(n *testNode) string {
		n.c.runtime.mu.Lock()
		defer n.c.runtime.mu.Unlock()
		text := ""
		for p := range n.c.View().Partitions() {
			for _, w := range n.c.data.Windows(replication.Share{Partition: p}) {
				chunks, _ := n.c.data.Chunks(replication.Share{Partition: p}, w.Number, metric.SeriesID{},
					replication.MaxChunks)
				text += fmt.Sprint(p, w, chunks, "\n")
			}
		}
		return text
	}
	waitFor(t, "equal copies", func() bool {
		first := digests(nodes[0])
		for _, n := range nodes[1:] {
			if digests(n) != first {
				return false
			}
		}
		return first != ""
	})
}

// With a node down the others take writes. When it is back it gets what it missed, and then what
// was there before its disk lost power.
func TestANodeIsBack(t *testing.T) {
	nodes := startNodes(t, 3, nil)
	slot := base()
	nodes[0].write("b", 0, 50, slot, 1)
	lost := nodes[2].c.Self()
	nodes[2].kill()
	awaitDown(t, lost, nodes[:2]...)
	if got := nodes[1].write("b", 0, 50, slot+1, 2); got.Accepted != 50 || got.ReceivedPoints() != 50 {
		t.Errorf("with a node down: %+v", got)
	}
	nodes[1].write("new", 0, 50, slot+1, 3) // a bucket that the one that is down does not know
	nodes[0].awaitValue("b", 0, 50, slot, 1)
	nodes[1].awaitValue("new", 0, 50, slot+1, 3)
	nodes[2].start()
	agree(t, nodes...)
	nodes[2].awaitValue("b", 0, 50, slot+1, 2)
	awaitEverywhere(t, nodes, "b", 0, 50, slot, 1)
	awaitEverywhere(t, nodes, "b", 0, 50, slot+1, 2)
	awaitEverywhere(t, nodes, "new", 0, 50, slot+1, 3)
	equal(t, nodes...)
	if got := nodes[2].write("b", 0, 50, slot+2, 4); got.Accepted != 50 {
		t.Errorf("through the one that is back: %+v", got)
	}
}

// A node that did not run for a while begins with the others as after a start, before it answers
// anything.
func TestAPausedNodeBeginsAgain(t *testing.T) {
	nodes := startNodes(t, 3, nil)
	slot := base()
	nodes[0].write("b", 0, 50, slot, 1)
	paused := nodes[2].c
	connections := func() (n uint64) {
		for _, s := range paused.Peers() {
			n += s.Connections
		}
		return n
	}
	before := connections()
	paused.pulse.last.Store(-int64(2 * paused.pulse.limit))
	if paused.ready() || (Tags{c: paused}).Ready() == nil {
		t.Error("it answers as if nothing had been")
	}
	waitFor(t, "connections are made again", func() bool { return connections() > before })
	agree(t, nodes...)
	nodes[2].awaitValue("b", 0, 50, slot, 1)
	if got := nodes[2].write("b", 0, 50, slot+1, 2); got.Accepted != 50 {
		t.Errorf("it takes %+v", got)
	}
}

// Who has no connection to this node takes it for down: then it is down here, too.
func TestUpIsBothWays(t *testing.T) {
	nodes := startNodes(t, 2, nil)
	here, other := nodes[0].c, nodes[1].c.Self()
	here.setConnected(other, false)
	awaitDown(t, other, nodes[0])
	here.setConnected(other, true)
	agree(t, nodes...)
}

// What was acknowledged is there after all nodes have lost power at once.
func TestAllNodesLosePower(t *testing.T) {
	nodes := startNodes(t, 3, nil)
	slot := base()
	for i := range uint64(5) {
		if got := nodes[i%3].write("b", 0, 20, slot+i, int64(i+1)); got.StoredPoints() != 20 {
			t.Errorf("%+v", got)
		}
	}
	disks := make([]*vfs.MemFS, len(nodes))
	for i, n := range nodes {
		disks[i] = n.fs.CrashClone(noUnsynced)
	}
	for i, n := range nodes {
		n.end()
		n.fs = disks[i]
	}
	nodes[0].join = nil
	nodes[0].start()
	for _, n := range nodes[1:] {
		n.join = []string{nodes[0].c.Gossip().Addr()}
		n.start()
	}
	agree(t, nodes...)
	for i := range uint64(5) {
		awaitEverywhere(t, nodes, "b", 0, 20, slot+i, int64(i+1))
	}
	equal(t, nodes...)
}

// A series that was deleted while a node was down does not come back with it.
func TestDeletedWhileDown(t *testing.T) {
	nodes := startNodes(t, 3, nil)
	slot := base()
	nodes[0].write("b", 0, 20, slot, 1)
	awaitEverywhere(t, nodes, "b", 0, 20, slot, 1)
	lost := nodes[2].c.Self()
	nodes[2].end()
	awaitDown(t, lost, nodes[:2]...)
	ctx := context.Background()
	for i := range 10 {
		r, err := nodes[0].c.Store().DeleteSeries(ctx, "b", deletion.Choice{Key: key(t, i)}, i == 9)
		if err != nil || r.Series != 1 {
			t.Fatalf("series %d: %+v, %v", i, r, err)
		}
	}
	if _, err := nodes[0].c.Store().DeleteSeries(ctx, "b", deletion.Choice{Key: key(t, 99)},
		false); !errors.Is(err, deletion.ErrUnknownSeries) {
		t.Errorf("an unknown series: %v", err)
	}
	nodes[2].start()
	agree(t, nodes...)
	for _, n := range nodes {
		for i := range 20 {
			waitFor(t, fmt.Sprintf("series %d at %s", i, n.name), func() bool {
				_, ok := n.local("b", i, slot)
				return ok == (i >= 9)
			})
		}
	}
	equal(t, nodes...)
	if got := nodes[2].write("b", 0, 1, slot, 7); got.Accepted != 1 {
		t.Errorf("the series anew: %+v", got)
	}
	awaitEverywhere(t, nodes, "b", 0, 1, slot, 7)
}

// Both sides of a partition of the network keep what they were given, and the larger value stays.
func TestBothSidesOfAPartition(t *testing.T) {
	nodes := startNodes(t, 3, func(o *Options) {
		o.Quorums = func(int, int) (r, w int) { return 1, 1 }
		o.Pace.Timeout = time.Second
	})
	slot := base()
	nodes[0].write("b", 0, 30, slot, 1)
	awaitEverywhere(t, nodes, "b", 0, 30, slot, 1)
	for _, n := range nodes {
		n.cut.Store(true)
	}
	nodes[0].write("b", 0, 30, slot+1, 5)
	nodes[1].write("b", 0, 30, slot+1, 6)
	nodes[2].write("b", 10, 30, slot+1, 4)
	if _, ok := nodes[2].local("b", 0, slot+1); ok {
		t.Error("a frame went through the cut")
	}
	for _, n := range nodes {
		n.cut.Store(false)
	}
	awaitEverywhere(t, nodes, "b", 0, 30, slot+1, 6)
	awaitEverywhere(t, nodes, "b", 30, 10, slot+1, 4)
	equal(t, nodes...)
}

// Stale markers reach all copies, and a value stays wherever any side of a partition has one.
func TestStaleMarkersOnBothSides(t *testing.T) {
	nodes := startNodes(t, 3, func(o *Options) {
		o.Quorums = func(int, int) (r, w int) { return 1, 1 }
		o.Pace.Timeout = time.Second
	})
	slot := base()
	nodes[0].write("b", 0, 30, slot, 1)
	awaitEverywhere(t, nodes, "b", 0, 30, slot, 1)
	info, err := nodes[0].c.Store().BucketByName("b")
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range nodes {
		n.cut.Store(true)
	}
	nodes[0].writeTo(info, 0, 10, slot+1, 5)
	nodes[1].writeWord(info, 0, 30, slot+1, point.Stale)
	// Until the node has seen that the others are cut off, nobody confirms what it writes.
	deadline := time.Now().Add(30 * time.Second)
	for got := nodes[1].writeWord(info, 0, 30, slot, point.Stale); got.Conflicting != 30; {
		if time.Now().After(deadline) {
			t.Fatalf("stale markers over values: %+v", got)
		}
		got = nodes[1].writeWord(info, 0, 30, slot, point.Stale)
	}
	nodes[2].writeWord(info, 20, 10, slot+1, point.Stale)
	for _, n := range nodes {
		n.cut.Store(false)
	}
	awaitEverywhere(t, nodes, "b", 0, 10, slot+1, 5)
	equal(t, nodes...)
	nodes[2].writeTo(info, 20, 10, slot+1, 6) // comes after all
	awaitEverywhere(t, nodes, "b", 20, 10, slot+1, 6)
	equal(t, nodes...)
	awaitEverywhere(t, nodes, "b", 0, 30, slot, 1)
	for _, n := range nodes {
		for i := range 30 {
			of, plain, marked := n.c.Store(), [1]uint64{}, [1]uint64{}
			err := errors.Join(of.Read(t.Context(), info, key(t, i), int64(slot)+1, plain[:]),
				of.ReadWithStale(t.Context(), info, key(t, i), int64(slot)+1, marked[:], nil))
			want := [3]uint64{point.FromInt(5), point.Stale, point.FromInt(6)}[i/10]
			if hidden := want; err != nil || marked[0] != want || hidden != point.Stale &&
				plain[0] != want || hidden == point.Stale && plain[0] != point.Unset {
				t.Errorf("series %d through %s: %x and %x, want %x: %v", i, n.name, plain[0], marked[0], want,
					err)
			}
		}
	}
}

// Points that too few nodes confirm are counted as that, and the account says so.
func TestUnconfirmed(t *testing.T) {
	nodes := startNodes(t, 3, func(o *Options) { o.Pace.Timeout = 500 * time.Millisecond })
	slot := base()
	nodes[0].write("b", 0, 10, slot, 1)
	nodes[0].cut.Store(true)
	got := nodes[0].write("b", 0, 10, slot+1, 2)
	if got.Refused[account.Unconfirmed] != 10 || got.ReceivedPoints() != 10 {
		t.Errorf("alone: %+v", got)
	}
	info, err := nodes[0].store.BucketByName("b")
	if err != nil {
		t.Fatal(err)
	}
	if total := nodes[0].store.Account().Total(info.ID); total.Refused[account.Unconfirmed] != 10 ||
		total.Accepted != 10 {
		t.Errorf("the account has %+v", total)
	}
	nodes[0].cut.Store(false)
}

// Points are refused for the reasons of a single node, and counted once.
func TestRefusals(t *testing.T) {
	nodes := startNodes(t, 1, nil)
	p := nodes[0].c.Points()
	info, err := nodes[0].c.Store().CreateBucket(buckets.Info{Name: "h", Resolution: 1000, PPF: 10,
		TTL: 1000, HPTS: true})
	if err != nil {
		t.Fatal(err)
	}
	var got account.Counts
	s, err := p.Open(info, write.Options{Report: func(_ write.Token, c account.Counts) {
		got.Add(&c)
	}})
	if err != nil {
		t.Fatal(err)
	}
	now := base()
	s.Append([]write.Point{
		{Key: key(t, 1), Slot: now, Word: point.FromInt(1)},
		{Key: key(t, 1), Slot: now, Word: point.FromInt(1)},
		{Key: key(t, 1), Slot: now - 10000, Word: point.FromInt(1)},
		{Key: key(t, 1), Slot: now + 10000, Word: point.FromInt(1)},
		{Key: nil, Slot: now, Word: point.FromInt(1)},
		{Key: key(t, 1), Slot: now, Word: 3 << 56},
		{Key: key(t, 1), Slot: now, Word: point.Unset},
		{Key: key(t, 1), Slot: now, Word: point.FromInt(1), Time: 1},
	})
	token, err := s.Commit()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.WaitDurable(context.Background(), token); err != nil {
		t.Fatal(err)
	}
	want := account.Counts{Accepted: 1, Duplicate: 1, Unset: 1}
	for _, r := range []account.Reason{account.Expired, account.Future, account.EmptyName,
		account.BadType, account.BadTimestamp} {
		want.Refused[r] = 1
	}
	if got != want {
		t.Errorf("reported %+v, want %+v", got, want)
	}
	if total := nodes[0].store.Account().Total(info.ID); total != want {
		t.Errorf("the account has %+v, want %+v", total, want)
	}
	if err := nodes[0].c.Store().DeleteBucket("h"); err != nil {
		t.Fatal(err)
	}
	got = account.Counts{}
	s.Point(key(t, 1), now, point.FromInt(1))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if got.Refused[account.BucketDeleted] != 1 {
		t.Errorf("after the deletion %+v", got)
	}
}
