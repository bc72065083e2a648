package replication

import (
	"slices"

	"dalmatiner/internal/cluster/ring"
)

// comparisonsPerRound bounds what a node starts at a time.
const comparisonsPerRound = 4

// pair is a partition and a node with which it is compared.
type pair struct {
	partition int
	peer      ring.ID
}

// comparisons are how far this node knows that others have what it has, and it what they have.
type comparisons struct {
	*Core
	round   uint64
	open    map[uint64]pair
	next    int64         // when the next ones start
	at      int           // in the list of pairs
	fetched map[pair]bool // since the ring changed, everything the peer had is here, on disk
	given   map[pair]bool // and everything that was here is there
}

func newComparisons(c *Core) *comparisons {
	return &comparisons{Core: c, open: make(map[uint64]pair), fetched: make(map[pair]bool), given: make(map[pair]bool)}
}

// restart forgets what was known: it is another ring.
func (c *comparisons) restart() {
	clear(c.open)
	clear(c.fetched)
	clear(c.given)
}

// pairs returns what is to be compared: partitions that this node owns or will, with all other
// owners of now and later; and partitions that it has given up, with the owners of now.
func (c *comparisons) pairs() (list []pair) {
	held := c.store.Holds()
	for p := range c.view.Partitions() {
		owners := c.view.Owners(nil, p, ring.Current, 0)
		if c.view.Owns(c.config.Self, p, 0) {
			owners = c.view.Owners(owners, p, ring.Future, 0)
		} else if !slices.Contains(held, p) {
			continue
		}
		for i, id := range owners {
			if id != c.config.Self && c.up[id] && !slices.Contains(owners[:i], id) {
				list = append(list, pair{p, id})
			}
		}
	}
	return list
}

// startComparisons compares some partitions, one after the other.
func (c *comparisons) startComparisons() {
	if c.now.Steady < c.next || !c.ready() {
		return
	}
	c.next = c.now.Steady + c.config.CompareMS
	clear(c.open) // what was not answered comes again
	list := c.pairs()
	for range min(comparisonsPerRound, len(list)) {
		of := list[c.at%len(list)]
		c.at++
		c.round++
		c.open[c.round] = of
		c.send(of.peer, Compare{Round: c.round, Partition: of.partition, Version: c.view.Version(),
			Chunks: c.store.Chunks(of.partition), Deletions: c.store.Deletions(of.partition)})
	}
	c.dropGiven()
}

// dropGiven removes partitions that others own, once each of their owners has everything.
func (c *comparisons) dropGiven() {
	for _, p := range c.store.Holds() {
		if c.view.Owns(c.config.Self, p, 0) {
			continue
		}
		owners := c.view.Owners(nil, p, ring.Current, 0)
		if !slices.ContainsFunc(owners, func(id ring.ID) bool { return !c.given[pair{p, id}] }) {
			c.store.Drop(p)
		}
	}
}

// Fetched reports whether this node has all that the owners before it have of the partitions it
// will own: the change of the ring can be finished.
func (c *Core) Fetched() bool { return c.compare.complete() }

func (c *comparisons) complete() bool {
	for _, m := range c.view.Moves() {
		if m.To != c.config.Self {
			continue
		}
		for _, id := range m.From {
			if !c.fetched[pair{m.Partition, id}] {
				return false
			}
		}
	}
	return true
}

// compared answers with what the sender may lack. Deletions come first: what they hide is neither
// asked for nor given.
func (c *comparisons) compared(from ring.ID, m Compare) {
	if m.Version != c.view.Version() || !c.ready() || !c.view.Owns(c.config.Self, m.Partition, 0) || c.raise(m.Deletions) != nil {
		return
	}
	d := Difference{Round: m.Round, Partition: m.Partition, Version: m.Version, Deletions: c.store.Deletions(m.Partition)}
	mine, theirs := c.store.Chunks(m.Partition), m.Chunks
	for len(mine) > 0 || len(theirs) > 0 {
		switch order := first(mine, theirs); {
		case order < 0:
			d.Rows = append(d.Rows, c.store.Rows(mine[0].ID)...)
			mine = mine[1:]
		case order > 0:
			d.Want = append(d.Want, theirs[0].ID)
			theirs = theirs[1:]
		default:
			if mine[0].Digest != theirs[0].Digest {
				d.Rows = append(d.Rows, c.store.Rows(mine[0].ID)...)
				d.Want = append(d.Want, mine[0].ID)
			}
			mine, theirs = mine[1:], theirs[1:]
		}
	}
	c.send(from, d)
}

// first says which list has the lower chunk in front.
func first(a, b []ChunkDigest) int {
	switch {
	case len(a) == 0:
		return 1
	case len(b) == 0:
		return -1
	}
	return a[0].ID.Compare(b[0].ID)
}

// differs takes what this node lacks, and gives what the other one does.
func (c *comparisons) differs(from ring.ID, m Difference) {
	of, ok := c.open[m.Round]
	if !ok || of != (pair{m.Partition, from}) || m.Version != c.view.Version() || c.raise(m.Deletions) != nil {
		return
	}
	if c.view.Owns(c.config.Self, m.Partition, 0) {
		at, err := c.merge(Change{Partition: m.Partition, Rows: m.Rows})
		if err != nil {
			return
		}
		version := m.Version
		c.whenSynced(at, func() {
			if version == c.view.Version() {
				c.fetched[of] = true
			}
		})
	}
	if len(m.Want) == 0 {
		delete(c.open, m.Round)
		c.given[of] = true
		return
	}
	change := Change{Partition: m.Partition}
	for _, id := range m.Want {
		change.Rows = append(change.Rows, c.store.Rows(id)...)
	}
	c.send(from, Fill{Round: m.Round, Version: m.Version, Change: change})
}

// fill takes what this node asked for.
func (c *comparisons) fill(from ring.ID, m Fill) {
	if m.Version != c.view.Version() || !c.ready() || !c.view.Owns(c.config.Self, m.Change.Partition, 0) {
		return
	}
	at, err := c.merge(m.Change)
	if err != nil {
		return
	}
	c.whenSynced(at, func() { c.send(from, Filled{Round: m.Round, Partition: m.Change.Partition}) })
}

// filled notes that a peer has all that this node had when it began to compare.
func (c *comparisons) filled(from ring.ID, m Filled) {
	if of := (pair{m.Partition, from}); c.open[m.Round] == of {
		delete(c.open, m.Round)
		c.given[of] = true
	}
}
