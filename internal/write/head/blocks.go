package head

import (
	"slices"

	"dalmatiner/internal/codec/chunk"
)

// MaxOpen is how many blocks of a group take writes at a time, at most. Four cover senders
// that lag each other by three block heights. Each costs up to height × Width × 8 bytes.
const MaxOpen = 4

// blocks are the blocks of a group that hold cells: the open ones, and the closed ones
// until they are sealed. Its methods are called under the group's lock. Between two calls
//
//   - open is ascending, and its blocks do not overlap;
//   - a block takes no slot below what closedTo was when it opened: late points may have
//     it, and they are newer than any cell;
//   - nobody writes to a closed block, so that a sealer reads it without the lock.
type blocks struct {
	height int64
	arena  *Arena
	form   form // of the next block

	cur      *block   // the block written last, one of open, or nil
	open     []*block // at most MaxOpen
	closed   []*block // in the order in which they were closed
	closedTo int64    // the slot behind the last one written of any block that was closed
}

func newBlocks(height int, arena *Arena) blocks {
	return blocks{height: int64(height), arena: arena, form: form{sparse: sparseBlocks}}
}

// blockAt returns the open block of a slot, opening it where the rules allow, or
// nil where the point is late.
func (s *blocks) blockAt(slot int64) *block {
	if b := s.cur; b != nil && slot >= b.from && slot < b.start+s.height {
		return b
	}
	start := slot - slot%s.height
	i, found := slices.BinarySearchFunc(s.open, start, func(b *block, start int64) int {
		return int(b.start - start)
	})
	if found {
		if slot < s.open[i].from {
			return nil
		}
		s.cur = s.open[i]
		return s.cur
	}
	if slot < s.closedTo {
		return nil
	}
	if len(s.open) == MaxOpen {
		if i == 0 {
			return nil // older than every open block: a point never closes a newer one
		}
		s.close(0)
		i--
	}
	s.cur = s.newBlock(start, slot)
	s.open = slices.Insert(s.open, i, s.cur)
	return s.cur
}

// newBlock returns a block for the slots from start on, in which slot is written first.
func (s *blocks) newBlock(start, slot int64) *block {
	b := &block{
		start:  start,
		height: s.height,
		from:   max(start, s.closedTo),
		first:  slot,
		last:   slot,
		arena:  s.arena,
	}
	if s.form.table() {
		b.table = newCellTable(s.form.lastSet, s.arena)
	} else {
		b.parts = make([]Cells, int(s.height)/s.arena.rows)
	}
	return b
}

// rowsFrom returns how many slots of a block there are from one of them on.
func (s *blocks) rowsFrom(slot int64) int { return int(s.height - slot%s.height) }

// lateSlots returns how many slots of a block are late from a late one on: the
// rows behind those that were closed may still be taken.
func (s *blocks) lateSlots(slot int64) int {
	start := slot - slot%s.height
	past := start + s.height
	if slot < s.closedTo {
		past = min(past, s.closedTo)
	}
	for _, b := range s.open {
		if b.start == start {
			past = b.from
		}
	}
	return int(past - slot)
}

// inTable reports whether a block takes n more cells into a table: where they
// are many, it turns into rows.
func (s *blocks) inTable(b *block, n int) bool {
	if b.table == nil {
		return false
	}
	if b.staysTable(n) {
		return true
	}
	b.toRows()
	s.form.sparse = 0 // the blocks that open before this one is sealed are rows at once
	return false
}

// close takes an open block out of reach of writers.
func (s *blocks) close(i int) {
	b := s.open[i]
	s.open = slices.Delete(s.open, i, i+1)
	s.closedTo = max(s.closedTo, b.last+1)
	s.closed = append(s.closed, b)
	if s.cur == b {
		s.cur = nil
	}
}

// closeIf closes the open blocks that are due, oldest first, and returns how many.
func (s *blocks) closeIf(due func(b *block) bool) (closed int) {
	for i := 0; i < len(s.open); {
		if due(s.open[i]) {
			s.close(i)
			closed++
		} else {
			i++
		}
	}
	return closed
}

// pastPart of its rows is how far points reach into a block when complete ones
// before it close.
const pastPart = 5

