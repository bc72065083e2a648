package store

import (
	"dalmatiner/internal/account"
	"dalmatiner/internal/head"
)

// buffered are points of a session on their way into the predicted group: runs of
// consecutive columns in one slot each, which one write stores. Where a sender
// leaves a metric out, or a group has few series, a write for each run would cost a
// lock and a log record each time.
type buffered struct {
	words [2 * head.Width]uint64 // of the runs, one after the other

	runs   []head.Run // that have ended
	before int        // their words
	lo, hi uint64     // their slots

	// The run that goes on. It has room for all columns of the group.
	runCol, runLen int
	runSlot        uint64
}

// goesOn reports whether a point of the predicted column in the slot belongs to the
// run that was buffered last.
func (x *Session) goesOn(slot uint64) bool {
	return slot == x.runSlot && x.position.Column == x.runCol+x.runLen && x.runLen > 0
}

// endRun ends the run that goes on.
func (c *buffered) endRun() {
	if c.runLen == 0 {
		return
	}
	if len(c.runs) == 0 {
		c.lo, c.hi = c.runSlot, c.runSlot
	}
	c.lo, c.hi = min(c.lo, c.runSlot), max(c.hi, c.runSlot)
	c.runs = append(c.runs, head.Run{Column: c.runCol, Points: c.runLen, Slot: int64(c.runSlot)})
	c.before += c.runLen
	c.runLen = 0
}

// makeRoom ends the run that goes on, and stores what was buffered unless there is
// room for another one behind it.
func (x *Session) makeRoom() {
	x.endRun()
	if x.before > head.Width || x.width == 2 {
		x.flush()
	}
}

// flush stores all that was buffered, behind the unpredicted points of the same slots,
// which came before, and behind those that would come late if they waited any
// longer. What is predicted stays: the name of the next point was compared with it.
func (x *Session) flush() {
	x.endRun()
	if len(x.runs) == 0 || x.mingle() {
		return
	}
	if x.unpredicted != nil && x.hi >= x.unpredicted.due {
		x.settleAll()
	}
	x.settle(x.lo, x.hi-x.lo+1)
	runs, words := x.admit(x.runs, x.words[:x.before])
	x.runs, x.before = x.runs[:0], 0
	if len(runs) > 0 {
		x.storeRuns(x.position.Group, x.position.Columns, runs, words)
	}
}

// rows returns a write of runs, at least one.
func rows(runs []head.Run, words []uint64) head.Write {
	if len(runs) > 1 {
		return head.Write{Words: words, Runs: runs}
	}
	return head.Write{Column: runs[0].Column, Slot: runs[0].Slot, Words: words}
}

// admit refuses runs of slots that the bucket does not take, and returns the others.
func (x *Session) admit(runs []head.Run, words []uint64) ([]head.Run, []uint64) {
	lo, hi := x.s.admitted(x.b)
	if lo <= x.lo && x.hi < hi {
		return runs, words
	}
	admitted, kept := runs[:0], words[:0]
	for _, r := range runs {
		points := words[:r.Points]
		words = words[r.Points:]
		switch slot := uint64(r.Slot); {
		case slot < lo:
			x.refuse(account.Expired, x.points(points))
		case slot >= hi:
			x.refuse(account.Future, x.points(points))
		default:
			admitted, kept = append(admitted, r), append(kept, points...)
		}
	}
	return admitted, kept
}
