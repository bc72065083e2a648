package sim

import (
	"fmt"
	"slices"
	"testing"

	"dalmatiner/internal/cluster/replication"
	"dalmatiner/internal/cluster/ring"
	"dalmatiner/internal/model/metric"
)

// calm is a cluster in which no message is lost.
func calm(nodes, n, w int) *Cluster {
	c := New(Options{Seed: 1, Nodes: nodes, Partitions: 4, N: n, W: w, R: 1, MaxHints: 100,
		Calm: true})
	c.Run(100)
	return c
}

func point(s metric.SeriesID, slot, word uint64) []replication.Row {
	return []replication.Row{{Series: s, Slot: slot, Value: replication.Value{Word: word}}}
}

// runUntil lets time pass until something holds.
func runUntil(t *testing.T, c *Cluster, what string, holds func() bool) {
	t.Helper()
	for end := c.now + 10_000; !holds(); {
		if c.Run(1); c.now >= end {
			t.Fatalf("not within 10 s: %s\n%s", what, c.History())
		}
	}
}

// awaitReply waits for a reply and checks whether W copies were written.
func awaitReply(t *testing.T, c *Cluster, e *Entry, done bool) {
	t.Helper()
	runUntil(t, c, "a reply", func() bool { return e.Answered })
	if e.Reply.Done != done {
		t.Fatalf("%v: done is %t: %+v\n%s", e, !done, e.Reply.Counts, c.History())
	}
}

func awaitSettled(t *testing.T, c *Cluster) {
	t.Helper()
	if err := c.Settle(10_000); err != nil {
		t.Fatalf("%v\n%s", err, c.History())
	}
}

// owners returns the numbers of the nodes that own a series, then those of the others.
func owners(c *Cluster, s metric.SeriesID) (own, others []int) {
	for _, id := range c.view.Owners(nil, c.view.Partition(s), ring.Current, 0) {
		own = append(own, c.nodeOf(id).number)
	}
	for i := range c.nodes {
		if !slices.Contains(own, i) {
			others = append(others, i)
		}
	}
	return own, others
}

func (c *Cluster) word(node int, s metric.SeriesID, slot uint64) uint64 {
	return c.nodes[node].disk.seriesOf(s).slots[slot].Word
}

func (c *Cluster) allHints() (n int) {
	for _, node := range c.nodes {
		n += len(node.disk.hints)
	}
	return n
}

func TestRule1AllCopiesHoldTheLargestWord(t *testing.T) {
	c, s := calm(3, 3, 1), Series(1)
	c.Split(0)
	awaitReply(t, c, c.Write(0, point(s, 1, 20)), true)
	awaitReply(t, c, c.Write(1, point(s, 1, 10)), true)
	awaitSettled(t, c)
	e := c.Write(2, point(s, 1, 5))
	awaitReply(t, c, e, true)
	if want := (replication.Counts{Conflicting: 1}); e.Reply.Counts != want {
		t.Errorf("a smaller word: %+v", e.Reply.Counts)
	}
	for i := range c.nodes {
		if got := c.word(i, s, 1); got != 20 {
			t.Errorf("n%d holds %d", i, got)
		}
	}
}

// A node is down while a series is deleted and created again with a smaller word.
// A node that comes back learns of deletions before it answers reads.
// A live row behind a deletion that its coordinator does not know is refused, and sent again.
// A deletion hides what is there, also where the clock of its node is behind.
func TestRule4OthersRefuse(t *testing.T) {
	c, s := calm(5, 2, 2), Series(1)
	own, others := owners(c, s)
	key := replication.Key{
		Batch:     replication.BatchID{Coordinator: c.nodes[own[0]].id, Boot: 1, Number: 1},
		Partition: c.view.Partition(s)}
	ask := func(to int, owner ring.ID, version ring.Version) replication.Refusal {
		key.Batch.Number++
		key.For = owner
		n := c.nodes[to]
		n.core.Receive(c.time(n), c.nodes[own[0]].id, replication.Write{Key: key, Version: version,
			Change: replication.Change{Partition: key.Partition, Rows: point(s, 1, 1)}})
		n.core.SyncedUpTo(c.time(n), replication.Position(len(n.disk.log)))
		var refusal replication.Refusal
		answer := func() (found bool) {
			sends, _ := n.core.Take()
			for _, s := range sends {
				switch m := s.Message.(type) {
				case replication.WriteReply:
					refusal, found = m.Refusal, true
				case replication.Keeps: // a stand-in answers when all have heard that it keeps hints
					n.core.Receive(c.time(n), s.To, replication.KeepsReply{Boot: m.Boot, Number: m.Number})
				}
			}
			return found
		}
		for tries := 1; !answer(); tries++ {
			if tries == 2 {
				t.Fatal("a write is not answered")
			}
		}
		return refusal
	}
	now, old := c.view.Version(), c.view.Version()
	old.Sum++
	id := func(i int) ring.ID { return c.nodes[i].id }
	for _, test := range []struct {
		what    string
		to      int
		owner   ring.ID
		version ring.Version
		want    replication.Refusal
	}{
		{"an owner", own[1], id(own[1]), now, replication.Taken},
		{"an owner with another ring", own[1], id(own[1]), old, replication.OtherRing},
		{"no owner", others[0], id(others[0]), now, replication.NotMine},
		{"a stand-in for an owner", others[0], id(own[1]), now, replication.Taken},
		{"a stand-in for no owner", others[0], id(others[1]), now, replication.NotMine},
		{"an owner as a stand-in", own[1], id(own[0]), now, replication.NotMine},
	} {
		if got := ask(test.to, test.owner, test.version); got != test.want {
			t.Errorf("%s: refusal %d, want %d", test.what, got, test.want)
		}
	}
}