// closePast closes the complete blocks before b each time that b has got a fifth
// further: nothing but points that are sent again would come for them. A sender that
// is faster than the clock of Group.CloseComplete would fill four blocks a group, in
// memory that the system first has to find. A group that is not full may get series
// whose sender begins in the past: it waits for the clock. bound is the number of its
// columns that have a series.
func (s *blocks) closePast(b *block, bound int) {
	if !b.deeper {
		return
	}
	b.deeper = false
	if bound < Width {
		return
	}
	for i := 0; i < len(s.open) && s.open[i].start < b.start; {
		if s.open[i].complete(bound) {
			s.close(i)
		} else {
			i++
		}
	}
}

// closeBehind closes all blocks but the newest, and the one before it while points for
// it may come, and returns how many.
func (s *blocks) closeBehind(bound int) (closed int) {
	for n := len(s.open); n > 2 || n == 2 && s.isOver(s.open[0], bound); n = len(s.open) {
		s.close(0)
		closed++
	}
	return closed
}

// isOver reports whether hardly anything will come for an open block: it is complete,
// or a newer one was.
func (s *blocks) isOver(b *block, bound int) bool {
	return b.complete(bound) || s.closedTo > b.start+s.height
}

// claim returns the first closed block that no sealer has, for one; nil if there is none.
func (s *blocks) claim() *block {
	for _, b := range s.closed {
		if !b.claimed {
			b.claimed = true
			return b
		}
	}
	return nil
}

// removeSealed takes a closed block out, gives its memory back, and learns from it.
func (s *blocks) removeSealed(b *block) {
	s.form.learn(b.set, int(s.height)*Width)
	i := slices.Index(s.closed, b)
	s.closed = slices.Delete(s.closed, i, i+1)
	b.free()
}

// replayPosition returns the position in the log of the first record of an open block, 0
// without one.
func (s *blocks) replayPosition() (first uint64) {
	for _, b := range s.open {
		if first == 0 || b.firstLSN < first {
			first = b.firstLSN
		}
	}
	return first
}

// addHeld adds the columns that have a set cell.
func (s *blocks) addHeld(held *Mask) {
	for _, list := range [2][]*block{s.closed, s.open} {
		for _, b := range list {
			b.addHeld(held)
		}
	}
}

// chunks returns about how many chunks of so many columns the blocks add to a batch when they are
// sealed, and how many bytes a flush copies of the blocks that share their chunks.
func (s *blocks) chunks(columns int, waiting *batch) (n, copied int64) {
	// of the last chunk: its columns, and what is copied once it is shared
	number, counted, before := int64(-1), 0, int64(0)
	if i := len(waiting.sealedBlocks) - 1; i >= 0 {
		t := waiting.sealedBlocks[i]
		number, counted, before = t.start/chunk.Slots, t.full, t.bytes()
	}
	for _, list := range [2][]*block{s.closed, s.open} {
		for _, b := range list {
			if b.set == 0 { // its series were deleted
				continue
			}
			if at := b.start / chunk.Slots; at != number {
				number, counted, before = at, 0, b.bytes()
			} else {
				copied, before = copied+before+b.bytes(), 0
			}
			more := max(0, min(b.set, columns-counted))
			n, counted = n+int64(more), counted+more
		}
	}
	return n, copied
}

// appendChunks appends the numbers of the chunks in which blocks have slots of
// [from, past).
func (s *blocks) appendChunks(dst []int64, from, past int64) []int64 {
	for _, list := range [2][]*block{s.closed, s.open} {
		for _, b := range list {
			dst = appendChunks(dst, b.start, b.start+s.height, from, past)
		}
	}
	return dst
}

// drop unsets the cells of columns and returns how many were set. No block is closed: a
// sealer would read it.
func (s *blocks) drop(m *Mask) (words int64) {
	for col := range Width {
		if !m.Has(col) {
			continue
		}
		for _, b := range s.open {
			words += b.drop(col)
		}
	}
	return words
}

// freeOpen drops the open blocks.
func (s *blocks) freeOpen() {
	for _, b := range s.open {
		b.free()
	}
	s.open, s.cur = nil, nil
}
