// Package sumtree adds up ranges of slots in one fixed order, so that a float sum has
// the same bits wherever the range begins and whatever holds its points.
//
// The order is described in DESIGN.md of package chunk, "One tree for every range".
// Tree takes aggregates and words and gives all aggregates of a range, Total takes
// words and gives the sum of the numbers alone.
package sumtree

import "dalmatiner/internal/codec/chunk"

// Tree adds up aggregates of a range of slots that come in order. Integers and
// extremes do not depend on how they are grouped, float sums do; they follow one
// tree that stands at the numbers of the chunks, wherever the range begins and
// whatever holds the data:
//
//	60 slots of a lane ─► a chunk ─► 10 chunks ─► 120 chunks ─► the range
//
// Each node is the sum of its children in their order, as chunk.Node joins
// them, and of each counts what lies in the range. So the aggregates that are
// stored of a chunk, of 10 and of 120 chunks are nodes of it.
//
// The zero value is empty.
type Tree struct {
	all, large, unit chunk.Node
	number           int64 // of the chunk that came last
}

// The chunks of the nodes above a chunk. Numbers count from multiples of them.
const (
	unitChunks  = 10
	largeChunks = chunk.MaxRollup / chunk.Slots
)

// Add takes the aggregates of the chunk number, or of a part of it, of all
// unitChunks or of all largeChunks from number on; chunks says of how many. Slot 0
// of the range lies at slots before the slot 0 that h counts from. h lies behind
// all that came before, and has a set slot.
func (t *Tree) Add(h *chunk.Header, number, chunks int64, at int) {
	if number/unitChunks != t.number/unitChunks {
		t.endUnit()
		if number/largeChunks != t.number/largeChunks {
			t.endLarge()
		}
	}
	t.number = number
	switch chunks {
	case largeChunks:
		t.all.Append(h, at)
	case unitChunks:
		t.large.Append(h, at)
	default:
		t.unit.Append(h, at)
	}
}

// Words takes the words of slots of the chunk number, off being the first of
// them. Slot 0 of the range lies at slots before slot 0 of the chunk. Of a chunk
// all words that lie in the range come at once.
func (t *Tree) Words(words []uint64, off int, number int64, at int) {
	if h := chunk.Summarize(words, off); h.Count > 0 {
		t.Add(&h, number, 1, at)
	}
}

// End fills dst with the aggregates of what came, offsets counted from slot 0 of
// the range, and empties t. Without a set slot the Count is 0.
func (t *Tree) End(dst *chunk.Header) {
	t.endUnit()
	t.endLarge()
	*dst = t.all.Header()
	t.all, t.number = chunk.Node{}, 0
}

func (t *Tree) endUnit() {
	if t.unit.Count() > 0 {
		unit := t.unit.Header()
		t.large.Append(&unit, 0)
		t.unit = chunk.Node{}
	}
}

func (t *Tree) endLarge() {
	if t.large.Count() > 0 {
		large := t.large.Header()
		t.all.Append(&large, 0)
		t.large = chunk.Node{}
	}
}
