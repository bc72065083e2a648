package query

import (
	"context"
	"fmt"
	"slices"
	"time"

	"dalmatiner/internal/point"
)

// Rounds end at multiples of chunkSlots in the finest resolution read, since
// the store keeps points in runs of that many slots and decodes whole runs.
const (
	chunkSlots = 720
	// roundSlots is the length of a round: within MaxRead, and such that the
	// buffers of a plain query stay in the processor's second cache level.
	roundSlots = 32 * chunkSlots
	// bufferedValues bounds the values held by all nodes that keep a round's
	// outputs; with many of them rounds become shorter.
	bufferedValues = 8 << 20
)

// executor runs a plan over its time range, round by round.
type executor struct {
	ctx    context.Context
	source Source
	plan   *planner

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

	now   func() time.Time
	below time.Duration // of what the running node pulled, for the plan
}

func newExecutor(ctx context.Context, e *Engine, p *planner) *executor {
	return &executor{ctx: ctx, source: e.Source, now: e.Now, plan: p, out: make([]block, len(p.roots)), ranks: make([]block, len(p.ranks))}
}

// run reads with so many goroutines beside its own.
func (x *executor) run(helpers int) error {
	for i, r := range x.plan.roots {
		if r.columns != nil {
			r.columns.open(r.of.shared().n)
			continue
		}
		x.out[i].v = make([]float64, 0, r.of.shared().n)
		if x.plan.opt.Confidence {
			x.out[i].c = make([]float64, 0, r.of.shared().n)
		}
	}
	res, slots := x.plan.roundLength()
	for range 1 + helpers {
		r := &reader{executor: x, readBuffers: x.plan.shared.takeBuffers()}
		if x.plan.slotwise() {
			// A coarser read may start anywhere in its slot, hence the one more.
			r.words = slices.Grow(r.words, int(slots+1))[:slots+1]
		}
		x.readers = append(x.readers, r)
	}
	x.ahead = newAhead(x.plan, x.readers[1:])
	if err := x.rounds(res, slots); err != nil {
		return err
	}
	for _, r := range x.readers {
		x.plan.shared.giveBuffers(r.readBuffers)
	}
	for _, s := range x.plan.spans {
		s.finish()
	}
	for _, l := range x.plan.leaves {
		x.stats.Reads++
		x.stats.PointsRead += l.asked
		x.stats.Slots += l.n
		x.stats.Set += l.set
	}
	return nil
}

// rounds runs all of them. One is so many slots of a resolution, the first from
// the begin of a chunk on: a range that fits into one is not cut.
func (x *executor) rounds(res, slots int64) error {
	bound := x.plan.start / res
	bound -= bound % min(slots, chunkSlots)
	for !x.final {
		if err := givenUp(x.ctx); err != nil {
			return err
		}
		bound += slots
		x.bound, x.final = bound*res, bound*res >= x.plan.end
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
		x.plan.opt.Progress.reached(float64(x.bound-x.plan.start) / float64(x.plan.end-x.plan.start))
	}
	return nil
}

// pullAll pulls the results once.
func (x *executor) pullAll() error {
	for i, r := range x.plan.roots {
		if r.columns != nil && r.columns.from != nil {
			continue
		}
		var err error
		if x.out[i], err = x.pull(r.of, x.out[i]); err != nil {
			return err
		}
		if !x.plan.opt.Confidence {
			x.out[i].c = x.out[i].c[:0] // another consumer of the node has use for them
		}
		if r.columns != nil {
			if !r.columns.begun && len(x.out[i].v) > 0 {
				r.columns.skip(x.plan.lead(r.of))
			}
			r.columns.add(x.out[i].v, x.out[i].c)
			x.out[i] = x.out[i].empty()
		}
	}
	for i, n := range x.plan.ranks {
		var err error
		if x.ranks[i], err = x.pull(n, x.ranks[i]); err != nil {
			return err
		}
	}
	return nil
}

