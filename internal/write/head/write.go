package head

import (
	"slices"

	"dalmatiner/internal/model/account"
)

// Write is one run of points, along a row (consecutive columns, one slot) or down a column
// (consecutive slots, one column), or several runs along rows. A word of 0 is an unset point,
// which changes nothing. A stale marker changes no value.
type Write struct {
	Column int      // of the first point
	Slot   int64    // of the first point
	Words  []uint64 // normalised (package point)
	Down   bool     // the run goes down a column
	Pairs  bool     // a point has two words: for its column, and for the one behind it
	Epoch  uint32   // of the Columns in which the names of the series were found
	Runs   []Run    // if any, Words are theirs, one after the other, and Column and Slot mean nothing
}

// Slots returns the lowest and the highest slot of a write.
func (w *Write) Slots() (first, last int64) {
	if len(w.Runs) == 0 {
		return w.Slot, w.endSlot() - 1
	}
	first, last = w.Runs[0].Slot, w.Runs[0].Slot
	for i := range w.Runs {
		first, last = min(first, w.Runs[i].Slot), max(last, w.Runs[i].Slot)
	}
	return first, last
}

// endSlot returns the slot behind the last one of a write that is one run.
func (w *Write) endSlot() int64 {
	switch {
	case !w.Down:
		return w.Slot + 1
	case w.Pairs:
		return w.Slot + int64(len(w.Words)/2)
	}
	return w.Slot + int64(len(w.Words))
}

// Run is one of several runs along rows of a Write.
type Run struct {
	Column int   // of the first point
	Points int   // how many, in consecutive columns
	Slot   int64 // of all of them
}

// Log appends the record of a write to the write-ahead log and returns its LSN. It is called
// under the lock of the group, after the cells were written: so the log has the order of the
// cells. c says what became of the points, and is valid during the call.
type Log func(c *account.Counts) (lsn uint64, err error)

// writeState is a write under way. Its points go to the cells of blocks or to the late
// points. It remembers which of both it reached, because their position in the log is
// known only after the record was appended. It lives under the group's lock and on the
// stack.
type writeState struct {
	blocks *blocks
	late   *lateRuns
	ahead  *prefetchHint
	counts *account.Counts

	reached     *block // the usual case without a slice
	more        []*block
	reachedLate bool
}

func (w *writeState) reach(b *block) {
	if w.reached == nil {
		w.reached = b
	} else if w.reached != b && !slices.Contains(w.more, b) {
		w.more = append(w.more, b)
	}
}

func (w *writeState) reachLate(slot int64) {
	w.reachedLate = true
	w.late.highest = max(w.late.highest, slot)
}

// noteLogged notes the position of the record, and closes the blocks that are over with it.
// bound is the number of columns that have a series.
func (w *writeState) noteLogged(lsn uint64, now int64, bound int) {
	for _, b := range w.more {
		b.timestamp(lsn, now)
	}
	if b := w.reached; b != nil {
		b.timestamp(lsn, now)
		w.blocks.closePast(b, bound)
	}
	for _, b := range w.more {
		w.blocks.closePast(b, bound)
	}
	if w.reachedLate {
		w.late.last = activity{lsn, now}
	}
}

// row stores a run along a row.
func (w *writeState) row(run Write) {
	b := w.blocks.blockAt(run.Slot)
	if b == nil {
		w.reachLate(run.Slot)
		for i, word := range run.Words {
			w.late.add(run.Column+i, run.Slot, word, w.counts)
		}
		return
	}
	w.reach(b)
	b.markWritten(run.Slot, run.Slot)
	row, before := int(run.Slot-b.start), w.counts.Accepted
	if w.blocks.inTable(b, len(run.Words)) {
		b.table.put(row*Width+run.Column, 1, run.Words, w.counts)
	} else {
		put(b.grow(row)[run.Column:run.Column+len(run.Words)], run.Words, w.counts)
		if _, ok := w.ahead.row(run.Slot, b.arena.rows); !ok {
			w.ahead.note(b, row)
		}
	}
	b.set += int(w.counts.Accepted - before)
}

// writeColumn stores a run down a column.
func (w *writeState) writeColumn(run Write) {
	words, slot := run.Words, run.Slot
	for len(words) > 0 {
		n := min(len(words), w.blocks.rowsFrom(slot))
		if b := w.blocks.blockAt(slot); b == nil {
			n = min(n, w.blocks.lateSlots(slot))
			w.reachLate(slot + int64(n) - 1)
			w.late.addRun(run.Column, slot, words[:n], w.counts)
		} else {
			w.reach(b)
			b.markWritten(slot, slot+int64(n)-1)
			row, before := int(slot-b.start), w.counts.Accepted
			if w.blocks.inTable(b, n) {
				b.table.put(row*Width+run.Column, Width, words[:n], w.counts)
			} else {
				b.putDown(row, run.Column, words[:n], w.counts)
			}
			b.set += int(w.counts.Accepted - before)
		}
		words, slot = words[n:], slot+int64(n)
	}
}
