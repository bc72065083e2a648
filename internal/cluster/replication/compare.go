package replication

import (
	"maps"
	"slices"

	"dalmatiner/internal/cluster/ring"
)

// pair is a share and a node with which it is compared.
type pair struct {
	Share
	peer ring.ID
}

// candidate is a pair that is to be compared.
type candidate struct {
	pair
	move bool // a change of the ring waits for it, or the partition is given up
}

// comparisons are how far this node knows that others have what it has, and it what they have.
type comparisons struct {
	*Core
	held    bool              // moves wait
	classes []int             // n of buckets, 0 is that of the ring
	fetches []fetch           // to this node
	last    uint64            // number of the last pass
	pairs   []candidate       // by partition
	at      int               // in pairs, where the next pass is looked for
	soonAt  int               // the same for pairs that were not compared since the peer came up
	met     map[ring.ID]int64 // when a peer came up
	rest    int64             // until when no such pair is begun
	wanted  map[Share]int64   // when a read has met copies that differ
	next    int64             // when pairs are looked for anew
	due     int               // passes of pairs that do not move which may still start until then
	pace    float64           // of ComparePoints
	budget  int               // points that may still move in this tick; below 0 what was too much
	passes  map[pair]*pass
	running []*pass
	fetched map[pair]bool     // since the ring changed, everything the peer had is here, on disk
	given   map[pair]bool     // and everything that was here is there
	spare   map[Share]int64   // since when that is so of all owners of a share that was given up
	moved   map[pair]Progress // of moves that are done
	whole   map[pair]int64    // when the last pass ended, also under other rings
}

func newComparisons(c *Core) *comparisons {
	n := &comparisons{Core: c, pace: 1, met: make(map[ring.ID]int64), wanted: make(map[Share]int64),
		passes: make(map[pair]*pass), fetched: make(map[pair]bool), given: make(map[pair]bool),
		spare: make(map[Share]int64),
		moved: make(map[pair]Progress), whole: make(map[pair]int64)}
	n.findFetches()
	return n
}

// restart begins anew: under another ring nothing counts that was compared.
func (c *comparisons) restart() {
	for _, p := range slices.Clone(c.running) {
		c.stop(p)
	}
	clear(c.passes)
	clear(c.fetched)
	clear(c.given)
	clear(c.spare)
	clear(c.moved)
	clear(c.wanted)
	c.pairs, c.next = nil, 0
	c.findFetches()
	maps.DeleteFunc(c.whole, func(of pair, _ int64) bool {
		_, member := c.view.Member(of.peer)
		return !member
	})
}

// tick goes on with passes, and starts some.
func (c *comparisons) tick() {
	if !c.ready() || c.away[c.config.Self] {
		return
	}
	most := max(int(c.pace*float64(c.config.ComparePoints)), 1)
	c.budget = min(c.budget+most, most)
	if c.now.Steady >= c.next {
		c.next = c.now.Steady + c.config.CompareMS
		c.due = c.config.Comparisons
		c.findFetches() // there may be buckets of another n
		c.dropGiven()
		c.pairs = c.findPairs()
	}
	if len(c.running) > 1 {
		c.running = append(c.running[1:], c.running[0]) // each is once the first to use the budget
	}
	for _, p := range slices.Clone(c.running) {
		c.goOn(p)
	}
	// Moves do not wait for CompareMS, and leave one place to the others; these leave all others to
	// moves.
	others := c.config.Comparisons
	if !c.held {
		// moves of a partition come one after another, so that it is whole before the next is begun
		first := 0
		c.startSome(&first, true, 2*c.config.Comparisons-1, len(c.pairs), c.movesAlone)
		if slices.ContainsFunc(c.pairs, func(of candidate) bool {
			return c.moves(of) && c.isUp(of.peer) && !c.runs(of.pair)
		}) {
			others = 1
		}
	}
	if c.now.Steady >= c.rest && !slices.ContainsFunc(c.running, func(p *pass) bool {
		return p.soon
	}) {
		c.startSome(&c.soonAt, false, others, 1, c.isUrgent)
	}
	c.due -= c.startSome(&c.at, false, others, c.due, func(candidate) bool { return true })
}

// noteUp notes that a peer came up: it may lack what was written meanwhile, or have what is not
// here.
func (c *comparisons) noteUp(id ring.ID) {
	c.met[id] = c.now.Steady
	for of, p := range c.passes {
		if of.peer == id && !p.move { // pages that were equal may differ by now
			c.stop(p)
			delete(c.passes, of)
		}
	}
}

// differs notes that a read has met copies of a share that differ. What cannot be made equal is not
// tried all the time.
func (c *comparisons) differs(of Share) {
	if at, ok := c.wanted[of]; !ok || c.now.Steady >= at+c.config.CompareMS {
		c.wanted[of] = c.now.Steady
	}
}

