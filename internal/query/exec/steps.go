package exec

import (
	"context"
	"errors"
	"slices"

	"dalmatiner/internal/chunk"
	"dalmatiner/internal/point"
	"dalmatiner/internal/query/plan"
	"dalmatiner/internal/query/spacing"
)

// Steps are the first steps of a run: their values, and what its reads found in them. A run of
// the same plan over a later range of the same length takes them over (Resume). Nobody changes
// them any more.
type Steps struct {
	plan  *plan.Plan
	start int64 // unix ms, of the first one
	step  int64 // ms
	n     int   // steps

	// earliest has of each step the first step that a range may begin with so that the values
	// of the step are the same: each read still carries the same value into it.
	earliest []int32
	roots    []block       // of each root of the plan, without columns
	columns  []keptColumns // of each root with them
	leaves   []found       // of each read of the plan
	states   []state       // behind the last step, of each node that has one
}

// found is what was found in the series of a read, from the first step kept to the end of
// the last.
type found struct {
	runs []spacing.Run // of a read by spans
	gaps spacing.Slots // of one slot by slot
	last uint64        // word, of the last set slot; point.Unset where none is set
}

// ErrNotKept is the error of Resume where what is kept is of no use: a series that had no point
// in the steps has one behind them, which gives them other values.
var ErrNotKept = errors.New("the steps that are kept are of no use")

// Bytes returns the memory that steps take, their plan included.
func (k *Steps) Bytes() int64 {
	n := k.plan.Planned + 4*int64(len(k.earliest)) + stateSize*int64(len(k.states))
	for _, b := range k.roots {
		n += 48 + 8*int64(cap(b.v)+cap(b.c))
	}
	for i := range k.columns {
		n += k.columns[i].bytes()
	}
	for i := range k.leaves {
		n += 56 + 16*int64(cap(k.leaves[i].runs)) + k.leaves[i].gaps.Bytes()
	}
	return n
}

// Step returns the length of a step in ms.
func (k *Steps) Step() int64 { return k.step }

// End returns the end of the last step in unix ms.
func (k *Steps) End() int64 { return k.start + int64(k.n)*k.step }

// Plan returns the plan of the run. The steps may be later than its range.
func (k *Steps) Plan() *plan.Plan { return k.plan }

// Of returns how many steps can be taken over for a range of the length of the plan's.
func (k *Steps) Of(times plan.Range) int {
	p := k.overlap(times)
	return p.to - p.from
}

// overlap are the steps that a range begins with, and those that can be taken over: [from, to).
type overlap struct{ begin, from, to int }

// overlap returns what the steps and a range have in common.
func (k *Steps) overlap(times plan.Range) (p overlap) {
	by, length := times.Start-k.start, times.End-times.Start
	if by < 0 || by%k.step != 0 || by/k.step >= int64(k.n) || length != k.plan.End-k.plan.Start {
		return overlap{}
	}
	p.begin = int(by / k.step)
	p.to = int(min(int64(k.n), (by+length)/k.step))
	if p.to < k.n && length%k.step != 0 {
		return overlap{} // what the short last step carries in is not known
	}
	for p.from = p.begin; p.from < p.to && int(k.earliest[p.from]) < p.begin; p.from++ {
	}
	return p
}

// Resume runs the plan of steps over another range, with the steps that can be taken over. The
// result is what Run has, or ErrNotKept.
func Resume(ctx context.Context, k *Steps, times plan.Range, env Env) (*Result, error) {
	p := *k.plan
	p.Range = times
	x := &executor{ctx: ctx, env: env, plan: &p, known: k, out: make([]block, len(p.Roots))}
	return x.answer()
}

// resume runs the steps before those that are known, takes these over, and runs those behind.
func (x *executor) resume() error {
	k := x.known
	p := k.overlap(x.plan.Range)
	if p.from == p.to {
		return ErrNotKept
	}
	if p.from > p.begin {
		if err := x.rounds(x.plan.Start, k.start+int64(p.from)*k.step, false); err != nil {
			return err
		}
	}
	for i, r := range x.plan.Roots {
		if r.Columns != nil {
			per := int(k.step / r.Of.Resolution / r.Columns.Step)
			x.columns[i].takeOver(&k.columns[i], p.from*per, p.to*per, int64(p.to-p.from)*k.step/r.Of.Resolution)
		}
	}
	for i, l := range x.leaves {
		taken := false
		if l.Pushed() {
			taken = l.takeOver(x, &k.leaves[i], k.step, p)
		} else {
			taken = l.takeSlots(&k.leaves[i], k.step, p)
		}
		if !taken {
			return ErrNotKept
		}
	}
	x.setStates(k.states)
	for i, r := range x.plan.Roots {
		if r.Columns != nil {
			continue
		}
		per := int(k.step / r.Of.Resolution)
		b := &k.roots[i]
		x.out[i].v = append(x.out[i].v, b.v[p.from*per:p.to*per]...)
		if x.plan.Confidence {
			x.out[i].c = append(x.out[i].c, b.c[p.from*per:p.to*per]...)
		}
	}
	if k.End() >= x.plan.End {
		for _, l := range x.leaves {
			l.foundNothing()
		}
		return nil
	}
	if err := x.roundsTo(k.End()); err != nil {
		return err
	}
	for i, l := range x.leaves {
		if k.leaves[i].last == point.Unset && l.firstSet() != unknown && l.firstSet() < l.Past {
			return ErrNotKept
		}
		if x.end > x.plan.End && l.holes.Slots > 0 {
			return ErrNotKept // they may be behind the range
		}
	}
	return nil
}

