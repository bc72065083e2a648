package cluster

import (
	"errors"
	"testing"
	"time"

	"dalmatiner/internal/model/account"
	"dalmatiner/internal/model/buckets"
)

// r and w of a bucket count for it alone, on all nodes and after a restart, and can change at any
// time.
func TestQuorumOfABucket(t *testing.T) {
	nodes := startNodes(t, 3, func(o *Options) { o.Pace.Timeout = time.Second })
	slot := base()
	for _, name := range []string{"all", "one", "usual"} {
		nodes[0].write(name, 0, 30, slot, 1)
		awaitEverywhere(t, nodes, name, 0, 30, slot, 1)
	}
	set := func(n *testNode, name string, r, w int) {
		t.Helper()
		if err := n.c.SetBucketQuorum(name, r, w); err != nil {
			t.Fatal(err)
		}
		for _, o := range nodes {
			waitFor(t, "the numbers of "+name, func() bool {
				q, err := o.c.BucketQuorum(name)
				return err == nil && q.OwnReads == r && q.OwnWrites == w
			})
		}
	}
	set(nodes[1], "all", 1, 3)
	set(nodes[2], "one", 1, 1)
	nodes[1].end()
	nodes[1].start()
	agree(t, nodes...)
	if q, err := nodes[1].c.BucketQuorum("all"); err != nil ||
		q != (BucketQuorum{Copies: 3, Reads: 1, Writes: 3, OwnReads: 1, OwnWrites: 3}) {
		t.Errorf("after a restart: %+v, %v", q, err)
	}
	write := func(n *testNode, name string, confirmed bool) {
		t.Helper()
		slot++
		if got := n.write(name, 0, 30, slot, 2); got.ReceivedPoints() != 30 ||
			(got.Accepted == 30) != confirmed || (got.Refused[account.Unconfirmed] == 30) == confirmed {
			t.Errorf("%s through %s: %+v, confirmed is to be %v", name, n.name, got, confirmed)
		}
	}
	for _, name := range []string{"all", "one", "usual"} {
		write(nodes[0], name, true)
	}
	nodes[2].end()
	waitFor(t, "one is down", func() bool {
		return len(*nodes[0].c.ups.Load()) == 2 && len(*nodes[1].c.ups.Load()) == 2
	})
	write(nodes[0], "all", false)
	write(nodes[0], "usual", true)
	up := nodes[:2]
	nodes = up
	set(up[1], "all", 1, 2)
	write(up[0], "all", true)
	up[1].end()
	waitFor(t, "two are down", func() bool { return len(*up[0].c.ups.Load()) == 1 })
	nodes = up[:1]
	write(up[0], "all", false)
	write(up[0], "usual", false)
	write(up[0], "one", true)
	up[0].awaitValue("one", 0, 30, slot, 2) // r = 1 and this node has all copies
	set(up[0], "all", 0, 1)
	write(up[0], "all", true)
}

// What cannot be is refused with the bounds.
func TestQuorumsThatCannotBe(t *testing.T) {
	nodes := startNodes(t, 1, nil)
	nodes[0].write("b", 0, 1, base(), 1)
	for _, n := range [][2]int{{4, 0}, {0, 4}, {-1, 1}, {1, -1}} {
		if err := nodes[0].c.SetBucketQuorum("b", n[0], n[1]); !errors.Is(err, buckets.ErrInvalid) {
			t.Errorf("%v: %v", n, err)
		}
	}
	if err := nodes[0].c.SetBucketQuorum(SelfMetrics, 1, 1); !errors.Is(err, buckets.ErrInvalid) {
		t.Errorf("a bucket of one node: %v", err)
	}
	if err := nodes[0].c.SetBucketQuorum("none", 1, 1); !errors.Is(err, buckets.ErrUnknown) {
		t.Errorf("no such bucket: %v", err)
	}
}

// copiesOf returns how many stores have a point of each of the first series, all together.
func copiesOf(nodes []*testNode, bucket string, series int, slot uint64) (sum int) {
	for _, n := range nodes {
		for i := 0; i < series && n.store != nil; i++ {
			if _, ok := n.local(bucket, i, slot); ok {
				sum++
			}
		}
	}
	return sum
}

// A bucket with an n of its own has as many copies, on the first owners of the ring, wherever
// points come in; its r and w follow from that n, and hints and comparisons keep to its owners.
func TestCopiesOfABucket(t *testing.T) {
	nodes := startNodes(t, 4, func(o *Options) { o.Pace.Timeout = time.Second })
	slot := base()
	const series = 60
	copies := func(name string) int { return copiesOf(nodes, name, series, slot) }
	ns := map[string]int{"one": 1, "two": 2, "four": 4}
	for name, n := range ns {
		info, err := nodes[n-1].c.Store().CreateBucket(buckets.Info{Name: name, Resolution: 1000,
			PPF: 604800, Copies: n})
		if err != nil || info.Copies != n {
			t.Fatalf("%+v, %v", info, err)
		}
		if got := nodes[n-1].write(name, 0, series, slot, 1); got.Accepted != series {
			t.Fatalf("%s: %+v", name, got)
		}
	}
	nodes[0].write("usual", 0, series, slot, 1)
	check := func(name string, want int) {
		t.Helper()
		waitFor(t, name+" has its copies", func() bool { return copies(name) == want*series })
		for _, n := range nodes {
			if n.c != nil {
				n.awaitValue(name, 0, series, slot, 1)
			}
		}
	}
	for name, n := range ns {
		check(name, n)
		if q, err := nodes[3].c.BucketQuorum(name); err != nil || q.Copies != n || q.Reads != n/2+1 ||
			q.Writes != n/2+1 {
			t.Errorf("%s: %+v, %v", name, q, err)
		}
	}
	check("usual", 3)
	lost := nodes[3].c.Self()
	nodes[3].kill()
	awaitDown(t, lost, nodes[:3]...)
	for name, n := range ns {
		if got := nodes[0].write(name, 0, series, slot+1, 2); got.Accepted != series && n < 4 {
			t.Errorf("with a stand-in %s: %+v", name, got)
		}
	}
	nodes[3].start()
	agree(t, nodes...)
	slot++
	for name, n := range ns {
		waitFor(t, name+" has its copies again", func() bool { return copies(name) == n*series })
	}
	// Comparisons go on, and bring nothing where it does not belong.
	before, _ := nodes[0].c.Figures()
	waitFor(t, "a further round of comparisons", func() bool {
		s, _ := nodes[0].c.Figures()
		return s.Comparisons > before.Comparisons+80
	})
	for name, n := range ns {
		if got := copies(name); got != n*series {
			t.Errorf("%s has %d copies of %d series", name, got, series)
		}
	}
	if _, err := nodes[0].c.Store().CreateBucket(buckets.Info{Name: "sixteen", Resolution: 1000,
		PPF: 1, Copies: 16}); !errors.Is(err, buckets.ErrInvalid) {
		t.Errorf("n = 16: %v", err)
	}
	if list := nodes[1].c.Store().Buckets(); list[1].Name != "one" || list[1].Copies != 1 {
		t.Errorf("%+v", list)
	}
}
