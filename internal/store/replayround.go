package store

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"dalmatiner/internal/account"
	"dalmatiner/internal/columns"
	"dalmatiner/internal/head"
	"dalmatiner/internal/logrecord"
	"dalmatiner/internal/point"
	"dalmatiner/internal/series"
)

const (
	// roundBytes is how much of the log is read before it is applied: some rows
	// of every group of a large node, so that a group is in the cache for all of
	// them, and little beside the blocks that they fill.
	roundBytes = 16 << 20

	// roundPart of what makes a flush is a round, at most: some of them fill the
	// blocks that a flush takes, and it can put up with less memory.
	roundPart = 4

	// fewRecords are applied by the reader itself: to wake somebody takes longer.
	fewRecords = 16
)

// round is a part of the log on its way into the head. Records of one group
// stay in their order, groups are applied side by side.
type round struct {
	runs   []run
	cells  []byte // of all runs
	chains []chain
	of     map[uint32]int // chain of a group
	end    uint64         // all records below are in this round or were before it

	taken   atomic.Int64 // chains
	applied sync.WaitGroup
	failure atomic.Pointer[error] // why some of it was not applied
}

// chain is what a round has of one group.
type chain struct {
	l           *pendingRecords
	first, last uint32 // of runs
}

// run is a record with points.
type run struct {
	lsn        uint64
	b          *columns.Bucket
	slot       int64
	stored     uint64 // points, as the record counts them
	from, past uint32 // of cells, behind the runs of those with several
	runs       uint32 // their bytes
	next       uint32 // of the chain, but for its last
	group      uint32
	column     uint8
	kind       logrecord.Kind
}

const runSize = 56 // bytes

func newRound() *round { return &round{of: make(map[uint32]int)} }

// newRun returns the run of a record with points, without its place in a round.
func newRun(lsn uint64, b *columns.Bucket, p *logrecord.Record) run {
	return run{lsn: lsn, b: b, group: p.Group, slot: p.Slot, stored: p.Counts.Stored(), column: uint8(p.Column), kind: p.Kind}
}

// add takes a record with points in, which is pending, and returns by how
// much the memory of the round grew.
func (q *round) add(lsn uint64, b *columns.Bucket, l *pendingRecords, p *logrecord.Record) (grown int64) {
	was := q.memory()
	at := uint32(len(q.runs))
	n := newRun(lsn, b, p)
	n.runs, n.from = uint32(len(p.Runs)), uint32(len(q.cells))
	n.past = n.from + n.runs + uint32(len(p.Cells))
	q.runs = append(q.runs, n)
	q.cells = append(append(q.cells, p.Runs...), p.Cells...)
	if i, ok := q.of[p.Group]; ok {
		c := &q.chains[i]
		q.runs[c.last].next = at
		c.last = at
	} else {
		q.of[p.Group] = len(q.chains)
		q.chains = append(q.chains, chain{l: l, first: at, last: at})
	}
	return q.memory() - was
}

// size is the memory that is used of a round, memory what it holds.
func (q *round) size() int     { return len(q.cells) + len(q.runs)*runSize }
func (q *round) memory() int64 { return int64(cap(q.cells) + cap(q.runs)*runSize) }

// reset empties a round and keeps its memory.
func (q *round) reset() {
	clear(q.of)
	clear(q.chains)
	clear(q.runs)
	q.runs, q.cells, q.chains = q.runs[:0], q.cells[:0], q.chains[:0]
	q.taken.Store(0)
}

// turn hands the round that was read to the appliers and begins the next one.
func (r *replayer) turn() error {
	if err := r.finishRound(); err != nil {
		return err
	}
	r.reading, r.applying = r.applying, r.reading
	q := r.applying
	r.reading.end = q.end
	if len(q.runs) < fewRecords {
		r.appliers[0].work(q)
		return nil
	}
	for _, a := range r.appliers {
		q.applied.Go(func() { a.work(q) })
	}
	return nil
}

// finishRound waits until the round under way is in the head. A flush in the middle of
// a replay takes for its replay position what was in the head when it began. After an error, that
// of what was not applied, no further round may follow.
func (r *replayer) finishRound() error {
	q, s := r.applying, r.s
	q.applied.Wait()
	if err := q.failure.Load(); err != nil {
		return *err
	}
	if err := r.hideGoneBelow(q.end); err != nil { // no flush may take its replay position behind them
		return err
	}
	s.replayed.Store(max(s.replayed.Load(), q.end))
	q.reset()
	return nil
}

// applier applies the runs of a round, group by group.
type applier struct {
	r     *replayer
	words []uint64
	runs  []head.Run
	lsn   uint64 // of the record under way
	log   head.Log
	older *olderSlots // not nil: only what a lost record may have written over is applied, and noted here
}

