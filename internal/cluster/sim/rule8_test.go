package sim

import (
	"slices"
	"testing"

	"dalmatiner/internal/cluster/replication"
	"dalmatiner/internal/cluster/ring"
	"dalmatiner/internal/model/metric"
)

// A member that joins is one more acknowledgement, and none of the W.
func TestRule8TheJoinerIsRequiredBesides(t *testing.T) {
	c := calm(2, 2, 2)
	if err := c.Join(-1); err != nil {
		t.Fatal(err)
	}
	c.Run(100)
	s := c.joiningSeries(t, 2)
	c.nodes[2].disk.full = true
	awaitReply(t, c, c.Write(0, point(s, 1, 7)), false)
	c.nodes[2].disk.full = false
	awaitReply(t, c, c.Write(0, point(s, 2, 7)), true)
	if got := c.word(2, s, 2); got != 7 {
		t.Errorf("it holds %d", got)
	}
	c.Crash(1)
	c.Run(100)
	awaitReply(t, c, c.Write(0, point(s, 3, 7)), false)
}

// joiningSeries returns a series that a node will own and does not own yet.
func (c *Cluster) joiningSeries(t *testing.T, node int) metric.SeriesID {
	t.Helper()
	for n := range 100 {
		s := Series(n)
		own, _ := owners(c, s)
		if c.view.Owns(c.nodes[node].id, c.view.Partition(s), 0) && !slices.Contains(own, node) {
			return s
		}
	}
	t.Fatal("there is none")
	return metric.SeriesID{}
}

// The owners before have different points and do not reach each other: the joiner gets the union
// before the ring is complete, and what is given up is dropped only when the owners have it.
func TestRule8TheJoinerEqualsTheUnion(t *testing.T) {
	c := calm(2, 2, 1)
	c.Split(0)
	c.Run(100)
	for n := range 20 {
		awaitReply(t, c, c.Write(0, point(Series(n), 1, 10)), true)
		awaitReply(t, c, c.Write(1, point(Series(n), 2, 20)), true)
	}
	hinted := c.allHints()
	if err := c.Join(-1); err != nil || hinted != 0 {
		t.Fatal(err, hinted)
	}
	joined := 2
	c.adopt(c.nodes[1], c.view) // they do not reach each other
	c.adopt(c.nodes[joined], c.view)
	if c.Finish() || c.nodes[joined].core.PendingPartitions() == 0 {
		t.Fatal("the ring is complete before anything moved")
	}
	s := c.joiningSeries(t, joined)
	runUntil(t, c, "the joiner has everything", c.Finish)
	if a, b := c.word(joined, s, 1), c.word(joined, s, 2); a != 10 || b != 20 {
		t.Errorf("the ring is complete, the joiner holds %d and %d", a, b)
	}
	awaitSettled(t, c)
}

// joinOne writes series to two nodes with n = 1, lets a third join, and returns a series that it
// will own, and its owner.
func (c *Cluster) joinOne(t *testing.T) (s metric.SeriesID, owner int) {
	t.Helper()
	for n := range 20 {
		awaitReply(t, c, c.Write(0, point(Series(n), 1, 10)), true)
	}
	if err := c.Join(-1); err != nil {
		t.Fatal(err)
	}
	c.Run(40)
	s = c.joiningSeries(t, 2)
	own, _ := owners(c, s)
	return s, own[0]
}

// A hint for an owner that leaves comes to it after the comparison with its successor. The
// successor gets the hint too.
func TestRule8AHintBehindAMoveReachesTheNewOwner(t *testing.T) {
	c, s := calm(3, 1, 1), Series(1)
	own, _ := owners(c, s)
	owner := own[0]
	c.Crash(owner)
	c.Run(100)
	keeper, _ := standIn(c, s)
	awaitReply(t, c, c.Write(keeper.number, point(s, 1, 7)), true)
	c.nodes[owner].disk.full = true // it takes no hint, and gives what it has
	c.Start(owner)
	if err := c.Plan(ring.Change{Action: ring.Leave, Node: c.nodes[owner].String()}); err != nil ||
		c.allHints() != 1 {
		t.Fatal(err, c.allHints())
	}
	heir := c.nodeOf(c.view.Owners(nil, c.view.Partition(s), ring.Future, 0)[0])
	runUntil(t, c, "everything is compared", func() bool {
		return heir.view == c.view && heir.core.PendingPartitions() == 0
	})
	c.nodes[owner].disk.full = false
	runUntil(t, c, "the hint is delivered", func() bool { return c.allHints() == 0 })
	runUntil(t, c, "the change is complete", c.Finish)
	if got := c.word(heir.number, s, 1); got != 7 {
		t.Errorf("the new owner holds %d", got)
	}
}

