package replication

import (
	"errors"
	"slices"

	"dalmatiner/internal/cluster/ring"
)

// write takes a copy as an owner, or as a stand-in for one.
func (c *Core) write(from ring.ID, m Write) {
	if c.store.Settle(m.Batch, m.Settled) {
		return // a late copy of the message: nobody waits for an answer
	}
	refuse := func(r Refusal, later []Deletion) {
		c.send(from, WriteReply{Key: m.Key, Refusal: r, Later: later})
	}
	counts, at, seen := c.store.PriorResult(m.Key)
	switch {
	case seen: // its answer was lost
	case m.Version != c.view.Version() || !c.ready():
		refuse(OtherRing, nil)
		return
	case m.For != c.config.Self && !c.standsIn(m) || m.For == c.config.Self &&
		!ownsAll(c.view, c.config.Self, &m.Change):
		refuse(NotMine, nil)
		return
	default:
		later, news := c.inspect(m.Change)
		if len(later) > 0 {
			refuse(Stale, later)
			return
		}
		var err error
		counts, at, err = c.take(m, news)
		switch {
		case errors.Is(err, ErrAbsent):
			refuse(OtherRing, nil)
			return
		case errors.Is(err, ErrStaleBucket):
			refuse(StaleBucket, nil)
			return
		case err != nil:
			refuse(Full, nil)
			return
		}
	}
	answer := func() { c.send(from, WriteReply{Key: m.Key, Counts: counts}) }
	if m.For == c.config.Self {
		c.whenSynced(at, answer)
	} else {
		c.whenSynced(at, func() { c.keeping.whenTold(answer) })
	}
}

// ownsAll reports whether a node owns every partition of a change.
func ownsAll(v *ring.View, id ring.ID, change *Change) bool {
	owns := func(partition int) bool { return v.Owns(id, partition, change.Copies) }
	return owns(change.Partition) && !slices.ContainsFunc(change.Further, func(p int) bool {
		return !owns(p)
	})
}

// standsIn reports whether this node may keep a hint: of one partition, for an owner, and it is
// none itself.
func (c *Core) standsIn(m Write) bool {
	return len(m.Change.Further) == 0 && c.view.Owns(m.For, m.Change.Partition, m.Change.Copies) &&
		!c.view.Owns(c.config.Self, m.Change.Partition, m.Change.Copies)
}

// inspect returns the deletions after which a change would have to be sent again, and the deletions
// of the change that are news here.
func (c *Core) inspect(change Change) (later, news []Deletion) {
	compare := func(d Deletion) {
		switch known := c.store.Incarnation(d.Series); {
		case d.Incarnation < known:
			later = append(later, Deletion{d.Series, known})
		case d.Incarnation > known:
			news = append(news, d)
		}
	}
	for _, d := range change.Deletions {
		compare(d)
	}
	for i := range change.Columns {
		if column := &change.Columns[i]; !c.untouched.has(column.Group, c.store) {
			for _, id := range column.Series() {
				compare(Deletion{Series: id})
			}
		}
	}
	for i, r := range change.Rows {
		if i == 0 || r.Series != change.Rows[i-1].Series ||
			r.Incarnation != change.Rows[i-1].Incarnation {
			compare(Deletion{r.Series, r.Incarnation})
		}
	}
	for i := range change.Chunks {
		compare(Deletion{change.Chunks[i].ID.Series, change.Chunks[i].Incarnation})
	}
	return later, news
}

// take stores a copy. Rows may say of deletions that are news here: a stand-in remembers them, too.
func (c *Core) take(m Write, news []Deletion) (Counts, Position, error) {
	if m.For != c.config.Self && c.relays.kept >= c.config.MaxHints {
		return Counts{}, 0, ErrFull
	}
	if err := c.NoteDeletions(news); err != nil {
		return Counts{}, 0, err
	}
	if m.For == c.config.Self {
		return c.store.Write(m.Key, m.Change)
	}
	c.hint++
	at, err := c.store.KeepHint(m.Key, Hint{Number: c.hint, For: m.For, Change: m.Change.InRows()})
	if err == nil {
		c.relays.kept++
		c.keeping.add(m.Change.Partition)
		c.stats.HintsKept++
	}
	return Counts{Accepted: m.Change.Points()}, at, err
}

// merge stores copies from another node. What was deleted stays deleted: rows and chunks of a lower
// incarnation are left out.
func (c *Core) merge(change Change) (Position, error) {
	later, news := c.inspect(change)
	if err := c.NoteDeletions(news); err != nil {
		return 0, err
	}
	rows, chunks := change.Rows, change.Chunks
	if len(later)+len(news) > 0 {
		rows = slices.DeleteFunc(slices.Clone(rows), func(r Row) bool {
			return r.Incarnation < c.store.Incarnation(r.Series)
		})
		chunks = slices.DeleteFunc(slices.Clone(chunks), func(k Chunk) bool {
			return k.Incarnation < c.store.Incarnation(k.ID.Series)
		})
	}
	if len(rows)+len(chunks) == 0 {
		return c.noted, nil
	}
	at, err := c.store.Merge(Change{
		Partition: change.Partition,
		Copies:    change.Copies,
		Chunks:    chunks,
		Rows:      rows,
	})
	c.noted = max(c.noted, at)
	return at, err
}

// endsComparison reports whether a comparison cannot go on after a merge. Two owners that both stay
// go past rows of a bucket that this one has no place for: what lies behind them would not be
// repaired either. What moves will be let go by the other node, so nothing of it is passed over.
func (c *Core) endsComparison(err error, peer ring.ID, of Share) bool {
	stay := slices.Contains(c.view.Owners(nil, of.Partition, ring.Current, of.Copies),
		c.config.Self) && c.view.Owns(peer, of.Partition, of.Copies)
	return err != nil && !(errors.Is(err, ErrAbsent) && stay)
}

// delivery takes a hint as an owner.
func (c *Core) delivery(from ring.ID, m Deliver) {
	if m.Version != c.view.Version() || !c.ready() ||
		!c.view.Owns(c.config.Self, m.Change.Partition, m.Change.Copies) {
		return // it comes again
	}
	at, err := c.merge(m.Change)
	if err != nil {
		return
	}
	c.whenSynced(at, func() { c.send(from, DeliverReply{ID: m.ID}) })
}
