package head

import (
	"slices"

	"dalmatiner/internal/codec/chunk"
)

// batch is what one flush takes of a group: sealed blocks, and late points that lie over
// them.
type batch struct {
	sealedBlocks []*sealedBlock
	late         lateRuns
}

func (b *batch) empty() bool { return len(b.sealedBlocks) == 0 && b.late.empty() }

// bytes returns the memory of the sealed blocks and of the late points.
func (b *batch) bytes() (sealedBlocks, late int64) {
	for _, t := range b.sealedBlocks {
		sealedBlocks += t.bytes()
	}
	return sealedBlocks, b.late.bytes()
}

// highest returns the highest slot that holds a point, or one above it; -1 for none.
func (b *batch) highest() int64 {
	highest := int64(-1)
	for _, t := range b.sealedBlocks {
		highest = max(highest, t.last)
	}
	if !b.late.empty() {
		highest = max(highest, b.late.highest)
	}
	return highest
}

// chunks returns about how many chunks a flush makes of the batch.
func (b *batch) chunks() (n int64) {
	number, most := int64(-1), 0
	for _, t := range b.sealedBlocks {
		if at := t.start / chunk.Slots; at != number {
			n += int64(most)
			number, most = at, 0
		}
		most = max(most, t.full)
	}
	return n + int64(most) + b.late.chunks()
}

// copiedBytes returns about how many bytes of the batch a flush copies: the late points, and
// the sealed blocks that share their chunks with others.
func (b *batch) copiedBytes() (n int64) {
	for i, t := range b.sealedBlocks {
		same := func(o int) bool {
			return o >= 0 && o < len(b.sealedBlocks) &&
				b.sealedBlocks[o].start/chunk.Slots == t.start/chunk.Slots
		}
		if same(i-1) || same(i+1) {
			n += t.bytes()
		}
	}
	return n + b.late.bytes()
}

// addHeld adds the columns of which the batch has points.
func (b *batch) addHeld(held *Mask) {
	for _, t := range b.sealedBlocks {
		t.addHeld(held)
	}
	b.late.addHeld(held)
}

// appendChunks appends the numbers of the chunks in which the batch may have slots of
// [from, past) of a column. height is that of the blocks.
func (b *batch) appendChunks(dst []int64, col int, height, from, past int64) []int64 {
	for _, t := range b.sealedBlocks {
		if len(t.piece(col)) > 0 {
			dst = appendChunks(dst, t.start, t.start+height, from, past)
		}
	}
	if c := b.late.column(col); c != nil {
		for _, r := range c.runs {
			dst = appendChunks(dst, r.slot, r.slot+int64(r.n), from, past)
		}
	}
	return dst
}

// drop takes the points of columns out and returns how many that were.
func (b *batch) drop(m *Mask) (words int64) {
	for _, t := range b.sealedBlocks {
		words += t.drop(m)
	}
	return words + b.late.drop(m)
}

// flushState is what a group holds besides its blocks until a committed segment has it,
// and what the group knows of its flushes. Its methods are called under the group's lock.
// Between two calls
//
//   - everything that waits is newer than what is being flushed;
//   - the memory of sealed blocks belongs to waiting or to captured, never to both.
type flushState struct {
	memory *sealedMemory

	waiting  batch          // for the next flush
	flushing batch          // readable until the flush has ended, or the group is dead
	captured []*sealedBlock // of the flush under way, until it has ended, even if the group is dead

	settled, settling int64 // the highest slot flushed, and with the flush under way; -1 = none
	unsettled         bool  // the group has columns whose older points it may not have flushed itself
}

func newUnflushed(arena *Arena) flushState {
	return flushState{memory: &arena.sealedBlocks, settled: -1, settling: -1, unsettled: true}
}

// begin gives what waits to a flush and returns it.
func (u *flushState) begin() Capture {
	u.flushing, u.waiting = u.waiting, batch{}
	u.captured = u.flushing.sealedBlocks
	took := batch{sealedBlocks: slices.Clone(u.captured), late: u.flushing.late}
	c := Capture{batch: took, Settled: u.settled, Highest: took.highest()}
	if !c.Empty() {
		c.Unsettled, u.unsettled = u.unsettled, false
	}
	u.settling = c.Highest
	return c
}

// end drops what the flush took and returns its bytes.
func (u *flushState) end() (sealedBlocks, late int64) {
	sealedBlocks, late = u.flushing.bytes()
	u.memory.freeAll(u.captured)
	u.flushing, u.captured = batch{}, nil
	u.settled, u.settling = max(u.settled, u.settling), -1
	return sealedBlocks, late
}

// abort puts back what the flush took. That of a dead group is dropped.
func (u *flushState) abort(dead bool) {
	if dead {
		u.memory.freeAll(u.captured)
	}
	back := u.flushing
	back.sealedBlocks = append(back.sealedBlocks, u.waiting.sealedBlocks...)
	back.late.addAll(&u.waiting.late)
	u.waiting, u.flushing, u.captured = back, batch{}, nil
	u.settling, u.unsettled = -1, true
}

// clear drops everything and returns the bytes of that. A flush under way goes on reading
// what it captured.
func (u *flushState) clear() (sealedBlocks, late int64) {
	sealedBlocks, late = u.bytes()
	u.memory.freeAll(u.waiting.sealedBlocks)
	u.waiting, u.flushing = batch{}, batch{}
	return sealedBlocks, late
}

// bytes returns the memory of all sealed blocks and of all late points.
func (u *flushState) bytes() (sealedBlocks, late int64) {
	for _, b := range u.batches() {
		s, l := b.bytes()
		sealedBlocks, late = sealedBlocks+s, late+l
	}
	return sealedBlocks, late
}

// batches returns what is being flushed and what waits: the order of the writes.
func (u *flushState) batches() [2]*batch { return [2]*batch{&u.flushing, &u.waiting} }
