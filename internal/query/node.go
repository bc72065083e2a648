package query

import "time"

// block is a run of values with, where the plan needs them, the confidences
// of the same values. Both grow by appending.
type block struct {
	v []float64
	c []float64
}

func (b block) empty() block { return block{v: b.v[:0], c: b.c[:0]} }

// take appends all of o to b and empties it.
func (b block) take(o *block) block {
	b.v, b.c = append(b.v, o.v...), append(b.c, o.c...)
	*o = o.empty()
	return b
}

// node is an operator of the plan. It is pulled once per round by each of its
// consumers, through executor.pull.
type node interface {
	// next appends to dst the outputs that become complete in this round, in
	// order. With common.conf, it appends their confidences too.
	next(x *executor, dst block) (block, error)

	// needConfidence marks the node, and what it reads, as needing
	// confidences where want is set or the node's own function uses them.
	needConfidence(want bool)

	// coverage returns how many slots were read below the node, and how many
	// of them are set. Valid after the last round.
	coverage() (set, slots int64)

	shared() *common
}

// common is what all nodes have.
type common struct {
	id   int
	res  int64 // ms per output
	n    int64 // outputs in all
	form int   // nodes of equal form complete equally many outputs each round
	// piece is after how many outputs the reads below began anew, as the
	// original's do; 0 = never.
	piece int64
	late  bool // outputs may be held back until the end and come at once
	conf  bool // confidences are wanted

	refs   int    // consumers
	inputs []node // what it pulls
	what   string // its name in the plan, if that is asked for
	took   time.Duration

	slotwise bool // its outputs are wanted by something else than windows over spans

	visited int // by the walk of that number over what a result is computed from

	seen   bool // needConfidence was here
	listed bool // in the order of pulls
	round  int  // that buf belongs to; rounds count from 1
	buf    block
}

func (c *common) shared() *common { return c }

// over is what nodes of one input have, and what most of them do.
type over struct {
	common
	in    node
	needs bool // confidences of the input are used, whether or not those of the node are
}

func (o *over) needConfidence(want bool) {
	if o.enter(want) {
		o.in.needConfidence(want || o.needs)
	}
}

func (o *over) coverage() (set, slots int64) { return o.in.coverage() }

// enter reports whether needConfidence has to go on below the node.
func (c *common) enter(want bool) bool {
	if c.seen && (c.conf || !want) {
		return false
	}
	c.seen = true
	c.conf = c.conf || want
	return true
}
