package head

import (
	"slices"

	"dalmatiner/internal/codec/chunk"
	"dalmatiner/internal/codec/kernel"
	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/model/metric"
)

// Read lays the words that the group holds of a series over dst, which stands for the slots [from,
// from+len(dst)). Slots of which the group holds nothing stay as they are. The last write of a slot
// counts, except that a stale marker does not overwrite a value. own is false if the column is not
// that of the series any more; dst is unchanged then. After an error dst may have a part.
func (g *Group) Read(col int, id metric.SeriesID, from int64, dst []uint64) (own bool, err error) {
	g.mu.RLock()
	defer g.mu.RUnlock()
	if !g.Columns().owns(id, col) {
		return false, nil
	}
	return true, g.read(col, from, dst)
}

// ReadPair is Read for the column and the one behind it, both at one moment.
func (g *Group) ReadPair(col int, id metric.SeriesID, from int64, values,
	others []uint64) (own bool, err error) {
	g.mu.RLock()
	defer g.mu.RUnlock()
	if !g.Columns().owns(id, col) {
		return false, nil
	}
	if err := g.read(col, from, values); err != nil {
		return true, err
	}
	return true, g.read(col+1, from, others)
}

// read is Read under the lock. The order is that of the writes: sealed blocks and late points
// of a flush under way, sealed blocks, closed blocks, late points, open blocks.
func (g *Group) read(col int, from int64, dst []uint64) error {
	flushing, waiting := &g.unflushed.flushing, &g.unflushed.waiting
	if err := readSealed(flushing.sealedBlocks, col, from, dst); err != nil {
		return err
	}
	flushing.late.read(col, from, dst)
	if err := readSealed(waiting.sealedBlocks, col, from, dst); err != nil {
		return err
	}
	for _, b := range g.blocks.closed {
		b.readSlots(col, from, dst)
	}
	waiting.late.read(col, from, dst)
	for _, b := range g.blocks.open {
		b.readSlots(col, from, dst)
	}
	return nil
}

func readSealed(sealedBlocks []*sealedBlock, col int, from int64, dst []uint64) error {
	for _, t := range sealedBlocks {
		p := t.piece(col)
		if len(p) == 0 {
			continue
		}
		if err := DecodeChunk(dst, from, p, t.start/chunk.Slots); err != nil {
			return err
		}
	}
	return nil
}

// DecodeChunk lays the set slots of the encoded chunk data over dst, which stands for the slots
// [from, from+len(dst)). number is the first slot of the chunk divided by chunk.Slots. The
// error wraps chunk.ErrCorrupt, and dst is unchanged then.
func DecodeChunk(dst []uint64, from int64, data []byte, number int64) error {
	start := number * chunk.Slots
	lo, hi := max(from, start), min(from+int64(len(dst)), start+chunk.Slots)
	if lo >= hi {
		return nil
	}
	return chunk.DecodeRange(dst[lo-from:hi-from], data, int(lo-start))
}

// Chunks appends the numbers of the chunks in which the group may hold slots of [from, past) of
// a series to dst, in no order and some more than once. Read writes in no other chunks. own is
// false if the column is not that of the series any more.
func (g *Group) Chunks(col int, id metric.SeriesID, from, past int64, dst []int64) (numbers []int64,
	own bool) {
	g.mu.RLock()
	defer g.mu.RUnlock()
	if !g.Columns().owns(id, col) {
		return dst, false
	}
	for _, b := range g.unflushed.batches() {
		dst = b.appendChunks(dst, col, g.blocks.height, from, past)
	}
	return g.blocks.appendChunks(dst, from, past), true
}

// SeriesPresence is a series and its column, and whether Holds found a point of it.
type SeriesPresence struct {
	ID  metric.SeriesID
	Col int
	Has bool
}

// Holds sets Has of each series of which the group certainly holds a value in the slots [from,
// past). It looks at whole sealed blocks and at open ones, the newest slot first, and decodes
// nothing.
func (g *Group) Holds(list []SeriesPresence, from, past int64) {
	g.mu.RLock()
	defer g.mu.RUnlock()
	owners := g.Columns()
	g.fetchHeld(owners, list, from, past)
	for i := range list {
		h := &list[i]
		h.Has = owners.owns(h.ID, h.Col) && g.holds(h.Col, from, past)
	}
}

// fetchHeld asks for what Holds reads first of each series: whose column it is, and the newest
// cell.
func (g *Group) fetchHeld(owners *Columns, list []SeriesPresence, from, past int64) {
	var b *block
	row := 0
	if len(g.blocks.open) > 0 {
		b = g.blocks.open[0]
		slot := min(past, b.last+1) - 1
		if row = int(slot - b.start); slot < max(from, b.first) {
			b = nil
		}
	}
	for i := range list {
		col := list[i].Col
		if uint(col) < uint(len(owners.ids)) {
			kernel.FetchOf(&owners.ids[col])
		}
		if b != nil {
			b.fetch(row, col)
		}
	}
}

func (g *Group) holds(col int, from, past int64) bool {
	for _, b := range g.blocks.open {
		lo, hi := max(from, b.first), min(past, b.last+1)
		for slot := hi - 1; slot >= lo; slot-- {
			if b.cell(int(slot-b.start), col) > point.Stale {
				return true
			}
		}
	}
	for _, batch := range g.unflushed.batches() {
		for _, t := range batch.sealedBlocks {
			if t.start >= from && t.start+g.blocks.height <= past && chunk.HasValues(t.piece(col)) {
				return true
			}
		}
	}
	return false
}

// Extent returns the range [first, past) within [from, until) outside of which Read writes
// nothing. It is empty if they are equal. own is false if the column is not that of the series
// any more.
func (g *Group) Extent(col int, id metric.SeriesID, from, until int64) (first, past int64,
	own bool) {
	var some [8]int64
	numbers, own := g.Chunks(col, id, from, until, some[:0])
	if len(numbers) == 0 {
		return from, from, own
	}
	return max(from, slices.Min(numbers)*chunk.Slots), min(until, (slices.Max(numbers)+1)*chunk.Slots),
		own
}

// appendChunks appends the chunks that the slots [lo, hi) and [from, past) have
// in common.
func appendChunks(dst []int64, lo, hi, from, past int64) []int64 {
	lo, hi = max(lo, from), min(hi, past)
	if lo >= hi {
		return dst
	}
	for n := lo / chunk.Slots; n <= (hi-1)/chunk.Slots; n++ {
		dst = append(dst, n)
	}
	return dst
}
