package sim

import (
	"dalmatiner/internal/cluster/replication"
	"dalmatiner/internal/cluster/ring"
)

// whenUp lets a node do something in some ms, unless it has crashed by then. While it is stopped,
// that waits.
func (c *Cluster) whenUp(n *node, ms int64, do func()) {
	boot := n.boot
	c.scheduleAfter(ms, func() {
		switch {
		case n.core == nil || n.boot != boot:
		case c.now < n.asleep:
			c.whenUp(n, n.asleep-c.now, do)
		default:
			do()
		}
	})
}

// tickNode lets a node work, sync its log, and notice who is up and which ring there is.
func (c *Cluster) tickNode(n *node) {
	all := c.meet(n)
	if all || c.now >= n.hears {
		n.hears = 0
		n.core.Tick(c.time(n))
		c.drain(n)
	}
	if upTo := len(n.disk.log); upTo > n.told && !n.stuck {
		c.whenUp(n, 1+c.rng.Int64N(40), func() {
			n.disk.durable, n.told = max(n.disk.durable, upTo), max(n.told, upTo)
			n.core.SyncedUpTo(c.time(n), replication.Position(upTo))
			c.drain(n)
		})
	}
	if upTo := n.disk.taken; !n.stuck &&
		(n.core.Background().AwaitsFiles() || len(n.disk.adopting) > 0 && c.rng.IntN(8) == 0) {
		c.whenUp(n, 1+c.rng.Int64N(80), func() {
			if n.disk.adopt(upTo) {
				n.core.Background().AdoptedUpTo(c.time(n), upTo)
				c.drain(n)
			}
		})
	}
	if n.core.Background().AwaitsDigests() {
		c.whenUp(n, c.rng.Int64N(2*tick), func() {
			n.core.Background().PrepareSome(c.time(n))
			c.drain(n)
		})
	}
	c.whenUp(n, tick, func() { c.tickNode(n) })
}

// meet lets a node notice who is up and which ring there is. It reports whether it reaches all
// members.
func (c *Cluster) meet(n *node) (all bool) {
	all = true
	for _, other := range c.nodes {
		heard := other.isUp(c.now) && !c.cut[[2]int{other.number, n.number}]
		_, member := other.view.Member(n.id)
		reached := heard && member // nodes end connections of those who are no members
		if other != n && n.sees[other.number] != reached && (c.options.Calm || c.rng.IntN(3) == 0) {
			n.sees[other.number] = reached
			n.core.Peer(c.time(n), other.id, reached)
			c.drain(n)
		}
		if m, is := n.view.Member(other.id); is && other != n && m.State != ring.Removed &&
			!n.sees[other.number] {
			all = false
		}
		n.core.Maintain(c.time(n), other.id, c.away[other.number])
		if heard && other.view.Version().Number > n.view.Version().Number &&
			(reached || c.options.Calm || c.rng.IntN(3) == 0) && n != c.deaf {
			c.adopt(n, other.view)
		}
	}
	return all
}
