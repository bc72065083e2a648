package sim

import (
	"testing"

	"dalmatiner/internal/cluster/replication"
)

// A node that comes back is compared with the others at once, partition after partition: nobody
// could stand in for it, so there are no hints, and the turn of a partition may be long in coming.
func TestAnOwnerThatIsBackIsComparedSoon(t *testing.T) {
	c := New(Options{Seed: 1, Nodes: 3, Partitions: 16, N: 3, W: 2, R: 2, Calm: true,
		Paging: PageLimits{CompareMS: 3_600_000}})
	c.Run(5000)
	c.Crash(1)
	for i := range 64 {
		awaitReply(t, c, c.Write(0, point(Series(i), 1, uint64(i+1))), true)
	}
	if c.compareCopies() == nil {
		t.Fatal("the copies are equal, the test shows nothing")
	}
	c.Start(1)
	runUntil(t, c, "the copies are equal", func() bool { return c.compareCopies() == nil })
	compared := c.nodes[0].core.Stats().Comparisons
	c.Run(10_000)
	if again := c.nodes[0].core.Stats().Comparisons; again > compared+32 {
		t.Errorf("%d comparisons without a turn", again-compared)
	}
}

// A share of which a read has met copies that differ is compared soon, and not again and again.
func TestWhatAReadFoundIsComparedSoon(t *testing.T) {
	c, s := New(Options{Seed: 1, Nodes: 3, Partitions: 16, N: 3, W: 2, R: 2, Calm: true,
		Paging: PageLimits{CompareMS: 3_600_000}}), Series(1)
	c.Run(10_000)
	if _, err := c.nodes[2].disk.Merge(replication.Change{Rows: point(s, 1, 7)}); err != nil {
		t.Fatal(err)
	}
	c.Run(10_000)
	if c.compareCopies() == nil {
		t.Fatal("the copies are equal, the test shows nothing")
	}
	before := c.nodes[0].core.Stats().Comparisons
	for range 100 {
		c.nodes[0].core.Differs(c.time(c.nodes[0]), s, 0)
		c.Run(20)
	}
	if got := c.word(0, s, 1); got != 7 {
		t.Errorf("the reader holds %d", got)
	}
	if n := c.nodes[0].core.Stats().Comparisons - before; n != 2 {
		t.Errorf("%d comparisons, one with each peer is enough", n)
	}
}

// A member in maintenance is not asked for what it owns: another stands in for it, reads go on, and
// when it is over it gets what it missed.
func TestAMemberInMaintenance(t *testing.T) {
	c, s := calm(5, 3, 2), Series(1)
	c.options.R = 2
	own, _ := owners(c, s)
	keeper, _ := standIn(c, s)
	if keeper != nil {
		t.Fatal("somebody stands in for an owner that is up")
	}
	c.away[own[1]] = true
	c.Run(100)
	c.watch = func(_, to *node, m replication.Message) {
		switch m := m.(type) {
		case replication.Write:
			if to.number == own[1] {
				t.Errorf("it is asked to write for %v", m.For)
			}
		case replication.Fetch, replication.Compare, replication.Deliver:
			if to.number == own[1] {
				t.Errorf("it gets a %T", m)
			}
		}
	}
	for _, i := range own { // itself, too, as the node that a client speaks to
		awaitReply(t, c, c.Write(i, point(s, uint64(i+1), 7)), true)
		request := c.Read(i, s, uint64(i+1), uint64(i+2))
		runUntil(t, c, "an answer", func() bool { _, ok := c.reads[request]; return ok })
		if got := c.reads[request]; !got.Done || got.Slots[0].Value.Word != 7 {
			t.Errorf("read by n%d: %+v", i, got)
		}
	}
	if c.allHints() == 0 || c.word(own[1], s, uint64(own[0]+1)) != 0 {
		t.Errorf("%d hints, it holds %d", c.allHints(), c.word(own[1], s, uint64(own[0]+1)))
	}
	c.watch = nil
	clear(c.away)
	runUntil(t, c, "it has what it missed", func() bool {
		return c.allHints() == 0 && c.word(own[1], s, uint64(own[0]+1)) == 7
	})
	awaitSettled(t, c)
}
