package exec

import (
	"context"
	"errors"
	"slices"

	"dalmatiner/internal/codec/chunk"
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

	roots   []block       // of each root of the plan, without columns
	columns []keptColumns // of each root with them
	leaves  []found       // of each read of the plan
}

// found is what was found in the series of a read, from the first step kept to the end of
// the last.
type found struct {
	runs  []spacing.Run // of a read by spans
	slots spacing.Slots // of one slot by slot
}

// ErrNotKept is the error of Resume where what is kept is of no use.
var ErrNotKept = errors.New("the steps that are kept are of no use")

// Bytes returns the memory that steps take, their plan included.
func (k *Steps) Bytes() int64 {
	n := k.plan.Planned
	for _, b := range k.roots {
		n += 48 + 8*int64(cap(b.v)+cap(b.c))
	}
	for i := range k.columns {
		n += k.columns[i].bytes()
	}
	for i := range k.leaves {
		n += 48 + 16*int64(cap(k.leaves[i].runs)) + k.leaves[i].slots.Bytes()
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
	from, to := k.overlap(times)
	return to - from
}

// overlap returns which steps a range begins with and has whole: [from, to). What a step has
// does not depend on the range.
func (k *Steps) overlap(times plan.Range) (from, to int) {
	by, length := times.Start-k.start, times.End-times.Start
	if by < 0 || by%k.step != 0 || by/k.step >= int64(k.n) || length != k.plan.End-k.plan.Start {
		return 0, 0
	}
	return int(by / k.step), int(min(int64(k.n), (by+length)/k.step))
}

// Resume runs the plan of steps over another range, with the steps that can be taken over. The
// result is what Run has, or ErrNotKept.
func Resume(ctx context.Context, k *Steps, times plan.Range, env Env) (*Result, error) {
	p := *k.plan
	p.Range = times
	x := &executor{ctx: ctx, env: env, plan: &p, known: k, out: make([]block, len(p.Roots))}
	from, to := k.overlap(times)
	if from == to {
		return nil, ErrNotKept
	}
	x.from = k.start + int64(to)*k.step
	return x.answer()
}

// moved returns by how many ms the range of the run is behind that of its plan.
func (x *executor) moved() int64 {
	if x.known == nil {
		return 0
	}
	return x.plan.Start - x.known.plan.Start
}

// lookAhead has the run read on behind the range: a chunk is decoded as a whole, so the steps
// behind are read for the next range as far as the chunk goes, and points on time do not
// change them any more.
func (x *executor) lookAhead() {
	k, end := x.known, x.plan.End
	if x.plan.Slotwise || len(k.columns) > 0 || (end-x.plan.Start)%k.step != 0 || x.from >= end {
		return
	}
	whole := chunk.Slots * x.plan.Finest
	until := min(x.env.KeepUntil, (end+whole-1)/whole*whole)
	if until -= (until - x.plan.Start) % k.step; until > end {
		x.end = until
	}
}

// takeOver takes the steps over that are known.
func (x *executor) takeOver() {
	k := x.known
	from, to := k.overlap(x.plan.Range)
	for i, r := range x.plan.Roots {
		per := int(k.step / r.Of.Resolution)
		if r.Columns != nil {
			per /= int(r.Columns.Step)
			x.columns[i].takeOver(&k.columns[i], from*per, to*per)
			continue
		}
		b := &k.roots[i]
		x.out[i].v = append(x.out[i].v, b.v[from*per:to*per]...)
		if x.plan.Confidence {
			x.out[i].c = append(x.out[i].c, b.c[from*per:to*per]...)
		}
	}
	for i, l := range x.leaves {
		if l.Pushed() {
			l.takeRuns(k.leaves[i].runs, k.step, int64(from), int64(to))
		} else {
			l.takeSlots(k.leaves[i].slots, k.step, int64(from), int64(to))
		}
	}
}

// takeRuns takes what is known of a read by spans in the steps [from, to).
func (l *leaf) takeRuns(runs []spacing.Run, step, from, to int64) {
	size := l.counts().Size
	per := step / (size * l.Resolution) // spans in a step
	skip, take, slot := from*per, (to-from)*per, l.of.from
	for _, r := range runs {
		if skip >= int64(r.N) {
			skip -= int64(r.N)
			continue
		}
		n := min(int64(r.N)-skip, take)
		if skip = 0; n == 0 {
			break
		}
		take -= n
		if r.N = int32(n); l.notePast > 0 {
			l.runs = append(l.runs, r)
		}
		if r.Count > 0 {
			l.of.add(n*int64(r.Count), slot+int64(r.First), slot+(n-1)*size+int64(r.Last))
		}
		slot += n * size
	}
}

// takeSlots takes what is known of a read slot by slot in the steps [from, to).
func (l *leaf) takeSlots(slots spacing.Slots, step, from, to int64) {
	per := step / l.Resolution
	slots.Each(from*per, to*per, func(set bool, a, b int64) {
		if !set {
			if l.notePast > 0 {
				l.slots.Gap(b - a)
			}
			return
		}
		l.of.take(l.of.from+a-from*per, b-a)
		if l.notePast > 0 {
			l.slots.Set(b - a)
		}
	})
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

// openNotes has the leaves note what they find in the steps that are to be kept.
func (x *executor) openNotes() {
	if x.env.KeepUntil <= x.plan.Start {
		return
	}
	if x.known != nil {
		if x.from >= x.plan.End {
			return // nothing is read
		}
		x.step = x.known.step
	} else if x.step = x.plan.Step(); x.step == 0 {
		return
	}
	if x.keep = int((min(x.env.KeepUntil, x.end) - x.plan.Start) / x.step); x.keep <= 0 {
		x.keep = 0
		return
	}
	for _, l := range x.leaves {
		l.notePast = l.of.from + int64(x.keep)*x.step/l.Resolution
	}
}

// steps returns the steps that are to be kept, nil where they cannot be.
func (x *executor) steps() *Steps {
	if x.keep == 0 {
		return nil
	}
	p := x.plan
	if x.known != nil {
		p = x.known.plan
		if x.plan.Start+int64(x.keep)*x.step < x.known.End() {
			return nil
		}
	}
	k := &Steps{plan: p, start: x.plan.Start, step: x.step, n: x.keep,
		roots: make([]block, len(p.Roots)), leaves: make([]found, len(x.leaves))}
	for i, l := range x.leaves {
		if l.holes.Slots > 0 || l.slots.Full() || len(l.exact) > 0 {
			return nil // what is unknown makes values of the steps; what is exact is not kept
		}
		k.leaves[i] = found{l.runs, l.slots}
	}
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
