package replication

import (
	"slices"
	"sort"

	"dalmatiner/internal/cluster/ring"
)

// relays brings the hints of this node to their owners.
type relays struct {
	*Core
	kept    int               // hints that the store has
	last    uint64            // number of the hint that was sent last
	deliver map[uint64]*relay // by number of the hint
}

// relay is a hint on its way to the owners.
type relay struct {
	hint    HintInfo
	sent    int64
	reached []ring.ID // owners that have it on disk
}

// tick sends hints to owners that are up. A hint whose owner has lost the partition, or is about
// to, goes to all.
func (c *relays) tick() {
	if !c.ready() {
		return
	}
	budget := c.config.HintRows
	for _, h := range c.fromLast(c.store.Hints()) {
		r := c.deliver[h.Number]
		if r == nil {
			r = &relay{hint: h, sent: c.now.Steady - c.config.Resend}
			c.deliver[h.Number] = r
		}
		if c.dropDelivered(r) || c.now.Steady < r.sent+c.config.Resend {
			continue
		}
		if budget <= 0 {
			return
		}
		budget -= c.sendHint(r)
	}
}

// fromLast returns hints from behind the one that was sent last, so that all have their turn.
func (c *relays) fromLast(list []HintInfo) []HintInfo {
	i := sort.Search(len(list), func(i int) bool { return list[i].Number > c.last })
	return slices.Concat(list[i:], list[:i])
}

// sendHint sends a hint to all who lack it and can be reached. It returns how many rows that were.
func (c *relays) sendHint(r *relay) (rows int) {
	h := r.hint
	r.sent = c.now.Steady
	var to []ring.ID
	for _, owner := range c.recipients(h) {
		if c.isUp(owner) && !slices.Contains(r.reached, owner) {
			to = append(to, owner)
		}
	}
	if len(to) == 0 {
		return 0
	}
	change, ok := c.store.Hint(h.Number)
	if !ok {
		return 0
	}
	c.last = h.Number
	for _, owner := range to {
		c.send(owner, Deliver{
			ID:      HintID{c.config.Self, c.config.Boot, h.Number},
			Version: c.view.Version(),
			Change:  change,
		})
	}
	return len(to) * max(h.Rows, 1)
}

// recipients returns the nodes that must have a hint before it may go: the owner that missed it,
// where it stays. Otherwise all present and future owners of the partition must have the hint. A
// node that takes the partition over may have compared it with that owner before the hint comes
// there. If they are all gone, the hint waits for the owner that it is for.
func (c *relays) recipients(h HintInfo) (list []ring.ID) {
	for _, role := range []ring.Role{ring.Future, ring.Current} {
		for _, id := range c.view.Owners(nil, h.Partition, role, h.Copies) {
			switch m, _ := c.view.Member(id); {
			case m.State == ring.Removed || slices.Contains(list, id):
			case role == ring.Future && id == h.For:
				return []ring.ID{id}
			default:
				list = append(list, id)
			}
		}
	}
	if len(list) == 0 {
		return []ring.ID{h.For}
	}
	return list
}

// handleDeliverReply notes who has a hint.
func (c *relays) handleDeliverReply(from ring.ID, m DeliverReply) {
	r := c.deliver[m.ID.Number]
	if r == nil || m.ID.Node != c.config.Self || m.ID.Boot != c.config.Boot {
		return
	}
	if !slices.Contains(r.reached, from) {
		r.reached = append(r.reached, from)
	}
	c.dropDelivered(r)
}

// dropDelivered lets a hint go that all who must have it do. Another ring can make it so.
func (c *relays) dropDelivered(r *relay) bool {
	if len(r.reached) == 0 || slices.ContainsFunc(c.recipients(r.hint), func(id ring.ID) bool {
		return !slices.Contains(r.reached, id)
	}) {
		return false
	}
	c.store.DropHint(r.hint.Number)
	delete(c.deliver, r.hint.Number)
	c.kept--
	c.keeping.remove(r.hint.Partition)
	c.stats.HintsDelivered++
	return true
}