// lookAhead has the run read on behind the range: a chunk is decoded as a whole, so the steps
// behind are read for the next range as far as the chunk goes, and points on time do not
// change them any more.
func (x *executor) lookAhead() {
	k, end := x.known, x.plan.End
	if x.plan.Slotwise || len(k.columns) > 0 || (end-x.plan.Start)%k.step != 0 || slices.ContainsFunc(x.leaves, func(l *leaf) bool { return l.From < 0 }) {
		return
	}
	if slices.ContainsFunc(x.nodes, func(n node) bool { _, ok := n.(*across); return ok }) {
		return // it knows how many values there are
	}
	whole := chunk.Slots * x.plan.Finest
	until := min(x.env.KeepUntil, (end+whole-1)/whole*whole)
	if until -= (until - x.plan.Start) % k.step; until <= end {
		return
	}
	x.end = until
	for _, l := range x.leaves {
		l.Past += (until - end) / l.Resolution // of a copy of the plan's read
		l.countPast = l.From + (end-x.plan.Start)/l.Resolution
	}
}

// takeOver has a leaf that is read by spans stand behind the steps that are taken over, of
// which it has read those before. It reports false where the steps hold values that come from
// behind the range.
func (l *leaf) takeOver(x *executor, of *found, step int64, p overlap) bool {
	counts := l.counts()
	per := step / (counts.Size * l.Resolution) // spans in a step
	slot, first := l.From, int64(unknown)
	skip, read, take := int64(p.begin)*per, int64(p.from-p.begin)*per, int64(p.to-p.begin)*per
	for _, r := range of.runs {
		if skip >= int64(r.N) {
			skip -= int64(r.N)
			continue
		}
		r.N = int32(min(int64(r.N)-skip, take))
		if skip = 0; r.N == 0 {
			break
		}
		take -= int64(r.N)
		if l.notePast > 0 {
			l.notes = append(l.notes, r)
		}
		if first == unknown && r.Count > 0 {
			first = slot + int64(r.First)
		}
		done := min(read, int64(r.N))
		read -= done
		slot += done * counts.Size
		r.N -= int32(done)
		l.set += int64(r.N) * int64(r.Count)
		l.spacing.Runs(r, slot, counts.Size)
		slot += int64(r.N) * counts.Size
	}
	l.lastWord = of.last
	for _, s := range l.spans {
		s.given = int64(p.to-p.begin) * (step / (s.Size * l.Resolution))
		switch {
		case of.last == point.Unset:
		case first == unknown:
			return false
		case !s.begun:
			s.begun = true
			s.beginAt(x, first)
			fallthrough
		default:
			s.carry = of.last
		}
	}
	return true
}

// foundNothing ends the search for a first point where no steps are read.
func (l *leaf) foundNothing() {
	if !l.Pushed() && l.first == unknown {
		l.first = l.Past
	}
	for _, s := range l.spans {
		if !s.begun {
			s.begun, s.first = true, l.Past
		}
	}
}

// counts returns the spans that count the set slots of a leaf.
func (l *leaf) counts() *spans {
	for _, s := range l.spans {
		if s.Counts {
			return s
		}
	}
	panic("query: a read without spans")
}

// note notes what spans found, of which the first has a number among all of its read, for
// those who take the steps over.
func (s *spans) note(list []chunk.Header, number int64) {
	l := s.of
	if number < l.noteFrom {
		skip := min(l.noteFrom-number, int64(len(list)))
		list, number = list[skip:], number+skip
	}
	list = list[:min(int64(len(list)), max(l.notePast-number, 0))]
	for i := range list {
		h := &list[i]
		r := spacing.Run{N: 1, Count: int32(h.Count), First: int32(h.FirstOff), Last: int32(h.LastOff)}
		if h.Count > 0 {
			l.lastWord = h.Last
		} else {
			r.First, r.Last = 0, 0
		}
		l.notes = spacing.AppendRun(l.notes, r)
	}
}

