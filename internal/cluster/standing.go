package cluster

import (
	"slices"
	"time"

	"dalmatiner/internal/cluster/replication"
	"dalmatiner/internal/cluster/ring"
)

// Progress is how far this node is under a ring.
type Progress struct {
	// partitions that the ring gives it, and of which it does not have everything
	Left int
	// nodes from which it has not fetched all events that the ring gives it
	Events int
	Moves  []replication.Progress // shares on their way to it, and those that it gave up and still has
	Hints  []replication.HintInfo // what it keeps for others
	Start  time.Time              // when the clock of Moves was 0
}

// Progress returns how far this node is under a ring; false if the protocol has not heard of that
// ring.
func (c *Cluster) Progress(under ring.Version) (Progress, bool) {
	c.runtime.mu.Lock()
	defer c.runtime.mu.Unlock()
	stats, view := c.core.Stats(), c.View()
	if stats.Ring != under || view.Version() != under {
		return Progress{}, false
	}
	s := Progress{
		Start:  c.start,
		Left:   c.core.PendingPartitions(),
		Events: c.events.PendingFetches(view, c.buckets.classes()),
		Moves:  c.core.Progress(),
	}
	if stats.Hints > 0 {
		s.Hints = slices.Clone(c.data.Hints())
	}
	return s, true
}

// Figures returns the counters of the protocol, and the time of now on the clock that they use.
func (c *Cluster) Figures() (s replication.Stats, steadyMS int64) {
	c.runtime.mu.Lock()
	defer c.runtime.mu.Unlock()
	return c.core.Stats(), c.time().Steady
}

// Classes returns the n of buckets that have one of their own, each once.
func (c *Cluster) Classes() []int { return c.buckets.classes() }

// HoldMoves says whether shares that move to this node wait.
func (c *Cluster) HoldMoves(on bool) {
	c.events.Hold(on)
	c.runtime.mu.Lock()
	defer c.runtime.mu.Unlock()
	c.core.HoldMoves(on)
}
