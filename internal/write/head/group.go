package head

import (
	"fmt"
	"sync"
	"sync/atomic"

	"dalmatiner/internal/codec/chunk"
	"dalmatiner/internal/model/account"
	"dalmatiner/internal/model/history"
)

// Group is up to Width series of one bucket whose points share blocks. It is the way to its parts,
// and has the lock that protects them: the owners of its columns (owners), the blocks with cells
// (blocks), and what waits for a flush (unflushed).
//
// Lock order: a group's lock is taken after the store's commit and view locks
// and before the log's; no two groups are locked at a time.
type Group struct {
	ID     uint32 // among all groups of the node
	Bucket uint64 // id

	next    atomic.Pointer[Group]
	ahead   prefetchHint
	journal *history.Journal // of the bucket
	noted   history.LastNote // in it

	mu     sync.RWMutex
	sealed sync.Cond // signalled when a closed block has been sealed
	dead   bool
	counts account.Counts // of the write under way: a local one would escape

	blocks    blocks
	unflushed flushState
	owners    owners // last: a write reads only its beginning
}

// NewGroup returns a group without columns. height is the number of slots of a
// block: a divisor of chunk.Slots, for which arena was made. journal is that of the bucket.
func NewGroup(id uint32, bucket uint64, height int, arena *Arena, journal *history.Journal) *Group {
	if height <= 0 || chunk.Slots%height != 0 {
		panic(fmt.Sprintf("block height %d does not divide %d", height, chunk.Slots))
	}
	if height%arena.rows != 0 {
		panic(fmt.Sprintf("parts of %d rows for blocks of %d", arena.rows, height))
	}
	g := &Group{
		ID:        id,
		Bucket:    bucket,
		journal:   journal,
		blocks:    newBlocks(height, arena),
		unflushed: newUnflushed(arena),
	}
	g.sealed.L = &g.mu
	g.ahead.slot.Store(noSlot)
	g.owners.view.Store(&Columns{})
	return g
}

// Columns returns the columns as they are now.
func (g *Group) Columns() *Columns { return g.owners.columns() }

// Next returns the group whose first column followed this group's last one
// when a sender passed it last, or nil.
func (g *Group) Next() *Group { return g.next.Load() }

// SetNext records what followed the last column.
func (g *Group) SetNext(n *Group) { g.next.Store(n) }

// WriteResult says what a write caused.
type WriteResult struct {
	Dead   bool  // Kill was called: nothing was stored
	Stale  bool  // columns were taken from their series since Write.Epoch: nothing was stored
	Closed int   // blocks that it closed, which wait for Seal
	Late   int64 // bytes that it added to the late points
}

// Apply stores the points of w and then calls log for their record, unless it returns Dead or
// Stale. It keeps nothing of w. now is the coarse clock. The error is that of log. Applied
// holds with an error, too: the points are stored then, and a block that the write closed
// waits for Seal.
func (g *Group) Apply(w Write, now int64, log Log) (WriteResult, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.dead {
		return WriteResult{Dead: true}, nil
	}
	cols := g.Columns()
	if w.Epoch != cols.epoch {
		return WriteResult{Stale: true}, nil
	}
	late := &g.unflushed.waiting.late
	closed, bytes := len(g.blocks.closed), late.bytes()
	g.counts = account.Counts{}
	under := writeState{blocks: &g.blocks, late: late, ahead: &g.ahead, counts: &g.counts}
	if len(w.Runs) == 0 {
		g.journal.NoteWrite(w.Slot, w.endSlot(), &g.noted)
	}
	switch {
	case len(w.Runs) > 0:
		for _, r := range w.Runs {
			g.journal.NoteWrite(r.Slot, r.Slot+1, &g.noted)
			under.row(Write{Column: r.Column, Slot: r.Slot, Words: w.Words[:r.Points]})
			w.Words = w.Words[r.Points:]
		}
	case w.Pairs:
		under.pairs(w)
	case w.Down:
		under.writeColumn(w)
	default:
		under.row(w)
	}
	lsn, err := log(&g.counts)
	if err == nil {
		under.noteLogged(lsn, now, cols.bound)
	}
	return WriteResult{Closed: len(g.blocks.closed) - closed, Late: late.bytes() - bytes}, err
}

// CloseBlocks closes the open blocks for which due returns true, oldest first, and returns how
// many: they wait for Seal. due is given the LSN of the first record of the block, and the
// coarse times of its first and last write. It is called under the lock of the group.
func (g *Group) CloseBlocks(due func(firstLSN uint64, opened, lastWrite int64) bool) (closed int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.blocks.closeIf(func(b *block) bool { return due(b.firstLSN, b.opened, b.lastWrite) })
}

// CloseComplete closes the complete blocks whose last write was before the given coarse time,
// and returns how many: they wait for Seal. Points that rewrite their slots are late from then
// on.
func (g *Group) CloseComplete(before int64) (closed int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	bound := g.Columns().Bound()
	return g.blocks.closeIf(func(b *block) bool { return b.lastWrite < before && b.complete(bound) })
}

// CloseBehind closes all blocks but the newest, and the one before it while points for it may
// come, and returns how many: they wait for Seal. It is for a replay, in which the clock does
// not run that closed them the first time.
func (g *Group) CloseBehind() (closed int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.blocks.closeBehind(g.Columns().Bound())
}

// awaitSealers waits, under the lock, until no block is closed and not yet sealed.
func (g *Group) awaitSealers() {
	for len(g.blocks.closed) > 0 {
		g.sealed.Wait()
	}
}

// Kill makes the group refuse all writes, drops what it holds, and gives its memory back. It
// waits until all closed blocks are sealed. A flush under way goes on reading its Capture. It
// returns the bytes of the sealed blocks and of the late points that are gone.
func (g *Group) Kill() (sealedBlocks, late int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.dead = true
	g.awaitSealers()
	g.blocks.freeOpen()
	return g.unflushed.clear()
}
