package replication

import (
	"dalmatiner/internal/cluster/ring"
	"dalmatiner/internal/model/metric"
)

// AwaitedPosition returns up to which position somebody waits for the log: it is to be synced, and
// SyncedUpTo to be called with it.
func (c *Core) AwaitedPosition() Position { return c.noted }

// Quorums are how many copies answer a read, and how many are on disk before a batch is
// acknowledged: of owners of now, and of owners to come.
type Quorums struct{ R, W, NextW int }

// Require sets how many copies are needed under the present ring.
func (c *Core) Require(t Time, q Quorums) {
	c.now = t
	if c.config.require(q) {
		c.coordinator.plan()
	}
}

// require reports whether other quorums than before are needed.
func (c *Config) require(q Quorums) bool {
	before := Quorums{c.R, c.W, c.NextW}
	c.R, c.W, c.NextW = q.R, q.W, q.NextW
	return q != before
}

// Maintain says whether a member, be it this node, leaves reads and writes to others. What it keeps
// for others it goes on to deliver; it is compared when it is over.
func (c *Core) Maintain(t Time, id ring.ID, on bool) {
	c.now = t
	if c.away[id] == on {
		return
	}
	c.away[id] = on
	if !on {
		c.compare.noteUp(id)
	}
	c.coordinator.plan()
}

// Differs says that a read has met copies of a series that differ. copies is n of the bucket. Where
// this node is an owner, the share is compared soon.
func (c *Core) Differs(t Time, series metric.SeriesID, copies int) {
	c.now = t
	c.compare.differs(Share{c.view.Partition(series), copies})
}

// Ready reports whether this node knows the deletions of all peers that it reaches: only then it
// takes, compares and serves points.
func (c *Core) Ready() bool { return c.ready() }

// HoldMoves says whether shares that move wait. Those that are being compared go on to their end.
func (c *Core) HoldMoves(on bool) { c.compare.held = on }
