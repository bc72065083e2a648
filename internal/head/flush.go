package head

import (
	"cmp"
	"slices"

	"dalmatiner/internal/chunk"
)

// Capture is what BeginFlush took from a group: it stays readable in the group
// until EndFlush.
type Capture struct {
	group *Group
	tiles []*tile // ascending by start
	late  lateRuns
	cols  *Columns
	// Floor is the position in the log of the first record that the group
	// still needs after this flush, 0 when it needs none.
	Floor uint64
}

// BeginFlush takes the sealed tiles and late points of the group for writing.
// It first waits until no block is being sealed: a late point must not be
// flushed before the tile it corrects. Only one flush may be under way.
func (g *Group) BeginFlush() Capture {
	c := g.capture()
	slices.SortStableFunc(c.tiles, func(a, b *tile) int { return cmp.Compare(a.start, b.start) })
	return c
}

// capture does what needs the lock.
func (g *Group) capture() Capture {
	g.mu.Lock()
	defer g.mu.Unlock()
	for len(g.sealing) > 0 {
		g.sealed.Wait()
	}
	g.noteLate()
	g.flushing, g.captured, g.tiles = g.tiles, g.tiles, nil
	g.lateOut, g.late = g.late, lateRuns{}
	c := Capture{group: g, tiles: slices.Clone(g.flushing), late: g.lateOut, cols: g.Columns()}
	for _, b := range g.open {
		if c.Floor == 0 || b.firstLSN < c.Floor {
			c.Floor = b.firstLSN
		}
	}
	return c
}

// EndFlush forgets what BeginFlush took, after a committed segment holds it,
// and returns the bytes given back: tiles and late points. The capture must not be
// read any more. The memory of tiles goes to later ones until Arena.ReleaseTiles.
func (g *Group) EndFlush() (tiles, late int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, t := range g.flushing {
		tiles += t.bytes()
	}
	late = g.lateOut.bytes()
	g.freeTiles(g.captured)
	g.flushing, g.captured, g.lateOut = nil, nil, lateRuns{}
	return tiles, late
}

// FlushChunks returns about how many chunks a flush makes of what waits for it, and
// its bytes. Columns of which only some tiles of a chunk hold anything may not be
// seen; what came out of order may count twice.
func (g *Group) FlushChunks() (n, bytes int64) {
	g.mu.RLock()
	defer g.mu.RUnlock()
	tiles, late := g.unflushed()
	return tileChunks(g.flushing) + tileChunks(g.tiles) + g.lateOut.chunks() + g.late.chunks(), tiles + late
}

// tileChunks returns about how many chunks a flush makes of tiles.
func tileChunks(tiles []*tile) (n int64) {
	number, most := int64(-1), 0
	for _, t := range tiles {
		if at := t.start / chunk.Slots; at != number {
			n += int64(most)
			number, most = at, 0
		}
		most = max(most, t.held)
	}
	return n + int64(most)
}

// AbortFlush puts back what BeginFlush took: the next flush takes it again. The
// capture must not be read any more.
func (g *Group) AbortFlush() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.dead {
		g.freeTiles(g.captured)
	}
	g.captured = nil
	g.tiles = append(g.flushing, g.tiles...)
	old := g.lateOut
	old.addAll(&g.late)
	g.late, g.flushing, g.lateOut = old, nil, lateRuns{}
}

// Bytes returns the memory of what was captured.
func (c *Capture) Bytes() int64 {
	n := c.late.bytes()
	for _, t := range c.tiles {
		n += t.bytes()
	}
	return n
}

// Chunks returns about how many chunks the capture makes, as FlushChunks does.
func (c *Capture) Chunks() int64 { return tileChunks(c.tiles) + c.late.chunks() }

// Empty reports whether there is nothing to write.
func (c *Capture) Empty() bool { return len(c.tiles) == 0 && c.late.empty() }

// Flusher turns captures into chunks. It holds scratch memory and is not for
// concurrent use.
type Flusher struct {
	enc    chunk.Encoder
	words  [chunk.Slots]uint64
	data   []byte
	nums   []int64
	parts  []latePart
	pieces [][]byte // of one chunk
}

// Emit takes one encoded chunk: its number is its first slot divided by
// chunk.Slots. data, which holds points of them, is valid during the call.
type Emit func(number int64, points int, data []byte) error

// Columns returns the columns of the captured group.
func (c *Capture) Columns() *Columns { return c.cols }

// latePart is what a late run has in one chunk.
type latePart struct {
	number int64
	run    lateRun
}

// Column hands every chunk of a column to emit, ascending.
func (f *Flusher) Column(c *Capture, col int, emit Emit) error {
	late := c.late.column(col)
	f.cut(late)
	f.number(c, col)
	t, p := 0, 0
	for _, num := range f.nums {
		for t < len(c.tiles) && c.tiles[t].start/chunk.Slots < num {
			t++
		}
		last, past := t, p
		for last < len(c.tiles) && c.tiles[last].start/chunk.Slots == num {
			last++
		}
		for past < len(f.parts) && f.parts[past].number == num {
			past++
		}
		data, points, err := f.one(c, col, num, c.tiles[t:last], late, f.parts[p:past])
		if err != nil {
			return err
		}
		if err := emit(num, points, data); err != nil {
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

// number sets the numbers of the column's chunks, ascending.
func (f *Flusher) number(c *Capture, col int) {
	f.nums = f.nums[:0]
	for _, t := range c.tiles {
		if len(t.piece(col)) > 0 {
			f.nums = append(f.nums, t.start/chunk.Slots)
		}
	}
	if len(f.parts) > 0 {
		for i := range f.parts {
			f.nums = append(f.nums, f.parts[i].number)
		}
		slices.Sort(f.nums)
	}
	f.nums = slices.Compact(f.nums)
}

// one returns the encoding of one chunk and how many points it has. A chunk that is a single piece is
// that piece, byte for byte. Some pieces of a chunk are listed as they are: the
// others come with a later flush, and the merge of both decodes and encodes
// everything again. A complete chunk, and what a late point corrects, is
// decoded and encoded as a whole.
func (f *Flusher) one(c *Capture, col int, num int64, tiles []*tile, late *lateColumn, parts []latePart) (data []byte, points int, err error) {
	f.pieces = f.pieces[:0]
	for _, t := range tiles {
		if p := t.piece(col); len(p) > 0 {
			f.pieces = append(f.pieces, p)
		}
	}
	if len(parts) == 0 {
		switch n := len(f.pieces); {
		case n == 1:
			h, err := chunk.ParseHeader(f.pieces[0])
			return f.pieces[0], h.Count, err
		case n < int(chunk.Slots/c.group.height):
			if f.data, points, err = chunk.AppendComposite(f.data[:0], f.pieces); err == nil {
				return f.data, points, nil
			}
		}
	}
	clear(f.words[:])
	for _, p := range f.pieces {
		if err := chunk.DecodeRange(f.words[:], p, 0); err != nil {
			return nil, 0, err
		}
	}
	for i := range parts {
		r := &parts[i].run
		overlay(f.words[:], num*chunk.Slots, late.of(r), r.slot)
	}
	f.data = f.enc.Append(f.data[:0], 0, f.words[:])
	return f.data, f.enc.Count(), nil
}
