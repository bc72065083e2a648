package sim

import (
	"fmt"

	"dalmatiner/internal/cluster/replication"
	"dalmatiner/internal/cluster/ring"
)

// Profile says which faults a run has.
type Profile struct {
	Nodes, N, W int
	Members     bool // the ring changes
	Disks       bool // disks are lost for good, one at most
	Clocks      bool // wall clocks jump
	Strict      bool // deletions hold without exception: clocks agree, and no member can stand in for another
}

// The shape of a run.
const (
	steps     = 60
	stepMS    = 120
	series    = 6
	slots     = 8
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
	c := chaos{New(Options{Seed: seed, Nodes: p.Nodes, Partitions: 4, N: p.N, W: p.W, R: 1, MaxHints: maxHints}), p}
	return c.Cluster, c.run()
}

func (c chaos) run() error {
	c.Run(1) // an entry of the journal that ended at 0 is under way
	for range steps {
		c.fault()
		for range c.rng.IntN(4) {
			c.load()
		}
		c.Run(c.rng.Int64N(2 * stepMS))
		if c.Members {
			c.Finish()
		}
		if wrong := c.copies(); len(wrong) > 0 {
			return fmt.Errorf("%d points have too few copies: %s", len(wrong), wrong[0])
		}
	}
	if err := c.Settle(healingMS); err != nil {
		return err
	}
	if wrong := c.Check(c.Strict); len(wrong) > 0 {
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
	for range 1 + c.rng.IntN(4) {
		// Random high bits: the largest value of a slot is not the newest.
		word := uint64(c.rng.IntN(1<<16)+1)<<24 | uint64(len(c.journal))<<4 | uint64(len(rows))
		rows = append(rows, replication.Row{Series: Series(c.rng.IntN(series)), Slot: uint64(c.rng.IntN(slots)),
			Value: replication.Value{Word: word, Time: word ^ 0xff}})
	}
	c.Write(node, rows)
}

// fault lets something happen, or end.
func (c chaos) fault() {
	i, j := c.rng.IntN(len(c.nodes)), c.rng.IntN(len(c.nodes))
	switch c.rng.IntN(16) {
	case 0:
		c.after(c.rng.Int64N(40), func() { c.Crash(i) }) // among what follows
	case 1, 2:
		c.Start(i)
	case 12:
		c.after(c.rng.Int64N(60), c.powerCut)
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
	case 10, 11:
		if c.Members {
			c.member(i)
		}
	}
}

// powerCut stops all nodes at once, and starts them again.
func (c chaos) powerCut() {
	for i := range c.nodes {
		c.Crash(i)
		c.after(c.rng.Int64N(100), func() { c.Start(i) })
	}
}

// member lets nodes come, go, be replaced, or n change. What the ring refuses does not happen.
func (c chaos) member(i int) {
	lost := false
	for _, n := range c.nodes {
		lost = lost || n.gone
	}
	var err error
	switch kind := c.rng.IntN(6); {
	case kind == 5 && c.view.Changing():
		err = c.Undo()
	case len(c.nodes) < c.Nodes+3 && kind < 2:
		err = c.Join(-1)
	case len(c.nodes) < c.Nodes+3 && kind == 4:
		err = c.Join(i)
	case kind == 2:
		err = c.Plan(ring.Change{Action: ring.Leave, Node: c.nodes[i].String()})
	case kind == 3 && c.Disks && !lost && len(c.nodes) < c.Nodes+3 && !c.view.Changing():
		c.Lose(i)
		c.giveUp(i)
	}
	if err != nil {
		c.note("not done: %v", err)
	}
}
