package head

import (
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
	g.mu.Lock()
	defer g.mu.Unlock()
	for len(g.sealing) > 0 {
		g.sealed.Wait()
	}
	g.flushing, g.tiles = g.tiles, nil
	g.lateOut, g.late = g.late, lateRuns{}
	c := Capture{group: g, tiles: slices.Clone(g.flushing), late: g.lateOut, cols: g.Columns()}
	c.late.runs = slices.Clone(c.late.runs)
	c.late.sortByColumn()
	slices.SortFunc(c.tiles, func(a, b *tile) int { return int(a.start - b.start) })
	for _, b := range g.open {
		if c.Floor == 0 || b.firstLSN < c.Floor {
			c.Floor = b.firstLSN
		}
	}
	return c
}

// EndFlush forgets what BeginFlush took, after a committed segment holds it,
// and returns the bytes given back: tiles and late points.
func (g *Group) EndFlush() (tiles, late int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, t := range g.flushing {
		tiles += t.bytes()
	}
	late = g.lateOut.bytes()
	g.flushing, g.lateOut = nil, lateRuns{}
	return tiles, late
}

// AbortFlush puts back what BeginFlush took: the next flush takes it again.
func (g *Group) AbortFlush() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.tiles = append(g.flushing, g.tiles...)
	old := g.lateOut
	for _, r := range g.late.runs {
		r.off += uint32(len(old.words))
		old.runs = append(old.runs, r)
	}
	old.words = append(old.words, g.late.words...)
	if old.firstLSN == 0 {
		old.firstLSN = g.late.firstLSN
	}
	g.late, g.flushing, g.lateOut = old, nil, lateRuns{}
}

// Empty reports whether there is nothing to write.
func (c *Capture) Empty() bool { return len(c.tiles) == 0 && len(c.late.runs) == 0 }

// Flusher turns captures into chunks. It holds scratch memory and is not for
// concurrent use.
type Flusher struct {
	enc   chunk.Encoder
	words [chunk.Slots]uint64
	data  []byte
	nums  []int64
}

// Emit takes one encoded chunk: its number is its first slot divided by
// chunk.Slots. data is valid during the call.
type Emit func(number int64, data []byte) error

// Columns returns the columns of the captured group.
func (c *Capture) Columns() *Columns { return c.cols }

// Column hands every chunk of a column to emit, ascending.
func (f *Flusher) Column(c *Capture, col int, emit Emit) error {
	late := c.late.ofColumn(col)
	f.nums = f.numbers(f.nums[:0], c, col, late)
	t := 0
	for _, num := range f.nums {
		for t < len(c.tiles) && c.tiles[t].start/chunk.Slots < num {
			t++
		}
		last := t
		for last < len(c.tiles) && c.tiles[last].start/chunk.Slots == num {
			last++
		}
		data, err := f.one(c, col, num, c.tiles[t:last], late)
		if err != nil {
			return err
		}
		if err := emit(num, data); err != nil {
			return err
		}
	}
	return nil
}

// numbers appends the numbers of the column's chunks, ascending.
func (f *Flusher) numbers(dst []int64, c *Capture, col int, late []lateRun) []int64 {
	for _, t := range c.tiles {
		if len(t.piece(col)) > 0 {
			if n := t.start / chunk.Slots; len(dst) == 0 || dst[len(dst)-1] != n {
				dst = append(dst, n)
			}
		}
	}
	if len(late) == 0 {
		return dst
	}
	for _, r := range late {
		for n := r.slot / chunk.Slots; n <= (r.slot+int64(r.n)-1)/chunk.Slots; n++ {
			dst = append(dst, n)
		}
	}
	slices.Sort(dst)
	return slices.Compact(dst)
}

// one returns the encoding of one chunk. A chunk that is a single piece is
// that piece, byte for byte; anything else is decoded and encoded as a whole.
func (f *Flusher) one(c *Capture, col int, num int64, tiles []*tile, late []lateRun) ([]byte, error) {
	start := num * chunk.Slots
	var single []byte
	pieces := 0
	for _, t := range tiles {
		if p := t.piece(col); len(p) > 0 {
			single = p
			pieces++
		}
	}
	corrected := slices.ContainsFunc(late, func(r lateRun) bool {
		return r.slot < start+chunk.Slots && r.slot+int64(r.n) > start
	})
	if pieces == 1 && !corrected {
		return single, nil
	}
	clear(f.words[:])
	for _, t := range tiles {
		if p := t.piece(col); len(p) > 0 {
			if err := chunk.DecodeRange(f.words[:], p, 0); err != nil {
				return nil, err
			}
		}
	}
	for _, r := range late {
		overlay(f.words[:], start, c.late.words[r.off:r.off+r.n], r.slot)
	}
	f.data = f.enc.Append(f.data[:0], 0, f.words[:])
	return f.data, nil
}
