package replication

import (
	"slices"

	"dalmatiner/internal/cluster/ring"
)

// relay is a hint on its way to the owners.
type relay struct {
	sent    int64
	reached []ring.ID // owners that have it on disk
}

// relay sends hints to owners that are up. A hint whose owner has lost the partition goes
// to all who own it now.
func (c *Core) relay() {
	if !c.ready() {
		return
	}
	c.dropDelivered()
	for _, h := range c.store.Hints() {
		r := c.deliver[h.Number]
		if r == nil {
			r = &relay{sent: c.now.Steady - c.config.Resend}
			c.deliver[h.Number] = r
		}
		if c.now.Steady < r.sent+c.config.Resend {
			continue
		}
		r.sent = c.now.Steady
		for _, owner := range c.recipients(h) {
			if c.up[owner] && !slices.Contains(r.reached, owner) {
				c.send(owner, Deliver{ID: HintID{c.config.Self, c.config.Boot, h.Number}, Version: c.view.Version(), Change: h.Change})
			}
		}
	}
}

// recipients returns who must have a hint before it may go: the owner that missed it, or, where
// that one is gone for good or owns the partition no more, all who own it now. If they are
// all gone, those who take it over.
func (c *Core) recipients(h Hint) []ring.ID {
	if m, ok := c.view.Member(h.For); ok && m.State != ring.Removed && c.view.Owns(h.For, h.Change.Partition, 0) {
		return []ring.ID{h.For}
	}
	for _, role := range []ring.Role{ring.Current, ring.Future} {
		owners := slices.DeleteFunc(c.view.Owners(nil, h.Change.Partition, role, 0), func(id ring.ID) bool {
			m, _ := c.view.Member(id)
			return m.State == ring.Removed
		})
		if len(owners) > 0 {
			return owners
		}
	}
	return []ring.ID{h.For}
}

// delivery takes a hint as an owner.
func (c *Core) delivery(from ring.ID, m Deliver) {
	if m.Version != c.view.Version() || !c.ready() || !c.view.Owns(c.config.Self, m.Change.Partition, 0) {
		return // it comes again
	}
	at, err := c.merge(m.Change)
	if err != nil {
		return
	}
	c.whenSynced(at, func() { c.send(from, Delivered{ID: m.ID}) })
}

// delivered notes who has a hint.
func (c *Core) delivered(from ring.ID, m Delivered) {
	r := c.deliver[m.ID.Number]
	if r == nil || m.ID.Node != c.config.Self || m.ID.Boot != c.config.Boot {
		return
	}
	if !slices.Contains(r.reached, from) {
		r.reached = append(r.reached, from)
	}
	c.dropDelivered()
}

// dropDelivered lets hints go that all who must have them do. Another ring can make one of them so.
func (c *Core) dropDelivered() {
	for _, h := range slices.Clone(c.store.Hints()) {
		r := c.deliver[h.Number]
		if r == nil || slices.ContainsFunc(c.recipients(h), func(id ring.ID) bool { return !slices.Contains(r.reached, id) }) {
			continue
		}
		c.store.DropHint(h.Number)
		delete(c.deliver, h.Number)
	}
}
