package head

import (
	"cmp"
	"math"
	"slices"

	"dalmatiner/internal/codec/chunk"
	"dalmatiner/internal/codec/kernel"
)

// Capture is what BeginFlush took from a group. Readers of the group see it until EndFlush. It
// is valid until EndFlush or AbortFlush.
type Capture struct {
	batch  // sealed blocks ascending by start
	height int64
	cols   *Columns
	// ReplayPosition is the LSN of the first record that the group still needs after this
	// flush, 0 if it needs none.
	ReplayPosition uint64

	// Open is the lowest slot that an open block may hold, where ReplayPosition is not 0.
	Open int64

	// Settled is the highest slot that the group has flushed before, -1 for none. Chunks
	// with a slot up to it may lie over something older, and are marked. If Unsettled is
	// true, another group may have flushed older points of some columns: the caller then
	// raises Settled to the highest slot that it knows of all groups.
	Settled   int64
	Unsettled bool
	// Highest is the highest slot of what was captured, or one above it; -1 for none.
	Highest int64
}

// BeginFlush takes the sealed blocks and late points of the group for a flush, which the caller
// ends with EndFlush or AbortFlush. It first waits until all closed blocks are sealed: a late
// point must not be flushed before the block that it corrects. Only one flush of a group may
// be under way.
func (g *Group) BeginFlush() Capture {
	c := g.capture()
	slices.SortStableFunc(c.sealedBlocks, func(a, b *sealedBlock) int {
		return cmp.Compare(a.start, b.start)
	})
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
	if c.ReplayPosition != 0 {
		c.Open = g.blocks.open[0].start
	}
	return c
}

// Settle raises the highest slot that counts as flushed to at least slot, also for later
// flushes: the caller knows of points of the group's series that other groups have flushed.
func (g *Group) Settle(slot int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.unflushed.settled = max(g.unflushed.settled, slot)
}

// EndFlush drops what BeginFlush took. A committed segment must hold it. The Capture is not
// valid any more. It returns the bytes of the sealed blocks and of the late points, 0 if the
// group was killed meanwhile. The memory of sealed blocks is for later ones until
// Arena.ReleaseSealed.
func (g *Group) EndFlush() (sealedBlocks, late int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.unflushed.end()
}

// FlushChunks returns about how many chunks the next flush, and one under way, make, and how
// many bytes they copy: those of chunks that are more than one piece. n may be too low if only
// some sealed blocks of a chunk have a column, and too high if points came out of order.
func (g *Group) FlushChunks() (n, copied int64) {
	g.mu.RLock()
	defer g.mu.RUnlock()
	for _, b := range g.unflushed.batches() {
		n, copied = n+b.chunks(), copied+b.copiedBytes()
	}
	return n, copied
}

// BlockChunks returns about how many chunks the group's blocks add to FlushChunks when they are
// sealed, and how many bytes a flush will copy of them. Both are rather too high: a block knows
// how many of its cells are set, and not in which columns.
func (g *Group) BlockChunks() (n, copied int64) {
	g.mu.RLock()
	defer g.mu.RUnlock()
	return g.blocks.chunks(g.Columns().Len(), &g.unflushed.waiting)
}

// AbortFlush puts back what BeginFlush took, for the next flush. The Capture is not valid any
// more.
func (g *Group) AbortFlush() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.unflushed.abort(g.dead)
}

// CopiedBytes returns about how many bytes of the capture a flush copies, as FlushChunks does.
func (c *Capture) CopiedBytes() int64 { return c.copiedBytes() }

// Chunks returns about how many chunks the capture makes, as FlushChunks does.
func (c *Capture) Chunks() int64 { return c.chunks() }

// Empty reports whether nothing was captured.
func (c *Capture) Empty() bool { return c.empty() }

// Flusher turns captures into chunks. It holds scratch memory. The zero value is ready; it
// must not be used by two goroutines at once.
type Flusher struct {
	enc    chunk.Encoder
	words  [chunk.Slots]uint64
	data   []byte
	parts  []latePart
	pieces [][]byte // of one chunk
}

// Emit takes one encoded chunk. number is its first slot divided by chunk.Slots, and points is
// how many set slots it has. data must not be written to. It is valid during the call, and if
// stays is true until EndFlush or AbortFlush, because it lies in a sealed block. If marked is
// true the chunk may lie over something older: it has late points, or slots up to
// Capture.Settled. An error ends the walk.
type Emit func(number int64, points int, data []byte, stays, marked bool) error

// Columns returns the columns of the group as they were in BeginFlush.
func (c *Capture) Columns() *Columns { return c.cols }

// latePart is what a late run has in one chunk.
type latePart struct {
	number int64
	run    lateRun
}

// Fetch prefetches what Flusher.Column reads first of a column, because the pieces of
// neighbouring chunks lie far apart.
func (c *Capture) Fetch(col int) {
	for _, t := range c.sealedBlocks {
		if p := t.piece(col); len(p) > 0 {
			kernel.FetchOf(&p[0])
		}
	}
}

// Column calls emit for every chunk of a column of c, in ascending order. An error is that of
// emit, as it is, or one of a sealed block that cannot be decoded.
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
		for f.pieces = f.pieces[:0]; t < len(c.sealedBlocks) &&
			c.sealedBlocks[t].start/chunk.Slots == num; t++ {
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
		data, points, stays, err := f.encodeChunk(c, num, late, f.parts[p:past])
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

// encodeChunk returns the encoding of one chunk, of which pieces are those of sealed blocks, how
// many points it has, and whether it lies in a sealed block. A chunk that is a single piece is
// that piece, byte for byte. Some pieces of a chunk are listed as they are: the
// others come with a later flush, and the merge of both decodes and encodes
// everything again. A complete chunk, and what a late point corrects, is
// decoded and encoded as a whole.
func (f *Flusher) encodeChunk(c *Capture, num int64, late *lateColumn,
	parts []latePart) (data []byte,
	points int, stays bool, err error) {
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
		overlay(f.words[:], num*chunk.Slots, late.wordsOf(r), r.slot)
	}
	f.data = f.enc.Append(f.data[:0], 0, f.words[:])
	return f.data, f.enc.Count(), false, nil
}
