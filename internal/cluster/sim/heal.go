package sim

import (
	"errors"
	"fmt"
	"slices"

	"dalmatiner/internal/cluster/replication"
	"dalmatiner/internal/cluster/ring"
)

// Plan stages changes of the ring and commits them at the newest view of a node that is up.
func (c *Cluster) Plan(changes ...ring.Change) error {
	p, err := c.view.Plan(changes, ring.Sizes{}, c.rng)
	if err != nil {
		return err
	}
	c.note("the ring changes: %v", changes)
	return c.publish(must(c.view.Commit(p)))
}

// publish gives a new ring to one member, from which the others learn it. Where no member is
// up, nothing happens.
func (c *Cluster) publish(v *ring.View) error {
	for _, n := range c.nodes {
		if _, member := v.Member(n.id); member && n.isUp(c.now) {
			c.view = v
			c.adopt(n, v)
			return nil
		}
	}
	return errors.New("no member is up")
}

// republishRing gives the ring out again, where only members knew it that are lost.
func (c *Cluster) republishRing() {
	if slices.ContainsFunc(c.nodes, func(n *node) bool { return !n.gone && n.view == c.view }) {
		return
	}
	if c.publish(c.view) == nil {
		c.note("the ring is given out again")
	}
}

// Join starts a node with an empty disk, which joins or, unless the number is negative, replaces
// another.
func (c *Cluster) Join(replaces int) error { return c.Plan(c.newcomer(replaces)) }

// Lose takes the disk of a node for good.
func (c *Cluster) Lose(i int) {
	c.Crash(i)
	c.nodes[i].gone = true
	c.note("the disk of %v is lost", c.nodes[i])
}

// hasLostDisk reports whether a node lost its disk as a member.
func (n *node) hasLostDisk() bool { return n.gone && !n.left }

// Finish completes the changes under way, if every member that joins has everything and no
// member that leaves keeps hints. It reports whether it did.
func (c *Cluster) Finish() bool {
	c.republishRing()
	if !c.view.IsChanging() {
		return false
	}
	for _, m := range c.view.Members() {
		n := c.nodeOf(m.ID)
		switch {
		case m.State == ring.Removed:
		case !n.isUp(c.now) || n.view != c.view || m.State == ring.Leaving && len(n.disk.hints) > 0 ||
			n.core.PendingPartitions() > 0:
			return false
		}
	}
	c.checkFetched()
	c.note("the ring is complete")
	before := c.view.Members()
	if c.publish(must(c.view.Finish())) != nil {
		return false
	}
	for _, m := range before {
		if m.State == ring.Leaving && !c.options.Calm && c.rng.IntN(2) == 0 {
			c.scheduleAfter(c.rng.Int64N(5*stepMS), func() { c.takeAway(c.nodeOf(m.ID)) })
		}
	}
	return true
}

// Undo takes back the changes under way.
func (c *Cluster) Undo() error {
	c.note("the change is taken back")
	return c.publish(must(c.view.Undo()))
}

// Settle ends all faults and waits until nothing is under way: every node has the ring, no hint is
// kept, copies are equal and nobody has points that it does not own. It says what is left
// after some time.
func (c *Cluster) Settle(ms int64) error {
	c.Heal()
	clear(c.away)
	c.holdMoves(false)
	c.options.Calm = true
	c.Run(100) // faults that were about to happen
	for _, n := range c.nodes {
		n.disk.full, n.skew = false, 0
	}
	var left error
	for end := c.now + ms; c.now < end; {
		for i := range c.nodes {
			c.Start(i)
			c.giveUp(i)
		}
		c.Run(200)
		c.Finish()
		if left = c.convergenceError(); left == nil {
			return nil
		}
	}
	return fmt.Errorf("%d ms after everything healed: %w", ms, left)
}

// giveUp removes a member whose disk is lost.
func (c *Cluster) giveUp(i int) {
	n := c.nodes[i]
	if m, ok := c.view.Member(n.id); !n.gone || !ok || m.State == ring.Removed {
		return
	}
	if err := c.Plan(ring.Change{Action: ring.ForceRemove, Node: n.String()}); err != nil {
		c.note("not done: %v", err)
	}
}

func (c *Cluster) convergenceError() error {
	if c.view.IsChanging() {
		return fmt.Errorf("the ring is not complete, %d moves are left", len(c.view.Moves()))
	}
	for number, e := range c.journal {
		if e.Ended == 0 && len(e.Rows)+len(e.Deletes) > 0 {
			return fmt.Errorf("batch %d was never answered", number+1)
		}
	}
	for _, n := range c.nodes {
		if n.gone {
			continue
		}
		if n.view != c.view {
			return fmt.Errorf("%v has another ring", n)
		}
		if len(n.disk.hints) > 0 {
			return fmt.Errorf("%v keeps %d hints", n, len(n.disk.hints))
		}
		for _, of := range n.disk.Holds() {
			if _, member := c.view.Member(n.id); member && !c.view.Owns(n.id, of.Partition, of.Copies) {
				return fmt.Errorf("%v has points of %+v and does not own it", n, of)
			}
		}
	}
	return c.compareCopies()
}

// compareCopies compares the copies of every partition.
func (c *Cluster) compareCopies() error {
	for p := range c.options.Partitions {
		for _, of := range append(c.classes(), 0) {
			if err := c.unequalShare(replication.Share{Partition: p, Copies: of}); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *Cluster) unequalShare(of replication.Share) error {
	var one *node
	for _, id := range c.view.Owners(nil, of.Partition, ring.Current, of.Copies) {
		n := c.nodeOf(id)
		if one == nil {
			one = n
			continue
		}
		same := func(a, b replication.ChunkDigest) bool { return a == b }
		if !slices.EqualFunc(one.disk.digests(of), n.disk.digests(of), same) ||
			!slices.Equal(one.disk.Deletions(of.Partition), n.disk.Deletions(of.Partition)) {
			return fmt.Errorf("%+v differs between %v and %v", of, one, n)
		}
	}
	return nil
}
