package head

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"dalmatiner/internal/account"
	"dalmatiner/internal/chunk"
)

// MaxOpen is how many blocks of a group accept writes at a time. Four cover
// senders that lag each other by three block heights; each costs
// height × Width × 8 bytes.
const MaxOpen = 4

// Group is up to Width series of one bucket whose points share blocks.
//
// Lock order: a group's lock is taken after the store's commit and view locks
// and before the log's; no two groups are locked at a time.
type Group struct {
	ID     uint32
	Bucket uint64

	height int64
	arena  *Arena
	cols   atomic.Pointer[Columns]
	next   atomic.Pointer[Group]
	ahead  ahead

	mu         sync.RWMutex
	sealed     sync.Cond // signalled when sealing shrinks
	dead       bool
	cur        *block         // the block written last
	open       []*block       // ascending, at most MaxOpen
	sealing    []*block       // closed, being encoded
	closedTo   int64          // slots below were in a block that is closed, or before one
	counts     account.Counts // of the write under way: a local one would escape
	sparse     int            // how many of the last sealed blocks were sparse, up to sparseBlocks
	lastSet    int            // cells that the last sealed block had set
	replayFrom uint64         // records below are not replayed for this group

	settled, settling int64 // the highest slot flushed, and with the flush under way; -1 = none
	unsettled         bool  // it has columns whose older points it may not have flushed itself

	late, lateOut          lateRuns
	sealedBlocks, flushing []*sealedBlock
	captured               []*sealedBlock // flushing, until the flush has ended, even if the group has

	written [Width]activity // behind what every write needs
}

// NewGroup returns a group without columns. height is the number of slots of a
// block: a divisor of chunk.Slots, for which arena was made.
func NewGroup(id uint32, bucket uint64, height int, arena *Arena) *Group {
	if height <= 0 || chunk.Slots%height != 0 {
		panic(fmt.Sprintf("block height %d does not divide %d", height, chunk.Slots))
	}
	if height%arena.rows != 0 {
		panic(fmt.Sprintf("parts of %d rows for blocks of %d", arena.rows, height))
	}
	g := &Group{ID: id, Bucket: bucket, height: int64(height), arena: arena, sparse: sparseBlocks, settled: -1, settling: -1, unsettled: true}
	g.sealed.L = &g.mu
	g.ahead.slot.Store(noSlot)
	g.cols.Store(&Columns{})
	return g
}

// Columns returns the columns as they are now.
func (g *Group) Columns() *Columns { return g.cols.Load() }

// Next returns the group whose first column followed this group's last one
// when a sender passed it last, or nil.
func (g *Group) Next() *Group { return g.next.Load() }

// SetNext records what followed the last column.
func (g *Group) SetNext(n *Group) { g.next.Store(n) }

// Write is one run of points, along a row (consecutive columns, one slot) or
// down a column (consecutive slots, one column), or several along rows.
type Write struct {
	Column int
	Slot   int64
	Words  []uint64
	Down   bool
	Pairs  bool   // a point has two words: for Column, and for the column behind it
	Epoch  uint32 // of the view in which the names of the columns were found
	Runs   []Run  // if any: the words are theirs, one after the other, and Column and Slot mean nothing
}

// Run is a run along a row among several of one write.
type Run struct {
	Column, Points int
	Slot           int64
}

// Log appends the record of a write to the write-ahead log and returns its
// position. It is called under the group's lock, after the cells were written,
// with what became of the points: the log's order is the order of the cells.
type Log func(c *account.Counts) (lsn uint64, err error)

// Applied says what a write caused.
type Applied struct {
	Dead   bool  // the group is dead: nothing was stored
	Stale  bool  // columns were taken from their series since Write.Epoch: nothing was stored
	Closed int   // blocks that wait for Seal because of it
	Late   int64 // bytes it added to the late points
}

// Apply stores the points of w and logs them. now is the coarse clock in
// nanoseconds. What it caused holds with an error of the log, too: a block that
// it closed waits for Seal.
func (g *Group) Apply(w Write, now int64, log Log) (Applied, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.dead {
		return Applied{Dead: true}, nil
	}
	if w.Epoch != g.Columns().epoch {
		return Applied{Stale: true}, nil
	}
	closed, late := len(g.sealing), g.late.bytes()
	c := &g.counts
	*c = account.Counts{}
	touched := touchedBlocks{}
	switch {
	case len(w.Runs) > 0:
		for _, r := range w.Runs {
			g.row(Write{Column: r.Column, Slot: r.Slot, Words: w.Words[:r.Points]}, c, &touched)
			w.Words = w.Words[r.Points:]
		}
	case w.Pairs:
		g.pairs(w, c, &touched)
	case w.Down:
		g.down(w, c, &touched)
	default:
		g.row(w, c, &touched)
	}
	lsn, err := log(c)
	if err == nil {
		touched.timestamp(g, lsn, now)
	}
	return Applied{Closed: len(g.sealing) - closed, Late: g.late.bytes() - late}, err
}

// touchedBlocks are the blocks and late points that a write reached: their
// first position in the log is known only after the record was appended.
type touchedBlocks struct {
	one  *block // the usual case without a slice
	more []*block
	late bool
}

