// Package exec runs the plans of queries: round by round over the time range, reads,
// functions, results. Its memory depends on the size of the results and not on the number of
// points read.
package exec

import (
	"context"
	"slices"
	"time"

	"dalmatiner/internal/codec/chunk"
	"dalmatiner/internal/query/plan"
	"dalmatiner/internal/query/readers"
	"dalmatiner/internal/query/source"
)

// Env is what a run uses beside its plan.
type Env struct {
	Now      func() time.Time
	Readers  *readers.Readers // nil is none
	Progress *Progress        // nil where nobody asks

	Together source.Aggregator // of the plan's source; nil reads series one by one
	AtOnce   int               // series that a reader takes at a time, at least 1

	Memory plan.Memory // lends what was not planned; nil lends everything

	// Until, above the start of the range, is the end that was asked for, in unix ms, where the
	// range goes on to the end of a step: no points are promised behind it.
	Until int64

	// KeepUntil, above the start of the range, has the run return the whole steps before that
	// time, in unix ms, if the plan has any.
	KeepUntil int64
}

// executor runs a plan over its time range, round by round.
type executor struct {
	ctx context.Context
	env Env

	plan    *plan.Plan
	nodes   []node  // what runs the nodes of the plan, by their IDs
	roots   []input // of the results, without what is before the range
	leaves  []*leaf
	spans   []*spans
	columns []*columns // of each root; nil where the values themselves are asked for

	round int
	visit int   // numbers walks over the plan
	final bool  // this is the last round
	bound int64 // unix ms that this round reaches; ignored in the last one

	readers []*reader // the first is the query's own goroutine
	ahead   *ahead
	free    []block // scratch blocks not in use
	out     []block
	ranks   []block // of TOP and BOTTOM: one value per root
	stats   Stats

	from, end int64  // unix ms: what the run computes; behind the range for steps that are kept
	known     *Steps // that the run takes over; nil for none
	keep      int    // steps that are kept of the run
	step      int64  // their length in ms

	below time.Duration // of what the running node pulled, for EXPLAIN
}

// reader is what one goroutine of a query reads with.
type reader struct {
	*executor
	*readers.Buffers
}

// Run runs a plan once. The result is the caller's.
func Run(ctx context.Context, p *plan.Plan, env Env) (*Result, error) {
	x := &executor{
		ctx:   ctx,
		env:   env,
		plan:  p,
		out:   make([]block, len(p.Roots)),
		ranks: make([]block, len(p.Ranks)),
		from:  p.Start,
	}
	return x.answer()
}

// answer runs the plan.
func (x *executor) answer() (*Result, error) {
	if x.end = x.plan.End; x.known != nil && x.env.KeepUntil > x.plan.Start {
		x.lookAhead()
	}
	x.build()
	x.openNotes()
	helpers := x.env.Readers.Take(x.plan.Helpers)
	defer x.env.Readers.Give(helpers)
	if err := x.run(helpers); err != nil {
		return nil, err
	}
	r := &Result{Stats: x.stats, Steps: x.steps()} // before the values are rounded and shown
	if x.plan.Explain {
		r.Explained = x.explained()
		return r, nil
	}
	var err error
	if r.Series, err = x.results(); err == nil && len(r.Series) == 0 {
		err = plan.ErrNoResults
	}
	return r, err
}

// run reads with so many goroutines beside its own.
func (x *executor) run(helpers int) error {
	for i, r := range x.plan.Roots {
		if r.Columns != nil {
			continue
		}
		x.out[i].v = make([]float64, 0, r.Of.Values)
		if x.plan.Confidence {
			x.out[i].c = make([]float64, 0, r.Of.Values)
		}
	}
	for range 1 + helpers {
		r := &reader{executor: x, Buffers: x.env.Readers.TakeBuffers()}
		if x.plan.Slotwise {
			// A coarser read may start anywhere in its slot, hence the one more.
			r.Words = slices.Grow(r.Words, int(x.plan.Slots+1))[:x.plan.Slots+1]
		}
		x.readers = append(x.readers, r)
	}
	x.ahead = newAhead(x, x.readers[1:])
	if x.known != nil {
		x.takeOver()
	}
	if x.from < x.end {
		if err := x.rounds(); err != nil {
			return err
		}
	}
	for _, r := range x.readers {
		x.env.Readers.GiveBuffers(r.Buffers)
	}
	for _, s := range x.spans {
		s.finish()
	}
	for _, l := range x.leaves {
		x.stats.Reads++
		x.stats.PointsRead += l.asked
		x.stats.Slots += l.of.past - l.of.from
		x.stats.Set += l.of.set
	}
	return nil
}

// rounds runs the rounds. A round is so many slots of the finest resolution, the first from the
// begin of a chunk on: a range that fits into one is not cut.
func (x *executor) rounds() error {
	res, slots, from := x.plan.Finest, x.plan.Slots, x.from-x.plan.Before
	bound := plan.SlotOf(from, res)
	whole := min(slots, chunk.Slots)
	bound -= (bound%whole + whole) % whole
	for !x.final {
		if err := plan.GivenUp(x.ctx); err != nil {
			return err
		}
		bound += slots
		x.bound, x.final = bound*res, bound*res >= x.end
		x.round++
		if err := x.readSpans(); err != nil {
			return err
		}
		x.ahead.begin()
		err := x.pullAll()
		x.ahead.end()
		if err != nil {
			return err
		}
		x.env.Progress.reached(float64(x.bound-from) / float64(x.end-from))
	}
	return nil
}

// lend takes memory that the plan did not count.
func (x *executor) lend(bytes int64) error {
	if x.env.Memory == nil {
		return nil
	}
	return x.env.Memory.Grow(bytes)
}

// pullAll pulls the results once.
func (x *executor) pullAll() error {
	for i, r := range x.plan.Roots {
		if r.Columns != nil && r.Columns.Spans != nil {
			continue
		}
		var err error
		if x.out[i], err = x.roots[i].pull(x, x.out[i]); err != nil {
			return err
		}
		if !x.plan.Confidence {
			x.out[i].c = x.out[i].c[:0] // another consumer of the node has use for them
		}
		if c := x.columns[i]; c != nil {
			c.add(x.out[i].v, x.out[i].c)
			x.out[i] = x.out[i].empty()
		}
	}
	for i, n := range x.plan.Ranks {
		var err error
		if x.ranks[i], err = x.pull(x.nodes[n.ID], x.ranks[i]); err != nil {
			return err
		}
	}
	return nil
}

// pull appends the outputs of n for this round to dst. A node with several
// consumers computes them once.
func (x *executor) pull(n node, dst block) (block, error) {
	c := n.shared()
	if c.Uses == 1 {
		return x.advance(n, dst)
	}
	if err := x.complete(n); err != nil {
		return dst, err
	}
	dst.v = append(dst.v, c.buf.v...)
	dst.c = append(dst.c, c.buf.c...)
	return dst, nil
}

// complete has a node with several consumers compute its outputs of this round.
func (x *executor) complete(n node) error {
	c := n.shared()
	if c.round == x.round {
		return nil
	}
	var err error
	if c.buf, err = x.advance(n, c.buf.empty()); err != nil {
		return err
	}
	c.round = x.round
	return nil
}

// scratch returns an empty block, to be given back with release.
func (x *executor) scratch() block {
	n := len(x.free)
	if n == 0 {
		return block{v: make([]float64, 0, len(x.readers[0].Words))}
	}
	b := x.free[n-1]
	x.free = x.free[:n-1]
	return b.empty()
}

func (x *executor) release(b block) { x.free = append(x.free, b) }
