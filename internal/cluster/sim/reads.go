package sim

import (
	"fmt"
	"maps"
	"slices"

	"dalmatiner/internal/cluster/replication"
	"dalmatiner/internal/cluster/ring"
	"dalmatiner/internal/model/metric"
)

// readBack ends faults for a while, and reads what was acknowledged before, long before copies are
// equal.
func (c chaos) readBack() error {
	if slices.ContainsFunc(c.nodes, (*node).hasLostDisk) {
		return nil // a lost disk may have had what W copies promise
	}
	defer c.pauseFaults()()
	if c.rng.IntN(2) == 0 {
		c.away[c.rng.IntN(len(c.nodes))] = true
	}
	if !c.allUp() {
		return nil
	}
	asked := make(askedSlots)
	for range 2 * len(c.nodes) {
		// those of the n of the ring
		c.ask(asked, c.nodes[c.rng.IntN(len(c.nodes))], Series(c.rng.IntN(series/2)*2))
	}
	c.Run(timeout + 3*tick)
	return c.checkMet(asked, true)
}

// readAmong ends faults for a while, lets members and n change, and reads meanwhile: what was
// acknowledged before a read began it meets, whichever ring the node knows that is asked. One hears
// late that a change is complete.
func (c chaos) readAmong() error {
	if slices.ContainsFunc(c.nodes, (*node).hasLostDisk) {
		return nil
	}
	defer c.pauseFaults()()
	if !c.allUp() {
		return nil
	}
	asked := make(askedSlots)
	for range steps {
		if plan := c.stage(4+c.rng.IntN(8), c.rng.IntN(len(c.nodes))); len(plan) > 0 &&
			!c.view.IsChanging() {
			if err := c.Plan(plan...); err != nil {
				c.note("not done: %v", err)
			}
		}
		c.Run(c.rng.Int64N(2 * tick))
		if c.Finish() {
			c.deaf = c.nodes[c.rng.IntN(len(c.nodes))]
			for range 8 {
				c.load()
				c.Run(c.rng.Int64N(2 * tick))
				c.ask(asked, c.deaf, c.lastDone())
			}
			c.deaf = nil
		}
	}
	c.Run(timeout + 3*tick)
	return c.checkMet(asked, false)
}

// pauseFaults ends all faults until what it returns is called.
func (c chaos) pauseFaults() (end func()) {
	before := c.options.Calm
	c.options.Calm = true
	c.Heal()
	clear(c.away)
	for range 2 { // faults that were about to happen do
		for i := range c.nodes {
			c.Start(i)
		}
		c.Run(100)
	}
	return func() { c.options.Calm = before }
}

// allUp reports whether all nodes run.
func (c chaos) allUp() bool {
	return !slices.ContainsFunc(c.nodes, func(n *node) bool { return !n.isUp(c.now) })
}

// askedSlots are the reads under way, by request: of which series.
type askedSlots map[uint64]metric.SeriesID

// ask reads a series at a node, if that is a member.
func (c chaos) ask(into askedSlots, n *node, s metric.SeriesID) {
	if m, ok := n.view.Member(n.id); ok && m.State != ring.Removed && n.isUp(c.now) {
		into[c.Read(n.number, s, 0, max(c.slots, 1))] = s
	}
}

// lastDone returns a series of the batch that was acknowledged last, among those with the n of the
// ring.
func (c chaos) lastDone() (s metric.SeriesID) {
	last := int64(-1)
	for _, e := range c.journal {
		if e.Answered && e.Reply.Done && e.Ended > last && len(e.Rows) > 0 &&
			c.copiesOf(e.Rows[0].Series) == 0 {
			last, s = e.Ended, e.Rows[0].Series
		}
	}
	return s
}

// checkMet says which point a read has not met that was acknowledged before it began. All: each has
// to be answered.
func (c chaos) checkMet(list askedSlots, all bool) error {
	for _, request := range slices.Sorted(maps.Keys(list)) {
		of := c.journal[request-1]
		if !all && !c.reads[request].Done {
			continue
		}
		if err := c.metOne(c.reads[request], list[request], of.At); err != nil {
			return fmt.Errorf("read %d of %d ms by n%d: %w", request, of.At, of.Node, err)
		}
	}
	return nil
}

// metOne says which point of a series a read has not met that was acknowledged before.
func (c chaos) metOne(r replication.Reply, s metric.SeriesID, before int64) error {
	if full := slices.ContainsFunc(c.nodes, func(n *node) bool {
		return n.disk.full
	}); !r.Done && full {
		return nil // a node whose disk is full cannot learn of deletions, and does not answer
	}
	if !r.Done && len(c.away) > 0 {
		return nil // there may be fewer members than copies
	}
	if !r.Done {
		return fmt.Errorf("%x: %d copies are not enough, and all nodes are up", s[:2], r.Copies)
	}
	for number, e := range c.journal {
		if !e.Answered || !e.Reply.Done || e.Ended >= before {
			continue
		}
		for _, row := range e.Rows {
			if row.Series != s || r.Slots[row.Slot].Value.Compare(row.Value) >= 0 || c.isDeleted(s) {
				continue
			}
			return fmt.Errorf("%x/%d is %x, batch %d was acknowledged with %x", s[:2], row.Slot,
				r.Slots[row.Slot].Value.Word, number+1, row.Value.Word)
		}
	}
	return nil
}

// isDeleted reports whether somebody has asked for a deletion of a series.
func (c chaos) isDeleted(s metric.SeriesID) bool {
	return slices.ContainsFunc(c.journal, func(e *Entry) bool { return slices.Contains(e.Deletes, s) })
}