// A node that has given up a partition keeps it until all who own it have everything.
func TestRule8APartitionIsDroppedLast(t *testing.T) {
	c := calm(2, 1, 1)
	s, own := c.joinOne(t)
	runUntil(t, c, "the joiner has everything", func() bool {
		return c.nodes[2].core.PendingPartitions() == 0 && c.nodes[own].view == c.view
	})
	c.Cut(own, 2)
	late := replication.Row{Series: s, Slot: 5, Value: replication.Value{Word: 5}}
	c.nodes[own].disk.Merge(replication.Change{Partition: c.view.Partition(s),
		Rows: []replication.Row{late}})
	c.view = must(c.view.Finish())
	for _, n := range c.nodes {
		c.adopt(n, c.view)
	}
	c.Run(1000)
	if got := c.word(own, s, 5); got != 5 {
		t.Fatalf("it was dropped before the new owner could have it: %d", got)
	}
	c.nodes[2].stuck = true
	c.Heal()
	runUntil(t, c, "the new owner has it, but not on disk",
		func() bool { return c.word(2, s, 5) == 5 })
	c.Run(3 * comparing)
	if got := c.word(own, s, 5); got != 5 {
		t.Fatalf("it was dropped before the new owner had it on disk: %d", got)
	}
	c.nodes[2].stuck = false
	runUntil(t, c, "it is dropped",
		func() bool { return len(c.nodes[own].disk.seriesOf(s).slots) == 0 })
	if got := c.word(2, s, 5); got != 5 {
		t.Errorf("the new owner holds %d", got)
	}
}

// What others own is kept for a time after all of them have it.
func TestRule8APartitionIsKeptForATime(t *testing.T) {
	c := New(Options{Seed: 1, Nodes: 2, Partitions: 4, N: 1, W: 1, R: 1, Calm: true,
		Paging: PageLimits{DropMS: 20 * comparing}})
	s, own := c.joinOne(t)
	old := c.nodes[own]
	runUntil(t, c, "the ring has changed", func() bool { return c.Finish() })
	of := replication.Share{Partition: c.view.Partition(s)}
	given := func() bool {
		return slices.ContainsFunc(old.core.Progress(), func(p replication.Progress) bool {
			return p.Share == of && p.From == old.id && p.Done
		})
	}
	runUntil(t, c, "the new owner has all of it", given)
	c.Run(19 * comparing)
	if got := c.word(own, s, 1); got != 10 {
		t.Fatalf("it was dropped before its time: %d", got)
	}
	runUntil(t, c, "it is dropped", func() bool { return len(old.disk.seriesOf(s).slots) == 0 })
	if got := c.word(2, s, 1); got != 10 {
		t.Errorf("the new owner holds %d", got)
	}
}

// What was compared under another ring does not count: the joiner begins anew.
func TestRule8AnotherRingBeginsAnew(t *testing.T) {
	c := calm(2, 2, 2)
	awaitReply(t, c, c.Write(0, point(Series(1), 1, 10)), true)
	if err := c.Join(-1); err != nil {
		t.Fatal(err)
	}
	runUntil(t, c, "the joiner has everything", func() bool {
		return c.nodes[2].view == c.view && c.nodes[2].core.PendingPartitions() == 0
	})
	view := must(ring.New(ring.Config{Number: c.view.Version().Number + 1, Partitions: 4, Copies: 2,
		Members: c.view.Members()}))
	c.adopt(c.nodes[2], view)
	if c.nodes[2].core.PendingPartitions() == 0 {
		t.Error("it relies on what it compared before")
	}
}

// A member that has left may be the last to hear of that. Until then it asks one that stays: that
// one has heard, and does not answer under the ring before.
func TestRule8AMemberThatLeavesAsksOneThatStays(t *testing.T) {
	for _, n := range []int{1, 2} {
		c, s := calm(3, n, n), Series(1)
		own, _ := owners(c, s)
		leaver := c.nodes[own[0]]
		if err := c.Plan(ring.Change{Action: ring.Leave, Node: leaver.String()}); err != nil {
			t.Fatal(err)
		}
		c.Run(100)
		before := c.Read(leaver.number, s, 0, 2)
		runUntil(t, c, "an answer while it leaves", func() bool { return c.reads[before].Done })
		c.deaf = leaver
		runUntil(t, c, "the end of the change", c.Finish)
		c.Run(100)
		awaitReply(t, c, c.Write((own[0]+1)%3, point(s, 1, 7)), true)
		late := c.Read(leaver.number, s, 0, 2)
		c.Run(300)
		if r, is := c.reads[late]; is && r.Done {
			t.Errorf("n = %d: the node that has left and does not know it answers: %+v", n, r)
		}
	}
}

// A node that knows the ring before reads by it. So nothing is acknowledged under a ring before all
// who are up know it.
func TestRule8NothingIsAcknowledgedBeforeAllKnowTheRing(t *testing.T) {
	c, s := calm(3, 2, 2), Series(1)
	own, others := owners(c, s)
	if err := c.Plan(ring.Change{Action: ring.SetCopies, Copies: 3}); err != nil {
		t.Fatal(err)
	}
	c.Run(200)
	c.deaf = c.nodes[own[1]]
	runUntil(t, c, "the end of the change", c.Finish)
	e := c.Write(others[0], point(s, 1, 7)) // two that know the ring have it soon
	c.Run(400)
	if e.Answered {
		t.Fatalf("it is acknowledged, and n%d does not know the ring: %+v", own[1], e.Reply)
	}
	c.deaf = nil
	awaitReply(t, c, e, true)
}
