package sim

import (
	"fmt"

	"dalmatiner/internal/cluster/replication"
	words "dalmatiner/internal/codec/point"
)

// Profile says which faults a run has.
type Profile struct {
	Nodes, N, W int
	Own         int  // n of half of the series; 0: that of the ring
	Members     bool // the ring changes
	Disks       bool // disks are lost for good, one at most
	Clocks      bool // wall clocks jump
	// deletions hold without exception: clocks agree, and no member can stand in for another
	Strict      bool
	Least, Most int  // n moves between them; 0: it stays
	Operators   int  // of ten steps, in how many an operator does something, beside faults
	Mild        int  // of ten steps, in how many there is no fault
	Once        bool // no slot is written twice: with n = 1 the last word stays, not the largest
	Paging      PageLimits
}

// The shape of a run.
const (
	steps     = 60
	stepMS    = 120
	series    = 10
	slots     = 12
	maxHints  = 40
	healingMS = 60_000
)

// chaos is a cluster that goes through the faults of a profile.
type chaos struct {
	*Cluster
	Profile
}

// Chaos runs a cluster through faults and load, heals it, and says what does not hold.
func Chaos(seed uint64, p Profile) (*Cluster, error) {
	c := chaos{New(Options{
		Seed:       seed,
		Nodes:      p.Nodes,
		Partitions: 4,
		N:          p.N,
		W:          p.W,
		R:          max(p.N-p.W+1, 1),
		MaxHints:   maxHints,
		Own:        p.Own,
		Paging:     p.Paging,
	}), p}
	return c.Cluster, c.run()
}

func (c chaos) run() error {
	c.Run(1) // an entry of the journal that ended at 0 is under way
	for range steps {
		if c.rng.IntN(10) >= c.Mild {
			c.fault()
		}
		if c.rng.IntN(10) < c.Operators {
			c.operate()
		}
		for range c.rng.IntN(4) {
			c.load()
		}
		c.Run(c.rng.Int64N(2 * stepMS))
		if c.Members {
			c.Finish()
		}
		if c.rng.IntN(8) == 0 {
			read := c.readBack
			if c.Members && c.rng.IntN(5) == 0 {
				read = c.readAmong
			}
			if err := read(); err != nil {
				return err
			}
		}
		if wrong := c.copies(); len(wrong) > 0 {
			return fmt.Errorf("%d points have too few copies: %s", len(wrong), wrong[0])
		}
	}
	if err := c.Settle(healingMS); err != nil {
		return err
	}
	if wrong := c.Check(c.Strict, !c.Clocks); len(wrong) > 0 {
		return fmt.Errorf("%d promises are broken: %s", len(wrong), wrong[0])
	}
	return nil
}

// load sends a batch: points with values that no other batch has, or a deletion.
func (c chaos) load() {
	node := c.rng.IntN(len(c.nodes))
	if c.rng.IntN(12) == 0 {
		c.Write(node, nil, Series(c.rng.IntN(series/2)))
		return
	}
	var rows []replication.Row
	half := c.rng.IntN(2) // of the series: a batch is of one bucket
	first, side := c.rng.IntN(series/2), c.rng.IntN(3) == 0
	at := uint64(c.rng.IntN(slots))
	for n := range 1 + c.rng.IntN(4) {
		// Random high bits: the largest value of a slot is not the newest.
		word := uint64(c.rng.IntN(1<<16)+1)<<24 | uint64(len(c.journal))<<4 | uint64(len(rows))
		slot := uint64(c.rng.IntN(slots))
		if c.Once {
			slot = c.slots + uint64(len(rows))
		}
		number := c.rng.IntN(series / 2)
		if side { // series that follow each other, in one slot
			number, slot = (first+n)%(series/2), at
			if c.Once {
				slot = c.slots
			}
		}
		value := replication.Value{Word: word, Time: word ^ 0xff}
		if c.rng.IntN(10) == 0 {
			value = replication.Value{Word: words.Stale}
		}
		rows = append(rows, replication.Row{Series: Series(number*2 + half), Slot: slot, Value: value})
	}
	c.Write(node, rows)
}

// fault lets something happen, or end.
func (c chaos) fault() {
	i, j := c.rng.IntN(len(c.nodes)), c.rng.IntN(len(c.nodes))
	switch c.rng.IntN(16) {
	case 0:
		c.scheduleAfter(c.rng.Int64N(40), func() { c.Crash(i) }) // among what follows
	case 1, 2:
		c.Start(i)
	case 12:
		c.scheduleAfter(c.rng.Int64N(60), c.powerCut)
	case 3:
		c.Split(i)
	case 4:
		c.Split(i, j)
	case 5:
		if i != j {
			c.Cut(i, j)
			c.note("nothing reaches n%d from n%d", j, i)
		}
	case 6, 7:
		c.Heal()
	case 8:
		if !c.Clocks {
			return
		}
		c.nodes[i].skew = c.rng.Int64N(20e9) - 10e9
		c.note("the clock of n%d is off by %d ms", i, c.nodes[i].skew/1e6)
	case 9:
		c.nodes[i].disk.full = !c.nodes[i].disk.full
		c.note("the disk of n%d is full: %t", i, c.nodes[i].disk.full)
	case 13:
		if c.away[i] = !c.away[i]; c.away[i] {
			c.note("n%d is in maintenance", i)
		} else {
			c.note("the maintenance of n%d is over", i)
		}
	case 14:
		c.Stop(i, 1+c.rng.Int64N(5*stepMS))
	case 10, 11:
		if c.Members {
			c.operate()
		}
	}
}

// powerCut stops all nodes at once, and starts them again.
func (c chaos) powerCut() {
	for i := range c.nodes {
		c.Crash(i)
		c.scheduleAfter(c.rng.Int64N(100), func() { c.Start(i) })
	}
}
