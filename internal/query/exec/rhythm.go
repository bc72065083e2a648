package exec

import (
	"math"

	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/query/hold"
	"dalmatiner/internal/query/plan"
	"dalmatiner/internal/query/spacing"
)

// rhythm is what the points of a read say of its sender.
type rhythm struct {
	known    bool
	distance int64 // slots from a point to the next one, most often; at least 1
	until    int64 // unix ms up to which its last point stands for it; the least number without one
}

// leastPatience is the least age of the last point of an ended series, in ms: senders that send in
// batches are late by that much.
const leastPatience = 60_000

// describe says of a series what its reads found.
func (x *executor) describe(s *Series, of *plan.Node, rhythms []rhythm) error {
	if x.plan.Compat {
		s.Coverage = ratio(x.oldCoverage(of))
		return nil
	}
	reads := x.readsOf(of, shownInputs)
	s.Start = reads[0].time(reads[0].of.from) // which the range may begin within
	most := int64(1)                          // points of the read whose interval counts
	s.HeldUntil = math.MinInt64
	for _, l := range reads {
		r := &rhythms[l.ID]
		if !r.known {
			var err error
			if *r, err = x.rhythmOf(l); err != nil {
				return err
			}
		}
		s.HeldUntil = max(s.HeldUntil, r.until)
		s.Points += l.of.set
		interval := r.distance * l.Resolution
		if l.of.set > most || l.of.set == most && most > 1 && interval < s.Interval {
			most, s.Interval = l.of.set, interval
		}
		if s.BucketResolution == 0 || l.Resolution < s.BucketResolution {
			s.BucketResolution = l.Resolution
		}
		if l.of.set > 0 {
			s.LastPoint = max(s.LastPoint, l.time(l.of.last))
		}
	}
	set, promised := int64(0), int64(0)
	for _, l := range reads {
		due := rhythms[l.ID].promises(l, x.slotsOf(l), s.Interval)
		set, promised = set+min(l.of.set, due), promised+due
	}
	s.Coverage = ratio(set, promised)
	return nil
}

func ratio(n, of int64) float64 {
	if of == 0 {
		return 0
	}
	return float64(n) / float64(of)
}

// promises returns how many points the sender of a read promises for its range. A sender of which
// too little is known is taken for one like the others. These send a point per interval, in ms.
func (r *rhythm) promises(l *leaf, slots, interval int64) int64 {
	distance := r.distance
	if l.of.set < 2 && !l.Events {
		distance = max(1, interval/l.Resolution)
	}
	return max(1, slots/distance)
}

// slotsOf returns how many slots of a read lie in the range that was asked for.
func (x *executor) slotsOf(l *leaf) int64 {
	past := l.of.past
	if x.env.Until > x.plan.Start {
		past = min(past, plan.SlotOf(x.env.Until-l.Shift-1, l.Resolution)+1)
	}
	return past - l.of.from
}

// readsOf returns the reads that a node is computed from, each once, by the inputs of nodes that
// are asked about.
func (x *executor) readsOf(of *plan.Node, inputs func(*plan.Node) []*plan.Node) []*leaf {
	if l, ok := x.nodes[of.ID].(*leaf); ok {
		return []*leaf{l}
	}
	x.visit++
	var list []*leaf
	var walk func(n *plan.Node)
	walk = func(n *plan.Node) {
		c := x.nodes[n.ID].shared()
		if c.visited == x.visit {
			return
		}
		c.visited = x.visit
		if l, ok := x.nodes[n.ID].(*leaf); ok {
			list = append(list, l)
		}
		for _, in := range inputs(n) {
			walk(in)
		}
	}
	walk(of)
	return list
}

// shownInputs returns the inputs of a node whose values it shows or computes with.
func shownInputs(n *plan.Node) []*plan.Node {
	if _, ok := n.Op.(*plan.Pick); ok {
		return n.Inputs[:1] // the other is what it is compared with
	}
	return n.Inputs
}

// rhythmOf looks at the last points of a read. Where every slot is set there is nothing to look
// at.
func (x *executor) rhythmOf(l *leaf) (rhythm, error) {
	r := rhythm{known: true, distance: 1}
	switch {
	case l.Events:
		r.until = math.MaxInt64
		return r, nil
	case l.of.set == 0:
		r.until = math.MinInt64
		return r, nil
	case l.of.set >= x.slotsOf(l):
		r.until = l.time(l.of.last) + max(leastPatience, 5*l.Resolution/2)
		return r, nil
	}
	from := max(l.of.from, l.of.last+1-spacing.Sample, 0)
	words := make([]uint64, l.of.last+1-from)
	if _, err := x.readWords(l, from, words); err != nil {
		return r, l.failed(err)
	}
	if r.distance = spacing.Distance(words); r.distance == 0 {
		if r.distance = 1; l.of.set > 1 {
			r.distance = max(1, spacing.MeanDistance(l.of.first, l.of.last, l.of.set))
		}
	}
	r.until = l.time(l.of.last) + max(leastPatience, patienceOf(words, l.Resolution))
	return r, nil
}

// patienceOf returns for how many ms the last point of a series stands for it, whose last slots
// are some words.
func patienceOf(words []uint64, resolution int64) int64 {
	var s hold.Series
	for _, w := range words {
		if isNumber(w) {
			s.Value(resolution)
		} else {
			s.Pass()
		}
	}
	return s.Patience(resolution)
}

// time returns when a slot begins, in unix ms of the query.
func (l *leaf) time(slot int64) int64 { return slot*l.Resolution + l.Shift }

// isNumber reports whether a word is a value.
func isNumber(w uint64) bool {
	if w>>56 == 0 {
		return false
	}
	v := point.Float(w)
	return v == v
}
