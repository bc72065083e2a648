package replay

import (
	"fmt"

	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/disk/damage"
	"dalmatiner/internal/host/clock"
	"dalmatiner/internal/model/account"
	"dalmatiner/internal/store/flush"
	"dalmatiner/internal/write/backpressure"
	"dalmatiner/internal/write/columns"
	"dalmatiner/internal/write/head"
	"dalmatiner/internal/write/logrecord"
	"dalmatiner/internal/write/series"
)

// target is the head, and what is known of its columns. Appliers share it.
type target struct {
	groups    *series.Groups
	owners    *columns.Ownership
	sealers   *backpressure.Sealers
	clock     *clock.Clock
	damage    *damage.Notes
	ownerless *flush.Losses // points of no series

	lost logrecord.LostByGroup // as the start before this one found it, see Again

	// deletedAt has the columns of series that were deleted behind where the replay begins,
	// and when, by tombstones that are committed. Beside whole replay positions the catalogue has
	// them; where replay positions are lost, it may not any more.
	deletedAt map[series.Ref]uint64
}

// applier applies the runs of records, group by group.
type applier struct {
	t     *target
	words []uint64
	runs  []head.Run
	lsn   uint64 // of the record under way
	log   head.Log
	// not nil: only what a lost record may have written over is applied, and noted here
	older *olderSlots
}

func newApplier(t *target) *applier {
	a := &applier{t: t}
	a.log = func(*account.Counts) (uint64, error) { return a.lsn, nil }
	return a
}

// closeBehind closes the blocks that no later record fills.
func (a *applier) closeBehind(g *head.Group) {
	if g != nil {
		a.t.sealers.HandleWrite(g, head.WriteResult{Closed: g.CloseBehind()})
	}
}

// record applies the points of one record. Everything from the group's replay position on is
// applied in the order of the first time, so the last write wins again.
func (a *applier) record(g *head.Group, n *run, runs, cells []byte) {
	a.words = logrecord.ParseCells(a.words[:0], cells)
	a.lsn = n.lsn
	w := head.Write{
		Column: int(n.column),
		Slot:   n.slot,
		Words:  a.words,
		Down:   n.kind == logrecord.Column,
		Pairs:  n.b.HPTS,
	}
	over := a.t.lost.After(n.group, n.lsn)
	points := uint64(0) // of no series
	if n.kind != logrecord.Runs {
		a.parts(g, n, w, over, &points)
	} else {
		a.runs = logrecord.ParseRuns(a.runs[:0], runs)
		words := a.words
		for _, r := range a.runs {
			w.Column, w.Slot, w.Words = r.Column, r.Slot, words[:r.Points]
			words = words[r.Points:]
			a.parts(g, n, w, over, &points)
		}
	}
	if points > 0 && a.older == nil {
		// duplicates are stored elsewhere
		a.t.ownerless.Count(n.group, n.copies, n.lsn, min(points, n.stored))
		a.t.damage.Report(fmt.Sprintf("log record at %d", n.lsn),
			fmt.Errorf("%d points of group %d are of no series", points, n.group))
	}
}

// parts applies a run of a record, but for what one of the records that were lost behind
// it may have written over. That has been set aside.
func (a *applier) parts(g *head.Group, n *run, w head.Write,
	over []logrecord.LostRecord, lost *uint64) {
	if len(over) == 0 && a.older == nil { // as nearly always
		a.run(g, n, w, true, lost)
		return
	}
	width := n.b.Width()
	if !w.Down || len(w.Words)%width != 0 {
		a.part(g, n, w, logrecord.AnyNames(over, w.Slot), lost)
		return
	}
	for len(w.Words) > 0 {
		part, hidden, slots := w, logrecord.AnyNames(over, w.Slot), int64(1)
		for int(slots)*width < len(w.Words) && logrecord.AnyNames(over, w.Slot+slots) == hidden {
			slots++
		}
		part.Words = w.Words[:int(slots)*width]
		w.Words = w.Words[int(slots)*width:]
		w.Slot += slots
		a.part(g, n, part, hidden, lost)
	}
}

// part applies a part of a run of which all is hidden, or nothing.
func (a *applier) part(g *head.Group, n *run, w head.Write, hidden bool, lost *uint64) {
	if a.older == nil {
		a.run(g, n, w, !hidden, lost)
		return
	}
	if !hidden {
		return
	}
	a.run(g, n, w, true, lost)
	last := w.Slot
	if w.Down {
		last += int64(len(w.Words)/n.b.Width()) - 1
	}
	for slot := w.Slot; slot <= last; slot++ {
		a.older.add(n.group, slot)
	}
}

// run applies a run of a record, where that is asked for, and counts those of its points
// of which the series is not known.
func (a *applier) run(g *head.Group, n *run, w head.Write, apply bool, lost *uint64) {
	if odd := w.Pairs && (w.Column|len(w.Words))%2 != 0; g != nil && (g.Bucket != n.b.ID || odd) {
		g = nil
	}
	for len(w.Words) > 0 {
		known := a.t.known(n.lsn, g, &w)
		if part := w; known > 0 {
			part.Words = w.Words[:known]
			if apply {
				a.apply(g, part)
			}
		} else {
			known = a.t.pass(n, &w, lost)
		}
		w.Words = w.Words[known:]
		w.Column += known // not needed when there are none left, as for a column
	}
}

func (a *applier) apply(g *head.Group, w head.Write) {
	w.Epoch = g.Columns().Epoch()
	applied, err := g.Apply(w, a.t.clock.Monotonic(), a.log)
	if err == nil {
		a.t.sealers.HandleWrite(g, applied)
	}
}

// known returns how many of the first words are of columns that had at lsn the
// series that they have now.
func (t *target) known(lsn uint64, g *head.Group, w *head.Write) (n int) {
	if g == nil {
		return 0
	}
	cols, s := g.Columns(), t.owners.SinceLSNs(g.ID)
	if last := w.Column + len(w.Words); s.Last <= lsn && !w.Down && last <= cols.Len() &&
		cols.Bound() == cols.Len() {
		return len(w.Words) // nearly always: no column of the group is free, or was given away since
	}
	is := func(col int) bool { return cols.Has(col) && s.Column[col] <= lsn }
	if w.Down {
		if is(w.Column) {
			n = len(w.Words)
		}
		return n
	}
	for n < len(w.Words) && is(w.Column+n) {
		n++
	}
	return n
}

// pass passes over words of the first column, returns how many, and counts those
// whose series is not known. Those of a column that another series has since then
// are in a segment, or their series was deleted.
func (t *target) pass(run *run, w *head.Write, lost *uint64) (n int) {
	n = 1
	if w.Down {
		n = len(w.Words)
	} else if w.Pairs {
		n = min(2, len(w.Words))
	}
	if ref := series.RefAt(run.group,
		w.Column); t.owners.SinceLSNs(run.group).Column[w.Column] > run.lsn ||
		t.deletedAt[ref] > run.lsn {
		return n
	}
	for _, word := range w.Words[:n] {
		if word != point.Unset {
			*lost++
		}
	}
	return n
}
