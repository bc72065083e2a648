package sim

import (
	"slices"

	"dalmatiner/internal/cluster/ring"
)

// newcomers is how many nodes may be added to those of the start.
const newcomers = 6

// newcomer starts a node with an empty disk, and returns the change with which it joins or replaces
// another.
func (c *Cluster) newcomer(replaces int) ring.Change {
	n := c.add()
	n.view = c.view
	change := ring.Change{Action: ring.Join, Member: ring.Candidate{ID: n.id, Name: n.String(),
		Protocol: ring.Protocol{Min: 1, Max: 1}, Partitions: c.options.Partitions}}
	if replaces >= 0 {
		change.Action, change.Node = ring.Replace, c.nodes[replaces].String()
	}
	c.Start(n.number)
	return change
}

// joinAgain returns the change of a member whose join was taken back: it joins with the disk that
// it has.
func (c *Cluster) joinAgain() (change ring.Change, is bool) {
	for _, n := range c.nodes {
		if m, member := c.view.Member(n.id); member && m.State == ring.Pending && !n.gone {
			return ring.Change{
				Action: ring.Join, Member: ring.Candidate{ID: n.id, Name: n.String(), HasData: true,
					Protocol: ring.Protocol{Min: 1, Max: 1}, Partitions: c.options.Partitions}}, true
		}
	}
	return change, false
}

// takeAway ends a node for good that is no member any more, whether or not it has heard of that.
func (c *Cluster) takeAway(n *node) {
	if _, member := c.view.Member(n.id); member || n.gone {
		return
	}
	n.left = true
	c.Lose(n.number)
}

// holdMoves holds moves back on all nodes, or lets them go on.
func (c *Cluster) holdMoves(on bool) {
	c.held = on
	c.note("moves are held back: %t", on)
	for _, n := range c.nodes {
		if n.core != nil {
			n.core.HoldMoves(on)
		}
	}
}

// operate lets an operator do something: members join, leave, are replaced or removed, n changes,
// several of these in one plan, moves are held back, or a change is taken back. What the ring
// refuses does not happen.
func (c chaos) operate() {
	i := c.rng.IntN(len(c.nodes))
	var err error
	switch kind := c.rng.IntN(12); kind {
	case 0:
		c.holdMoves(true)
		c.scheduleAfter(c.rng.Int64N(6*stepMS), func() { c.holdMoves(false) })
	case 1:
		if c.view.IsChanging() && c.rng.IntN(3) == 0 {
			err = c.Undo()
		}
	case 2, 3:
		c.lose(i)
	default:
		if plan := c.stage(kind, i); len(plan) > 0 && !c.view.IsChanging() {
			err = c.Plan(plan...)
		}
	}
	if err != nil {
		c.note("not done: %v", err)
	}
}

// stage returns the changes of a plan.
func (c chaos) stage(kind, i int) (plan []ring.Change) {
	room := len(c.nodes) < c.Nodes+newcomers && !c.view.IsChanging()
	leave := ring.Change{Action: ring.Leave, Node: c.nodes[i].String()}
	switch kind {
	case 4, 5:
		if change, is := c.joinAgain(); is && c.rng.IntN(2) == 0 {
			plan = append(plan, change)
		} else if room {
			plan = append(plan, c.newcomer(-1))
		}
	case 6:
		plan = append(plan, leave)
	case 7:
		if _, member := c.view.Member(c.nodes[i].id); room && member {
			plan = append(plan, c.newcomer(i))
		}
	case 8:
		if room {
			plan = append(plan, c.newcomer(-1), leave)
		}
	case 9:
		if room {
			plan = append(plan, c.newcomer(-1))
		}
		fallthrough
	default:
		if n := c.Least + c.rng.IntN(c.Most-c.Least+1); n > 0 && n != c.view.Copies(ring.Future) {
			plan = append(plan, ring.Change{Action: ring.SetCopies, Copies: n})
		}
	}
	return plan
}

// lose takes the disk of a member for good, once in a run. It is removed, or a new node takes its
// place in the same plan.
func (c chaos) lose(i int) {
	_, member := c.view.Member(c.nodes[i].id)
	if !c.Disks || !member || c.view.IsChanging() && c.rng.IntN(2) == 0 ||
		slices.ContainsFunc(c.nodes, (*node).hasLostDisk) {
		return
	}
	c.Lose(i)
	if len(c.nodes) == c.Nodes+newcomers || c.view.IsChanging() || c.rng.IntN(2) == 0 {
		c.giveUp(i)
		return
	}
	name := c.nodes[i].String()
	if err := c.Plan(c.newcomer(i),
		ring.Change{Action: ring.ForceRemove, Node: name}); err != nil {
		c.note("not done: %v", err)
	}
}