func newApplier(r *replayer) *applier {
	a := &applier{r: r}
	a.log = func(*account.Counts) (uint64, error) { return a.lsn, nil }
	return a
}

// work applies chains until all are taken.
func (a *applier) work(q *round) {
	for q.failure.Load() == nil {
		i := int(q.taken.Add(1)) - 1
		if i >= len(q.chains) {
			return
		}
		if err := a.chain(q, q.chains[i]); err != nil {
			q.failure.Store(&err)
		}
	}
}

// chain applies what a round has of a group, but for what somebody who could not
// wait has replayed already.
func (a *applier) chain(q *round, c chain) error {
	for done := false; !done; {
		if err := a.r.awaitRoom(context.Background()); err != nil {
			return err
		}
		var gone uint64
		if done, gone = a.links(q, &c); gone != 0 {
			if err := a.r.hideGone(c.l, gone); err != nil {
				return err
			}
		}
	}
	return nil
}

// links applies the next records of a chain, up to one that is gone, whose position it
// returns, and reports whether they were its last.
func (a *applier) links(q *round, c *chain) (done bool, gone uint64) {
	l := c.l
	l.mu.Lock()
	defer l.mu.Unlock()
	g, applied := a.r.s.columns.Groups.Get(l.group), 0
	for !done && applied < closeEvery {
		n := &q.runs[c.first]
		if l.next != 0 && l.next < n.lsn {
			gone = l.next
			break
		}
		if l.next == n.lsn {
			cells := n.from + n.runs
			a.record(g, n, q.cells[n.from:cells], q.cells[cells:n.past])
			l.done(n.stored)
			applied++
		}
		done, c.first = c.first == c.last, n.next
	}
	if applied > 0 {
		a.closeBehind(g)
	}
	a.r.finishGroup(l)
	return done, gone
}

// record applies the points of one record. Everything from the group's replay position on is
// applied in the order of the first time, so the last write wins again.
func (a *applier) record(g *head.Group, n *run, runs, cells []byte) {
	a.words = logrecord.ParseCells(a.words[:0], cells)
	a.lsn = n.lsn
	w := head.Write{Column: int(n.column), Slot: n.slot, Words: a.words, Down: n.kind == logrecord.Column, Pairs: n.b.HPTS}
	over := a.r.lost.Behind(n.group, n.lsn)
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
		a.r.s.ownerless.Count(n.group, n.lsn, min(points, n.stored)) // duplicates are stored elsewhere
		a.r.s.damage.Report(fmt.Sprintf("log record at %d", n.lsn), fmt.Errorf("%d points of group %d are of no series", points, n.group))
	}
}

// parts applies a run of a record, but for what one of the records that were lost behind
// it may have written over. That has been set aside.
func (a *applier) parts(g *head.Group, n *run, w head.Write, over []logrecord.Lost, lost *uint64) {
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
		known := a.r.known(n.lsn, g, &w)
		if part := w; known > 0 {
			part.Words = w.Words[:known]
			if apply {
				a.apply(g, part)
			}
		} else {
			known = a.r.pass(n, &w, lost)
		}
		w.Words = w.Words[known:]
		w.Column += known // not needed when there are none left, as for a column
	}
}

func (a *applier) apply(g *head.Group, w head.Write) {
	s := a.r.s
	w.Epoch = g.Columns().Epoch()
	applied, err := g.Apply(w, s.clock.Steady(), a.log)
	if err == nil {
		s.sealers.Applied(g, applied)
	}
}

// known returns how many of the first words are of columns that had at lsn the
// series that they have now.
func (r *replayer) known(lsn uint64, g *head.Group, w *head.Write) (n int) {
	if g == nil {
		return 0
	}
	cols, t := g.Columns(), r.owners.Since(g.ID)
	if last := w.Column + len(w.Words); t.Last <= lsn && !w.Down && last <= cols.Len() && cols.Bound() == cols.Len() {
		return len(w.Words) // nearly always: no column of the group is free, or was given away since
	}
	is := func(col int) bool { return cols.Has(col) && t.Column[col] <= lsn }
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
func (r *replayer) pass(run *run, w *head.Write, lost *uint64) (n int) {
	n = 1
	if w.Down {
		n = len(w.Words)
	} else if w.Pairs {
		n = min(2, len(w.Words))
	}
	if ref := series.At(run.group, w.Column); r.owners.Since(run.group).Column[w.Column] > run.lsn || r.deletedAt[ref] > run.lsn {
		return n
	}
	for _, word := range w.Words[:n] {
		if word != point.Unset {
			*lost++
		}
	}
	return n
}