// openNotes has the leaves note what they find in the steps that are to be kept.
func (x *executor) openNotes() {
	x.end = x.plan.End
	if x.env.KeepUntil <= x.plan.Start {
		return
	}
	known := int64(0)
	if k := x.known; k != nil {
		if k.End() >= x.plan.End {
			return // nothing is read
		}
		x.step, known = k.step, (k.End()-x.plan.Start)/k.step
		x.lookAhead()
	} else if x.step = x.plan.Step(); x.step == 0 {
		return
	}
	if x.keep = int((min(x.env.KeepUntil, x.end) - x.plan.Start) / x.step); x.keep <= x.lookBack() {
		x.keep = 0
		return
	}
	room := make([]spacing.Run, 2*len(x.leaves))
	for i, l := range x.leaves {
		if !l.Pushed() {
			l.noting = x.known == nil
			continue
		}
		per := x.step / (l.counts().Size * l.Resolution)
		l.noteFrom, l.notePast = known*per, int64(x.keep)*per
		l.notes = room[2*i : 2*i : 2*i+2]
	}
}

// lookBack returns how many steps of the begin of a range have values that no later range has.
func (x *executor) lookBack() int { return int((x.plan.Reach() + x.step - 1) / x.step) }

// roundsTo runs the rounds from a time to the end of the range. Where the last of the steps to
// be kept ends before it, what nodes hold there is noted.
func (x *executor) roundsTo(from int64) error {
	past := x.plan.Start + int64(x.keep)*x.step
	if x.keep > 0 && past < x.end && (x.plan.Slotwise || x.lookBack() > 0) {
		if from < past {
			if err := x.rounds(from, past, false); err != nil {
				return err
			}
			from = past
		}
		x.noteStates()
	}
	if err := x.rounds(from, x.end, true); err != nil {
		return err
	}
	if x.keep > 0 && x.states == nil {
		x.noteStates()
	}
	return nil
}

// steps returns the steps that are to be kept, nil where they cannot be.
func (x *executor) steps() *Steps {
	if x.keep == 0 {
		return nil
	}
	p, past := x.plan, x.plan.Start+int64(x.keep)*x.step
	if x.known != nil {
		p = x.known.plan
		if past < x.known.End() {
			return nil
		}
	}
	k := &Steps{plan: p, start: x.plan.Start, step: x.step, n: x.keep, earliest: make([]int32, x.keep),
		roots: make([]block, len(p.Roots)), leaves: make([]found, len(x.leaves)), states: x.states}
	for i := range k.earliest {
		k.earliest[i] = int32(i)
	}
	for i, l := range x.leaves {
		if l.holes.Slots > 0 || l.lastWord == point.Unset && l.set > 0 || l.gaps.Full() {
			return nil // what is unknown, or comes behind the steps, makes values of the steps
		}
		k.leaves[i] = found{l.notes, l.gaps, l.lastWord}
		if l.Pushed() {
			k.carried(l.notes, int(x.step/(l.counts().Size*l.Resolution)))
		} else {
			k.carriedSlots(l.gaps, x.step/l.Resolution)
		}
	}
	for i := range x.states {
		if x.states[i].odd {
			return nil
		}
	}
	k.later(x.lookBack())
	for i, r := range p.Roots {
		values := k.n * int(x.step/r.Of.Resolution)
		if r.Columns != nil {
			if k.columns == nil {
				k.columns = make([]keptColumns, len(p.Roots))
			}
			k.columns[i] = x.columns[i].first(values / int(r.Columns.Step))
			continue
		}
		k.roots[i].v = slices.Clone(x.out[i].v[:values])
		if p.Confidence {
			k.roots[i].c = slices.Clone(x.out[i].c[:values])
		}
	}
	return k
}

// later notes that functions look so many steps back: a step has its values in ranges that
// begin as long before it, and none at the begin of its own range has them in another one.
func (k *Steps) later(reach int) {
	if reach == 0 {
		return
	}
	copy(k.earliest[reach:], k.earliest)
	clear(k.earliest[:reach])
}

// carried notes for each step from where on a read has to begin that finds these runs, so
// many spans in a step.
func (k *Steps) carried(runs []spacing.Run, per int) {
	if len(runs) == 1 && runs[0].Count > 0 && runs[0].First == 0 {
		return // nothing is carried
	}
	span, last := 0, -1 // the last step with a set slot
	for _, r := range runs {
		for range r.N {
			if i := span / per; span%per == 0 && last >= 0 && (r.Count == 0 || r.First > 0) {
				k.earliest[i] = min(k.earliest[i], int32(last))
			}
			if r.Count > 0 {
				last = span / per
			}
			span++
		}
	}
}