func (t *touchedBlocks) add(b *block) {
	if t.one == nil {
		t.one = b
	} else if t.one != b && !slices.Contains(t.more, b) {
		t.more = append(t.more, b)
	}
}

func (t *touchedBlocks) timestamp(g *Group, lsn uint64, now int64) {
	for _, b := range t.more {
		b.timestamp(lsn, now)
	}
	if b := t.one; b != nil {
		b.timestamp(lsn, now)
		g.closePast(b)
	}
	for _, b := range t.more {
		g.closePast(b)
	}
	if t.late {
		g.late.last = activity{lsn, now}
	}
}

func (g *Group) row(w Write, c *account.Counts, touched *touchedBlocks) {
	b := g.block(w.Slot)
	if b == nil {
		touched.late = true
		g.late.highest = max(g.late.highest, w.Slot)
		for i, word := range w.Words {
			g.late.add(w.Column+i, w.Slot, word, c)
		}
		return
	}
	touched.add(b)
	b.wrote(w.Slot, w.Slot)
	row, before := int(w.Slot-b.start), c.Accepted
	if g.inTable(b, len(w.Words)) {
		b.table.put(row*Width+w.Column, 1, w.Words, c)
	} else {
		put(b.grow(row)[w.Column:w.Column+len(w.Words)], w.Words, c)
		if _, ok := g.ahead.row(w.Slot, g.arena.rows); !ok {
			g.ahead.note(b, row)
		}
	}
	b.set += int(c.Accepted - before)
}

func (g *Group) down(w Write, c *account.Counts, touched *touchedBlocks) {
	words, slot := w.Words, w.Slot
	for len(words) > 0 {
		n := min(len(words), int(g.height-slot%g.height))
		if b := g.block(slot); b == nil {
			n = min(n, g.lateSlots(slot))
			touched.late = true
			g.late.highest = max(g.late.highest, slot+int64(n)-1)
			g.late.addRun(w.Column, slot, words[:n], c)
		} else {
			touched.add(b)
			b.wrote(slot, slot+int64(n)-1)
			row, before := int(slot-b.start), c.Accepted
			if g.inTable(b, n) {
				b.table.put(row*Width+w.Column, Width, words[:n], c)
			} else {
				b.putDown(row, w.Column, words[:n], c)
			}
			b.set += int(c.Accepted - before)
		}
		words, slot = words[n:], slot+int64(n)
	}
}

// block returns the open block of a slot, opening it where the rules allow, or
// nil where the point is late.
func (g *Group) block(slot int64) *block {
	if b := g.cur; b != nil && slot >= b.from && slot < b.start+g.height {
		return b
	}
	start := slot - slot%g.height
	i, found := slices.BinarySearchFunc(g.open, start, func(b *block, s int64) int { return int(b.start - s) })
	if found {
		if slot < g.open[i].from {
			return nil
		}
		g.cur = g.open[i]
		return g.cur
	}
	if slot < g.closedTo {
		return nil
	}
	if len(g.open) == MaxOpen {
		if i == 0 {
			return nil // older than every open block: a point never closes a newer one
		}
		g.close(0)
		i--
	}
	g.cur = g.newBlock(start, slot)
	g.open = slices.Insert(g.open, i, g.cur)
	return g.cur
}

// lateSlots returns how many slots of a block are late from a late one on: the
// rows behind those that were closed may still be taken.
func (g *Group) lateSlots(slot int64) int {
	start := slot - slot%g.height
	past := start + g.height
	if slot < g.closedTo {
		past = min(past, g.closedTo)
	}
	for _, b := range g.open {
		if b.start == start {
			past = b.from
		}
	}
	return int(past - slot)
}

// close takes an open block out of reach of writers.
func (g *Group) close(i int) {
	b := g.open[i]
	g.open = slices.Delete(g.open, i, i+1)
	g.closedTo = max(g.closedTo, b.last+1)
	g.sealing = append(g.sealing, b)
	if g.cur == b {
		g.cur = nil
	}
}

// CloseBlocks closes the open blocks for which the caller says so, oldest
// first, and returns how many now wait for Seal. due is given the position of
// the block's first record in the log and the coarse times of its first and
// last write.
func (g *Group) CloseBlocks(due func(firstLSN uint64, opened, lastWrite int64) bool) (closed int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for i := 0; i < len(g.open); {
		b := g.open[i]
		if due(b.firstLSN, b.opened, b.lastWrite) {
			g.close(i)
			closed++
		} else {
			i++
		}
	}
	return closed
}

// Kill makes the group refuse all writes and gives its memory back; what it
// held is gone. It waits for a seal under way and returns the bytes given back:
// sealed blocks and late points.
func (g *Group) Kill() (sealedBlocks, late int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.dead = true
	for len(g.sealing) > 0 {
		g.sealed.Wait()
	}
	sealedBlocks, late = g.unflushed()
	for _, b := range g.open {
		b.free()
	}
	g.open, g.cur = nil, nil
	g.freeSealed(g.sealedBlocks)
	g.sealedBlocks, g.flushing = nil, nil // a flush under way goes on reading what it captured
	g.late, g.lateOut = lateRuns{}, lateRuns{}
	return sealedBlocks, late
}
