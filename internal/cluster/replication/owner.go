package replication

import (
	"slices"

	"dalmatiner/internal/cluster/ring"
)

// write takes a copy as an owner, or as a stand-in for one.
func (c *Core) write(from ring.ID, m Write) {
	if c.store.Settle(m.Batch, m.Settled) {
		return // a late copy of the message: nobody waits for an answer
	}
	refuse := func(r Refusal, later []Deletion) { c.send(from, Written{Key: m.Key, Refusal: r, Later: later}) }
	counts, at, seen := c.store.Seen(m.Key)
	switch {
	case seen: // its answer was lost
	case m.Version != c.view.Version() || !c.ready():
		refuse(OtherRing, nil)
		return
	case m.For != c.config.Self && !c.standsIn(m) || m.For == c.config.Self && !c.view.Owns(m.For, m.Change.Partition, 0):
		refuse(NotMine, nil)
		return
	default:
		if later := c.later(m.Change); len(later) > 0 {
			refuse(Stale, later)
			return
		}
		var err error
		if counts, at, err = c.take(m); err != nil {
			refuse(Full, nil)
			return
		}
	}
	c.whenSynced(at, func() { c.send(from, Written{Key: m.Key, Counts: counts}) })
}

// standsIn reports whether this node may keep a hint: for an owner, and it is none itself.
func (c *Core) standsIn(m Write) bool {
	return c.view.Owns(m.For, m.Change.Partition, 0) && !c.view.Owns(c.config.Self, m.Change.Partition, 0)
}

// later returns the deletions behind which a change would have to be sent again.
func (c *Core) later(change Change) (later []Deletion) {
	for _, r := range change.Rows {
		if known := c.store.Incarnation(r.Series); r.Incarnation < known {
			later = append(later, Deletion{r.Series, known})
		}
	}
	for _, d := range change.Deletions {
		if known := c.store.Incarnation(d.Series); d.Incarnation < known {
			later = append(later, Deletion{d.Series, known})
		}
	}
	return later
}

// take stores a copy. Rows may say of deletions that are news here: a stand-in remembers them, too.
func (c *Core) take(m Write) (Counts, Position, error) {
	if m.For != c.config.Self && len(c.store.Hints()) >= c.config.MaxHints {
		return Counts{}, 0, ErrFull
	}
	if err := c.raise(incarnationsOf(m.Change)); err != nil {
		return Counts{}, 0, err
	}
	if m.For == c.config.Self {
		return c.store.Write(m.Key, m.Change)
	}
	c.hint++
	at, err := c.store.KeepHint(m.Key, Hint{Number: c.hint, For: m.For, Change: m.Change})
	return Counts{Accepted: len(m.Change.Rows)}, at, err
}

// incarnationsOf returns which deletions the rows and deletions of a change speak of.
func incarnationsOf(change Change) (list []Deletion) {
	list = slices.Clone(change.Deletions)
	for _, r := range change.Rows {
		list = append(list, Deletion{r.Series, r.Incarnation})
	}
	return list
}

// merge stores copies from another node. What was deleted stays deleted: rows of a lower
// incarnation are left out.
func (c *Core) merge(change Change) (Position, error) {
	if err := c.raise(incarnationsOf(change)); err != nil {
		return 0, err
	}
	live := slices.DeleteFunc(slices.Clone(change.Rows), func(r Row) bool { return r.Incarnation < c.store.Incarnation(r.Series) })
	return c.store.Merge(Change{Partition: change.Partition, Rows: live})
}
