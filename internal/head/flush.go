package head

import (
	"cmp"
	"math"
	"slices"

	"dalmatiner/internal/chunk"
	"dalmatiner/internal/kernel"
)

// Capture is what BeginFlush took from a group: it stays readable in the group
// until EndFlush.
type Capture struct {
	batch  // sealed blocks ascending by start
	height int64
	cols   *Columns
	// ReplayPosition is the position in the log of the first record that the group
	// still needs after this flush, 0 when it needs none.
	ReplayPosition uint64

	// Settled is the highest slot that the group has flushed before, -1 for none. With
	// Unsettled older points of some columns may have been flushed by another group: the
	// caller raises Settled to what is known of all groups. Chunks with a slot up to it
	// may lie over something older.
	Settled   int64
	Unsettled bool
	// Highest is the highest slot of what was captured, at least; -1 for none.
	Highest int64
}

// BeginFlush takes the sealed blocks and late points of the group for writing.
// It first waits until no block is being sealed: a late point must not be
// flushed before the sealed block it corrects. Only one flush may be under way.
func (g *Group) BeginFlush() Capture {
	c := g.capture()
	slices.SortStableFunc(c.sealedBlocks, func(a, b *sealedBlock) int { return cmp.Compare(a.start, b.start) })
	return c
}

// capture does what needs the lock.
func (g *Group) capture() Capture {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.awaitSealers()
	g.owners.noteLate(&g.unflushed.waiting.late)
	c := g.unflushed.begin()
	c.height, c.cols, c.ReplayPosition = g.blocks.height, g.Columns(), g.blocks.replayPosition()
	return c
}

// Settle raises the highest slot that counts as flushed: what the caller knows of older
// points of the group's series counts for its later flushes, too.
func (g *Group) Settle(slot int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.unflushed.settled = max(g.unflushed.settled, slot)
}

// EndFlush forgets what BeginFlush took, after a committed segment holds it,
// and returns the bytes given back: sealed blocks and late points. The capture must not be
// read any more. The memory of sealed blocks goes to later ones until Arena.ReleaseSealed.
func (g *Group) EndFlush() (sealedBlocks, late int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.unflushed.end()
}

// FlushChunks returns about how many chunks a flush makes of what waits for it, and
// how many bytes it copies for that: of chunks that are more than one piece. Columns of
// which only some sealed blocks of a chunk hold anything may not be seen; what came out of order
// may count twice.
func (g *Group) FlushChunks() (n, copied int64) {
	g.mu.RLock()
	defer g.mu.RUnlock()
	for _, b := range g.unflushed.both() {
		n, copied = n+b.chunks(), copied+b.copied()
	}
	return n, copied
}

// AbortFlush puts back what BeginFlush took: the next flush takes it again. The
// capture must not be read any more.
func (g *Group) AbortFlush() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.unflushed.abort(g.dead)
}

// Copied returns about how many bytes of what was captured a flush has to copy, as
// FlushChunks does.
func (c *Capture) Copied() int64 { return c.copied() }

// Chunks returns about how many chunks the capture makes, as FlushChunks does.
func (c *Capture) Chunks() int64 { return c.chunks() }

// Empty reports whether there is nothing to write.
func (c *Capture) Empty() bool { return c.empty() }

// Flusher turns captures into chunks. It holds scratch memory and is not for
// concurrent use.
type Flusher struct {
	enc    chunk.Encoder
	words  [chunk.Slots]uint64
	data   []byte
	parts  []latePart
	pieces [][]byte // of one chunk
}

// Emit takes one encoded chunk: its number is its first slot divided by
// chunk.Slots. data, which holds points of them, is valid during the call, and where
// it stays, because it lies in a sealed block, until EndFlush or AbortFlush. Where it is marked
// it may lie over something older: it has late points, or slots up to Capture.Settled.
type Emit func(number int64, points int, data []byte, stays, marked bool) error

