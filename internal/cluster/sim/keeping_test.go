package sim

import (
	"slices"
	"testing"

	"dalmatiner/internal/cluster/replication"
	"dalmatiner/internal/cluster/ring"
	"dalmatiner/internal/model/metric"
)

// standIn returns who keeps hints of a series while one of its owners is down, and another node
// that is no owner.
func standIn(c *Cluster, s metric.SeriesID) (keeper, other *node) {
	up := func(id ring.ID) bool { return c.nodeOf(id).core != nil }
	for _, t := range c.view.Targets(nil, c.view.Partition(s), 0, up) {
		if t.Hint() {
			keeper = c.nodeOf(t.Node)
		}
	}
	_, others := owners(c, s)
	for _, i := range others {
		if c.nodes[i] != keeper {
			other = c.nodes[i]
		}
	}
	return keeper, other
}

// Rule 5: fallbacks answer reads. The first hint of a partition is acknowledged when all nodes that
// are up have heard of its keeper. So a read that begins after the reply meets the point, at any
// node.
func TestRule5AHintIsAcknowledgedWhenAllHaveHeardOfIt(t *testing.T) {
	c, s := calm(5, 3, 2), Series(1)
	own, _ := owners(c, s)
	c.Crash(own[1])
	c.Run(100)
	keeper, reader := standIn(c, s)
	c.nodes[own[2]].disk.full = true // so the hint is the second copy
	c.Cut(keeper.number, reader.number)
	e := c.Write(own[0], point(s, 1, 7))
	c.Run(300)
	if e.Answered {
		t.Fatalf("it is acknowledged, and n%d does not know that n%d keeps hints: %+v", reader.number,
			keeper.number, e.Reply)
	}
	c.Heal()
	awaitReply(t, c, e, true)
	if list := reader.core.Holders(nil, c.view.Partition(s)); !slices.Contains(list, keeper.id) {
		t.Errorf("the reader knows that %v keep hints", list)
	}
	again := c.Write(own[0], point(s, 2, 7)) // the second one waits for nobody
	c.Cut(keeper.number, reader.number)
	awaitReply(t, c, again, true)
}

// A node that starts while one that keeps hints is down hears of it from the others: it needs the
// answer of one owner more.
func TestRule5OthersTellWhoKeepsHints(t *testing.T) {
	c, s := calm(5, 3, 2), Series(1)
	c.options.R = 2
	own, _ := owners(c, s)
	c.Crash(own[1])
	c.Run(100)
	keeper, reader := standIn(c, s)
	c.nodes[own[2]].disk.full = true
	awaitReply(t, c, c.Write(own[0], point(s, 1, 7)), true)
	c.Crash(keeper.number)
	c.Crash(reader.number)
	c.Crash(own[0]) // with the keeper, who else has the point
	c.nodes[own[2]].disk.full = false
	c.Start(own[1])
	c.Start(reader.number)
	c.Run(300)
	if list := reader.core.Holders(nil, c.view.Partition(s)); !slices.Contains(list, keeper.id) {
		t.Fatalf("the reader knows that %v keep hints", list)
	}
	request := c.Read(reader.number, s, 1, 2)
	runUntil(t, c, "an answer", func() bool { _, ok := c.reads[request]; return ok })
	if got := c.reads[request]; got.Done {
		t.Errorf("all who have the point are down, and the read is done: %+v", got)
	}
	c.Start(own[0])
	c.Run(300)
	request = c.Read(reader.number, s, 1, 2)
	runUntil(t, c, "an answer", func() bool { _, ok := c.reads[request]; return ok })
	if got := c.reads[request]; !got.Done || got.Slots[0].Value.Word != 7 {
		t.Errorf("all owners are up, and read is %+v", got)
	}
}

// A hint that is delivered while a read is under way is with its owner before it is gone: so who
// keeps hints answers before an owner is asked.
func TestRule5WhoKeepsHintsAnswersFirst(t *testing.T) {
	c, s := calm(5, 3, 2), Series(1)
	own, _ := owners(c, s)
	c.Crash(own[1])
	c.Run(100)
	keeper, reader := standIn(c, s)
	awaitReply(t, c, c.Write(own[0], point(s, 1, 7)), true)
	c.nodes[own[1]].disk.full = true // the hint stays
	c.Start(own[1])
	c.Run(300)
	heard := false
	c.watch = func(from, to *node, m replication.Message) {
		switch m.(type) {
		case replication.FetchReply:
			heard = heard || from == keeper
		case replication.Fetch:
			if to != keeper && !heard {
				t.Errorf("%v is asked before %v has answered", to, keeper)
			}
		}
	}
	request := c.Read(reader.number, s, 1, 2)
	runUntil(t, c, "an answer", func() bool { _, ok := c.reads[request]; return ok })
	if got := c.reads[request]; !heard || !got.Done || got.Slots[0].Value.Word != 7 {
		t.Errorf("read %+v, heard %t", got, heard)
	}
}

// A node that was stopped was taken for down, and others stood in for it. It answers when it has
// heard of that.
func TestAStoppedNodeHearsFirst(t *testing.T) {
	c, s := calm(3, 2, 2), Series(1)
	own, _ := owners(c, s)
	stopped, other := own[0], own[1]
	c.Stop(stopped, 500)
	c.Run(100)
	awaitReply(t, c, c.Write(other, point(s, 1, 7)), true)
	if c.allHints() == 0 {
		t.Fatal("nobody stood in, the test shows nothing")
	}
	for i := range c.nodes {
		c.Cut(i, stopped)
	}
	c.Run(c.nodes[stopped].asleep - c.now)
	request := c.Read(stopped, s, 1, 2)
	c.Run(patience / 2)
	c.Heal()
	runUntil(t, c, "an answer", func() bool { _, ok := c.reads[request]; return ok })
	if got := c.reads[request]; !got.Done || got.Slots[0].Value.Word != 7 {
		t.Errorf("it reads %+v", got)
	}
	awaitSettled(t, c)
}

// A node that was stopped does not know who keeps hints for others, either: it reads when it has
// reached them.
func TestAStoppedNodeReadsWhenItHasHeard(t *testing.T) {
	c, s := calm(4, 2, 2), Series(1)
	own, _ := owners(c, s)
	missed, has := own[0], own[1]
	c.Crash(missed)
	c.Run(100)
	keeper, stopped := standIn(c, s)
	c.Stop(stopped.number, 1000)
	c.Run(100)
	awaitReply(t, c, c.Write(has, point(s, 1, 7)), true)
	c.Crash(has)
	c.Cut(keeper.number, missed)
	c.Cut(keeper.number, stopped.number)
	c.Start(missed)
	c.Run(stopped.asleep - c.now)
	request := c.Read(stopped.number, s, 1, 2)
	c.Run(patience / 2)
	if got, ok := c.reads[request]; ok {
		t.Fatalf("it has not reached %v, and reads %+v", keeper, got)
	}
	delete(c.cut, [2]int{keeper.number, stopped.number})
	runUntil(t, c, "an answer", func() bool { _, ok := c.reads[request]; return ok })
	if got := c.reads[request]; !got.Done || got.Slots[0].Value.Word != 7 {
		t.Errorf("it reads %+v", got)
	}
	awaitSettled(t, c)
}