// isUrgent reports whether a pair does not wait for its turn: it was not compared since the peer
// came up, or since a read has met a difference. One of these is under way at a time, and then none
// for as long as it took.
func (c *comparisons) isUrgent(of candidate) bool {
	at, done := c.whole[of.pair]
	wanted, is := c.wanted[of.Share]
	return !done || at < c.met[of.peer] || is && at < wanted
}

// startSome starts passes of those pairs, that move or not, each in its turn, while fewer that do
// or do not than their places are under way.
func (c *comparisons) startSome(at *int, move bool, places, most int, those func(candidate) bool) (
	started int) {
	for _, p := range c.running {
		if p.move == move {
			places--
		}
	}
	places = min(places, 2*c.config.Comparisons-len(c.running), most)
	for range c.pairs {
		if started >= places {
			break
		}
		of := c.pairs[*at%len(c.pairs)]
		*at++
		if c.moves(of) == move && those(of) && !c.isNeedless(of) && c.start(of) {
			started++
		}
	}
	return started
}

// isNeedless reports whether a pair is compared and nothing can differ any more: of a share that
// was given up.
func (c *comparisons) isNeedless(of candidate) bool {
	return c.given[of.pair] && !c.view.Owns(c.config.Self, of.Partition, of.Copies)
}

// movesAlone reports whether no pass moves the share of a pair. Two owners would bring a new one
// all of it twice: of the second, digests say that it has the same.
func (c *comparisons) movesAlone(of candidate) bool {
	return !slices.ContainsFunc(c.running, func(p *pass) bool {
		return p.move && p.of.Share == of.Share
	})
}

// runs reports whether a pair is being compared.
func (c *comparisons) runs(of pair) bool {
	return slices.ContainsFunc(c.running, func(p *pass) bool { return p.of == of })
}

// fetch is a share that this node must have of others.
type fetch struct {
	Share
	from []ring.ID
}

// findFetches finds what this node must have of others before the changes under way are complete.
func (c *comparisons) findFetches() {
	c.classes, c.fetches = append(c.config.Classes(), 0), nil
	slices.Sort(c.classes)
	for _, n := range c.classes {
		for _, m := range c.view.Fetches(n) {
			if m.To == c.config.Self {
				c.fetches = append(c.fetches, fetch{Share{m.Partition, n}, m.From})
			}
		}
	}
}

// findPairs returns what is to be compared: partitions that this node owns or will, with the owners
// of now; and partitions that it has given up. An owner that is still to come compares itself. An
// owner that stays while others go moves, too, where the change waits for it.
func (c *comparisons) findPairs() (list []candidate) {
	held := c.store.Holds()
	fetches := make(map[Share]bool, len(c.fetches))
	for _, m := range c.fetches {
		fetches[m.Share] = true
	}
	for p := range c.view.Partitions() {
		for _, n := range c.classes {
			of := Share{p, n}
			if !c.view.Owns(c.config.Self, p, n) && !slices.Contains(held, of) {
				continue
			}
			owners := c.view.Owners(nil, p, ring.Current, n)
			move := fetches[of] || !slices.Contains(owners, c.config.Self)
			for _, id := range owners {
				if m, _ := c.view.Member(id); id != c.config.Self && m.State != ring.Removed {
					list = append(list, candidate{pair{of, id}, move})
				}
			}
		}
	}
	return list
}

// moves reports whether a pass brings a partition to a new owner, and has not yet.
func (c *comparisons) moves(of candidate) bool {
	_, done := c.moved[of.pair]
	return of.move && !done
}

// dropGiven removes partitions that others own, once each of their owners has had everything for
// DropMS.
func (c *comparisons) dropGiven() {
	for _, of := range c.store.Holds() {
		if c.view.Owns(c.config.Self, of.Partition, of.Copies) {
			continue
		}
		owners := c.view.Owners(nil, of.Partition, ring.Current, of.Copies)
		if slices.ContainsFunc(owners, func(id ring.ID) bool { return !c.given[pair{of, id}] }) {
			continue
		}
		since, known := c.spare[of]
		if !known {
			since = c.now.Steady
			c.spare[of] = since
		}
		if c.now.Steady >= since+c.config.DropMS {
			delete(c.spare, of)
			c.store.Drop(of)
		}
	}
}

// PendingPartitions returns the number of partitions that this node will own under the ring it
// knows, and of which it does not have everything yet from the owners before it. Where nothing is
// left, a change of that ring can be finished.
func (c *Core) PendingPartitions() (partitions int) {
	for _, m := range c.compare.fetches {
		if slices.ContainsFunc(m.from, func(id ring.ID) bool {
			return !c.compare.fetched[pair{m.Share, id}]
		}) {
			partitions++
		}
	}
	return partitions
}