// givenUp is the error of a query for which nobody waits any more.
func givenUp(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("the query was given up: %w", err)
	}
	return nil
}

// roundLength returns the finest resolution read and how many of its slots a
// round has.
func (p *planner) roundLength() (res, slots int64) {
	res, buffers, longest := p.leaves[0].res, p.rounds(), int64(0)
	for _, l := range p.leaves {
		res = min(res, l.res)
		longest = max(longest, l.n)
	}
	slots = p.slots
	if !p.slotwise() {
		slots *= spanRounds
	}
	if buffers > 0 {
		slots = min(slots, max(1, bufferedValues/int64(buffers)/chunkSlots)*chunkSlots)
	}
	slots *= p.stretch()
	// No round is longer than the range, rounded up to whole chunks on both sides.
	return res, min(slots, (longest/chunkSlots+2)*chunkSlots)
}

// stretch is how many times as many slots a round has where nothing but spans
// longer than a chunk is read: it has as many of them as it would have chunks.
func (p *planner) stretch() int64 {
	if p.slotwise() {
		return 1
	}
	finest, shortest := p.leaves[0].res, int64(1<<32) // more than a query may read, and little enough to multiply
	for _, l := range p.leaves {
		finest = min(finest, l.res)
	}
	for _, s := range p.spans {
		shortest = min(shortest, s.size*s.of.res/finest)
	}
	return max(1, shortest/chunkSlots)
}

// rounds returns how many series hold their values of a round; a window over
// spans has one for minSpan of its slots at most.
func (p *planner) rounds() int {
	n := p.buffers + p.readers() + (p.spanWindows+minSpan-1)/minSpan
	if p.slotwise() {
		n += (1 + aheadBlocks) * p.helpers()
	}
	for _, node := range p.order {
		if node.shared().refs > 1 {
			n++
		}
	}
	return n
}

// pull appends the outputs of n for this round to dst. A node with several
// consumers computes them once.
func (x *executor) pull(n node, dst block) (block, error) {
	c := n.shared()
	if c.refs == 1 {
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
		return block{v: make([]float64, 0, len(x.readers[0].words))}
	}
	b := x.free[n-1]
	x.free = x.free[:n-1]
	return b.empty()
}

func (x *executor) release(b block) { x.free = append(x.free, b) }

// results returns the series in order. Values lose the lowest bit of their
// fraction, as every float does that passes through a point.
func (x *executor) results() []Series {
	chosen := x.chosen()
	list := make([]Series, 0, len(chosen))
	for _, i := range chosen {
		r := x.plan.roots[i]
		c := r.of.shared()
		s := Series{Name: r.name, Resolution: c.res, Start: x.plan.start, Values: x.out[i].v, Confidence: x.out[i].c, Metadata: r.meta}
		s.Lead = int(x.plan.lead(r.of))
		if r.columns != nil {
			r.columns.finish()
			s.Resolution *= r.columns.step
			if r.columns.unit > 0 {
				s.Start = r.columns.start(r.of.(*leaf))
			}
			s.Values, s.Min, s.Max, s.Confidence, s.Lead = r.columns.avg, r.columns.min, r.columns.max, r.columns.conf, r.columns.lead
		}
		if !x.plan.opt.Compat {
			s.Interval, s.BucketResolution = x.interval(r.of)
			s.Bucket, s.Metric, s.Stars = r.bucket, r.metric(), r.stars()
			s.Unknown = x.unknown(r.of)
		}
		if x.plan.opt.Rhythm {
			s.hold()
		}
		if !x.plan.opt.Confidence {
			s.Confidence = nil // others may have asked for those of a shared node
		}
		truncate(s.Values)
		truncate(s.Min)
		truncate(s.Max)
		if set, slots := r.of.coverage(); slots > 0 {
			s.Coverage = float64(set) / float64(slots)
		}
		list = append(list, s)
	}
	return list
}

// truncate rounds values to what a point can hold.
func truncate(v []float64) {
	for i := range v {
		v[i] = point.Float(point.FromFloat(v[i]))
	}
}