// A hint stands for a dead owner, answers reads, and goes when the owner has it on disk.
func TestRule5HintsForTheDead(t *testing.T) {
	c, s := calm(5, 3, 3), Series(1)
	own, others := owners(c, s)
	c.Crash(own[1])
	c.Run(100)
	awaitReply(t, c, c.Write(own[0], point(s, 1, 7)), true)
	if got := c.allHints(); got != 1 {
		t.Fatalf("%d hints", got)
	}
	c.options.R = 3
	request := c.Read(others[0], s, 1, 2)
	runUntil(t, c, "an answer", func() bool { _, ok := c.reads[request]; return ok })
	if got := c.reads[request]; got.Slots[0].Value.Word != 7 {
		t.Errorf("read %+v", got)
	}
	for _, i := range []int{own[0], own[2]} { // the hint only brings it
		c.Cut(i, own[1])
		c.Cut(own[1], i)
	}
	c.Start(own[1])
	runUntil(t, c, "the hint is delivered", func() bool { return c.allHints() == 0 })
	c.PowerOff(own[1])
	if got := c.word(own[1], s, 1); got != 7 {
		t.Errorf("the hint is gone, the owner holds %d after a power cut", got)
	}
}

// A full owner is not dead: nobody keeps hints for it.
func TestRule5NoHintsForFullOwners(t *testing.T) {
	c, s := calm(5, 3, 3), Series(1)
	own, _ := owners(c, s)
	c.nodes[own[1]].disk.full = true
	e := c.Write(own[0], point(s, 1, 7))
	awaitReply(t, c, e, false)
	if c.allHints() != 0 || e.Reply.Counts.Unconfirmed != 1 {
		t.Errorf("%d hints, %+v", c.allHints(), e.Reply.Counts)
	}
}

// At the limit a stand-in refuses; what it has stays.
func TestRule5TheLimitOfHintsRefuses(t *testing.T) {
	c := New(Options{Seed: 1, Nodes: 4, Partitions: 4, N: 3, W: 3, R: 1, MaxHints: 2, Calm: true})
	c.Run(100)
	s := Series(1)
	own, _ := owners(c, s)
	c.Crash(own[2])
	c.Run(100)
	for slot := range uint64(4) {
		awaitReply(t, c, c.Write(own[0], point(s, slot, 7)), slot < 2)
	}
	if got := c.allHints(); got != 2 {
		t.Errorf("%d hints", got)
	}
}

// An answer to a hint from before a restart says nothing of the hint that has its number now.
func TestRule5ALateAnswerDropsNoHint(t *testing.T) {
	c, s := calm(4, 3, 3), Series(1)
	own, others := owners(c, s)
	stand := c.nodes[others[0]]
	c.Crash(own[2])
	c.Run(100)
	awaitReply(t, c, c.Write(own[0], point(s, 1, 7)), true)
	late := replication.DeliverReply{
		ID: replication.HintID{Node: stand.id, Boot: stand.boot, Number: stand.disk.hints[0].Number}}
	c.Start(own[2])
	runUntil(t, c, "the hint is delivered", func() bool { return c.allHints() == 0 })
	c.Run(100) // that it is gone is synced
	c.Crash(own[2])
	c.Crash(stand.number)
	c.Start(stand.number)
	c.Run(100)
	awaitReply(t, c, c.Write(own[0], point(s, 2, 7)), true)
	c.Run(200)
	stand.core.Receive(c.time(stand), c.nodes[own[2]].id, late)
	if got := c.allHints(); got != 1 {
		t.Errorf("%d hints", got)
	}
}

// A member was removed by force, and its share has not moved yet: its hints go to the other owners,
// so that a member that keeps them can leave.
func TestRule5HintsForARemovedMember(t *testing.T) {
	c, s := calm(4, 3, 3), Series(1)
	own, _ := owners(c, s)
	c.Crash(own[2])
	c.Run(100)
	awaitReply(t, c, c.Write(own[0], point(s, 1, 7)), true)
	c.Lose(own[2])
	c.giveUp(own[2])
	runUntil(t, c, "the hint goes to others", func() bool { return c.allHints() == 0 })
	if !c.view.IsChanging() {
		t.Error("the ring was complete before")
	}
}

