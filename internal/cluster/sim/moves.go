package sim

import (
	"cmp"
	"fmt"

	"dalmatiner/internal/cluster/replication"
	"dalmatiner/internal/cluster/ring"
)

// checkGiven panics unless each owner of a partition has all on disk that a node is about to drop.
func (c *Cluster) checkGiven(from *node, share replication.Share) {
	for _, id := range from.view.Owners(nil, share.Partition, ring.Current, share.Copies) {
		c.checkContains(c.nodeOf(id), from.disk, share,
			fmt.Sprintf("%v drops what %v has not on disk", from,
				c.nodeOf(id)))
	}
}

// checkFetched panics unless each new owner has all on disk that those before it had there when
// they learned of the ring.
func (c *Cluster) checkFetched() {
	for _, n := range append(c.classes(), 0) {
		for _, m := range c.view.Fetches(n) {
			for _, id := range m.From {
				if from := c.nodeOf(id); from.before != nil {
					c.checkContains(c.nodeOf(m.To), from.before,
						replication.Share{Partition: m.Partition, Copies: n},
						fmt.Sprintf("%v has not fetched what %v had", c.nodeOf(m.To), from))
				}
			}
		}
	}
}

// checkContains panics unless a node has all on disk that another disk has of a partition.
func (c *Cluster) checkContains(n *node, of *disk, share replication.Share, otherwise string) {
	if n.gone {
		return
	}
	synced := n.disk.syncedState()
	for _, s := range of.sorted(share.Partition) {
		if of.share(s) != share {
			continue
		}
		mine, theirs := of.seriesOf(s), synced.seriesOf(s)
		for slot, v := range mine.slots {
			lacks := theirs.slots[slot] == replication.Value{} || cmp.Or(share.Copies, c.leastN) > 1 &&
				theirs.slots[slot].Compare(v) < 0
			if theirs.incarnation <= mine.incarnation && lacks {
				panic(fmt.Sprintf("%s: %x/%d=%x\n%s", otherwise, s[:2], slot, v.Word, c.History()))
			}
		}
	}
}