// Columns returns the columns of the captured group.
func (c *Capture) Columns() *Columns { return c.cols }

// latePart is what a late run has in one chunk.
type latePart struct {
	number int64
	run    lateRun
}

// Fetch prefetches what Column reads first of a column: neighbouring pieces lie in
// different sealed blocks.
func (c *Capture) Fetch(col int) {
	for _, t := range c.sealedBlocks {
		if p := t.piece(col); len(p) > 0 {
			kernel.FetchOf(&p[0])
		}
	}
}

// Column hands every chunk of a column to emit, ascending.
func (f *Flusher) Column(c *Capture, col int, emit Emit) error {
	late := c.late.column(col)
	f.cut(late)
	for t, p := 0, 0; t < len(c.sealedBlocks) || p < len(f.parts); {
		num := int64(math.MaxInt64)
		if t < len(c.sealedBlocks) {
			num = c.sealedBlocks[t].start / chunk.Slots
		}
		past := p
		if p < len(f.parts) {
			num = min(num, f.parts[p].number)
		}
		marked := false
		for f.pieces = f.pieces[:0]; t < len(c.sealedBlocks) && c.sealedBlocks[t].start/chunk.Slots == num; t++ {
			if piece := c.sealedBlocks[t].piece(col); len(piece) > 0 {
				f.pieces = append(f.pieces, piece)
				marked = marked || c.sealedBlocks[t].first <= c.Settled
			}
		}
		for past < len(f.parts) && f.parts[past].number == num {
			past++
		}
		if len(f.pieces) == 0 && past == p {
			continue
		}
		data, points, stays, err := f.one(c, num, late, f.parts[p:past])
		if err != nil {
			return err
		}
		if err := emit(num, points, data, stays, marked || past > p); err != nil {
			return err
		}
		p = past
	}
	return nil
}

// cut sorts what the runs of a column have in each chunk by chunk, and keeps
// the order of arrival inside one. Going through all runs for every chunk would
// take minutes when a year is filled in with points that lie far apart.
func (f *Flusher) cut(late *lateColumn) {
	f.parts = f.parts[:0]
	if late == nil {
		return
	}
	for _, r := range late.runs {
		for n := r.slot / chunk.Slots; n <= (r.slot+int64(r.n)-1)/chunk.Slots; n++ {
			f.parts = append(f.parts, latePart{number: n, run: r})
		}
	}
	slices.SortStableFunc(f.parts, func(a, b latePart) int { return cmp.Compare(a.number, b.number) })
}

// one returns the encoding of one chunk, of which pieces are those of sealed blocks, how many
// points it has, and whether it lies in a sealed block. A chunk that is a single piece is
// that piece, byte for byte. Some pieces of a chunk are listed as they are: the
// others come with a later flush, and the merge of both decodes and encodes
// everything again. A complete chunk, and what a late point corrects, is
// decoded and encoded as a whole.
func (f *Flusher) one(c *Capture, num int64, late *lateColumn, parts []latePart) (data []byte, points int, stays bool, err error) {
	if len(parts) == 0 {
		switch n := len(f.pieces); {
		case n == 1:
			points, err = chunk.Count(f.pieces[0])
			return f.pieces[0], points, true, err
		case n < int(chunk.Slots/c.height):
			if f.data, points, err = chunk.AppendMultiPart(f.data[:0], f.pieces); err == nil {
				return f.data, points, false, nil
			}
		}
	}
	clear(f.words[:])
	for _, p := range f.pieces {
		if err := chunk.DecodeRange(f.words[:], p, 0); err != nil {
			return nil, 0, false, err
		}
	}
	for i := range parts {
		r := &parts[i].run
		overlay(f.words[:], num*chunk.Slots, late.of(r), r.slot)
	}
	f.data = f.enc.Append(f.data[:0], 0, f.words[:])
	return f.data, f.enc.Count(), false, nil
}
