package intake

import (
	"dalmatiner/internal/model/account"
	"dalmatiner/internal/write/head"
)

// buffer holds points of a session on their way into the predicted group: runs of
// consecutive columns in one slot each, which one write stores. Where a sender
// leaves a metric out, or a group has few series, a write for each run would cost a
// lock and a log record each time.
type buffer struct {
	words [2 * head.Width]uint64 // of the runs, one after the other

	runs   []head.Run // that have ended
	before int        // their words
	lo, hi uint64     // their slots

	// The run that goes on. It has room for all columns of the group.
	runCol, runLen int
	runSlot        uint64
}

// goesOn reports whether a point of a column in the slot belongs to the
// run that was buffered last.
func (b *buffer) goesOn(slot uint64, col int) bool {
	return slot == b.runSlot && col == b.runCol+b.runLen && b.runLen > 0
}

// begin begins a run, behind endRun.
func (b *buffer) begin(slot uint64, col int) { b.runSlot, b.runCol = slot, col }

// add adds a word to the run that goes on.
func (b *buffer) add(word uint64) {
	b.words[b.before+b.runLen] = word
	b.runLen++
}

// room is where the next words of the run come.
func (b *buffer) room() []uint64 { return b.words[b.before+b.runLen:] }

// isFull reports whether another run has no room behind those that have ended.
func (b *buffer) isFull() bool { return b.before > head.Width }

// hasPoints reports whether there are points.
func (b *buffer) hasPoints() bool { return b.runLen > 0 || len(b.runs) > 0 }

// endRun ends the run that goes on.
func (b *buffer) endRun() {
	if b.runLen == 0 {
		return
	}
	if len(b.runs) == 0 {
		b.lo, b.hi = b.runSlot, b.runSlot
	}
	b.lo, b.hi = min(b.lo, b.runSlot), max(b.hi, b.runSlot)
	b.runs = append(b.runs, head.Run{Column: b.runCol, Points: b.runLen, Slot: int64(b.runSlot)})
	b.before += b.runLen
	b.runLen = 0
}

// clear drops the runs that have ended.
func (b *buffer) clear() { b.runs, b.before = b.runs[:0], 0 }

// take removes the ended runs from the buffer, refuses those of slots that the bucket
// does not take, and returns the others. These are valid until more is added.
func (b *buffer) take(k *storer) ([]head.Run, []uint64) {
	runs, words := b.runs, b.words[:b.before]
	b.clear()
	lo, hi := k.slots()
	if lo <= b.lo && b.hi < hi {
		return runs, words
	}
	admitted, kept := runs[:0], words[:0]
	for _, r := range runs {
		points := words[:r.Points]
		words = words[r.Points:]
		switch slot := uint64(r.Slot); {
		case slot < lo:
			k.refuse(account.Expired, k.points(points))
		case slot >= hi:
			k.refuse(account.Future, k.points(points))
		default:
			admitted, kept = append(admitted, r), append(kept, points...)
		}
	}
	return admitted, kept
}

// rows returns a write of runs, at least one.
func rows(runs []head.Run, words []uint64) head.Write {
	if len(runs) > 1 {
		return head.Write{Words: words, Runs: runs}
	}
	return head.Write{Column: runs[0].Column, Slot: runs[0].Slot, Words: words}
}