// The owner of a hint is lost for good: the hint goes to those who own its partition then.
func TestRule5HintsFollowTheOwners(t *testing.T) {
	c, s := calm(5, 2, 2), Series(1)
	own, _ := owners(c, s)
	c.Crash(own[1])
	c.Run(100)
	awaitReply(t, c, c.Write(own[0], point(s, 1, 7)), true)
	c.Lose(own[1])
	c.Lose(own[0]) // what is left is the hint
	for _, i := range own {
		if err := c.Plan(ring.Change{Action: ring.ForceRemove, Node: c.nodes[i].String()}); err != nil {
			t.Fatal(err)
		}
	}
	awaitSettled(t, c)
	own, _ = owners(c, s)
	for _, i := range own {
		if got := c.word(i, s, 1); got != 7 {
			t.Errorf("n%d owns it now and holds %d", i, got)
		}
	}
}

// Whatever happens behind an acknowledgement, the point and its account are there: all nodes
// lose what they had not synced.
func TestRule6AcknowledgedIsSynced(t *testing.T) {
	for seed := range uint64(30) {
		c := New(Options{Seed: seed, Nodes: 3, Partitions: 4, N: 3, W: 2, R: 1, MaxHints: 10})
		c.Run(300)
		s := Series(1)
		e := c.Write(int(seed%3), point(s, 1, 7))
		runUntil(t, c, "a reply", func() bool { return e.Answered })
		for i := range c.nodes {
			c.PowerOff(i)
		}
		copies := 0
		for i := range c.nodes {
			if c.word(i, s, 1) == 7 {
				copies++
			}
		}
		if copies < 2 || len(c.checkAccount()) > 0 {
			t.Fatalf("seed %d: %d copies, %q\n%s", seed, copies, c.checkAccount(), c.History())
		}
	}
}

func TestRule6FewerThanWIsUnconfirmed(t *testing.T) {
	c, s := calm(3, 3, 2), Series(1)
	c.Crash(1)
	c.Crash(2)
	c.Run(100)
	e := c.Write(0, append(point(s, 1, 7), point(s, 2, 8)...))
	awaitReply(t, c, e, false)
	if want := (replication.Counts{Unconfirmed: 2}); e.Reply.Counts != want ||
		len(c.checkAccount()) > 0 {
		t.Errorf("%+v, %q", e.Reply.Counts, c.checkAccount())
	}
	awaitSettled(t, c)
	if got := c.word(2, s, 1); got != 7 {
		t.Errorf("an unconfirmed point that was stored is not copied: %d", got)
	}
}

// Owners do a batch once: a repeat gets the same answer, and none when nobody waits any more.
func TestRule6OwnersDropRepeats(t *testing.T) {
	c, s := calm(3, 3, 2), Series(1)
	n := c.nodes[1]
	m := replication.Write{
		Key: replication.Key{Batch: replication.BatchID{Coordinator: c.nodes[0].id, Boot: 9, Number: 5},
			Partition: c.view.Partition(s), For: n.id}, Version: c.view.Version(),
		Change: replication.Change{Partition: c.view.Partition(s), Rows: point(s, 1, 7)}}
	ask := func() (answers []replication.Counts) {
		n.core.Receive(c.time(n), c.nodes[0].id, m)
		n.core.SyncedUpTo(c.time(n), replication.Position(len(n.disk.log)))
		sends, _ := n.core.Take()
		for _, s := range sends {
			if w, ok := s.Message.(replication.WriteReply); ok {
				answers = append(answers, w.Counts)
			}
		}
		return answers
	}
	once := []replication.Counts{{Accepted: 1}}
	if got := ask(); !slices.Equal(got, once) {
		t.Fatalf("answer %+v", got)
	}
	if got := ask(); !slices.Equal(got, once) {
		t.Errorf("answer to a repeat %+v", got)
	}
	c.PowerOff(1)
	c.Start(1)
	c.Run(100)
	if got := ask(); !slices.Equal(got, once) {
		t.Errorf("answer to a repeat behind a restart %+v", got)
	}
	late := m
	m.Batch.Number, m.Settled = 6, 6
	ask()
	m = late
	if got := ask(); len(got) != 0 {
		t.Errorf("answer to a batch that is settled %+v", got)
	}
}

// In a partition both sides accept with W = 2, and both have everything afterwards.
func TestRule5BothSidesAccept(t *testing.T) {
	c := calm(6, 3, 2)
	c.Split(0, 1, 2)
	c.Run(100)
	for n := range 8 {
		awaitReply(t, c, c.Write(0, point(Series(n), 1, 10)), true)
		awaitReply(t, c, c.Write(5, point(Series(n), 2, 20)), true)
	}
	awaitSettled(t, c)
	if wrong := c.Check(true, true); len(wrong) > 0 {
		t.Error(wrong)
	}
}

// The same seed gives the same history.
func TestASeedReplays(t *testing.T) {
	for name, p := range profiles {
		a, errA := Chaos(7, p)
		b, errB := Chaos(7, p)
		if a.History() != b.History() || fmt.Sprint(errA) != fmt.Sprint(errB) {
			t.Errorf("%s: two histories of one seed", name)
		}
	}
}

// What no rule can promise, as docs/decisions/what-deletions-cannot-promise.md tells it: an
// acknowledged point is taken by a deletion of the other side, which it could not know of. And a
// deleted point comes back that belongs to a later deletion by the clock of a node that was cut
// off.
