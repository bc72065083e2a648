package sumtree

import (
	"dalmatiner/internal/chunk"
	"dalmatiner/internal/kernel"
	"dalmatiner/internal/point"
)

// Total adds up slots that come in order as words, gaps filled: what Tree gives for
// the same range, bit for bit, without the other aggregates. It takes the words in
// pieces, cut anywhere. The zero value is empty.
type Total struct {
	// Numbers leaves NaN out: it counts as 0, as do the gaps behind it.
	Numbers bool

	// Count is the number of set slots so far.
	Count int64

	first, last int64     // set slots
	word        uint64    // of the last
	whole       chunk.Sum // the integer part
	lane        float64
	lanes       int64              // number of the lane that is open
	nodes       [totalRollups]node // of the chunk that is open, and those it is in
}

const (
	ofChunk = iota
	ofUnit
	ofLarge
	ofRange
	totalRollups
)

// node is the float part of a node of the tree.
type node struct {
	sum  float64
	gap  float64 // of the slots between the node before it and its first set slot
	open bool
}

// put appends a child to its parent and empties it.
func (n *node) put(child *node) {
	switch {
	case !child.open:
		return
	case !n.open:
		*n = *child
	default:
		n.sum = n.sum + child.gap + child.sum
	}
	*child = node{}
}

// Add takes the words of the slots from from on. They lie behind all that came
// before; none below 0 is set.
func (t *Total) Add(words []uint64, from int64) {
	for i := 0; i < len(words); {
		if words[i] == point.Unset {
			i++
			continue
		}
		slot := from + int64(i)
		i += t.run(words[i:min(len(words), i+chunk.Lane-int(slot%chunk.Lane))], slot)
	}
}

// run takes words of one lane up to the first of another kind, and returns how many
// these are. The first one is set.
func (t *Total) run(words []uint64, slot int64) int {
	if t.Count == 0 {
		t.first, t.lanes = slot, slot/chunk.Lane
	} else if slot != t.last+1 || slot%chunk.Lane == 0 {
		t.carry(slot)
	}
	n := 0
	if point.KindOf(words[0]) == point.KindFloat {
		lane := t.lane
		for n < len(words) && point.KindOf(words[n]) == point.KindFloat {
			if v := point.Double(words[n]); v == v || !t.Numbers {
				lane += v
			}
			n++
		}
		t.lane = lane
	} else if e := kernel.Measure(words); e.Ints() {
		n = len(words)
		t.whole.AddInt(e.Sum)
	} else {
		whole := int64(0)
		for n < len(words) && point.KindOf(words[n]) == point.KindInt {
			whole += point.Int(words[n])
			n++
		}
		t.whole.AddInt(whole)
	}
	t.Count += int64(n)
	t.last, t.word = slot+int64(n)-1, t.counted(words[n-1])
	return n
}

// counted returns the word that stands for w in the sum.
func (t *Total) counted(w uint64) uint64 {
	if v := point.Float(w); t.Numbers && v != v {
		return point.FromFloat(0)
	}
	return w
}

// carry fills the gap up to a slot, and goes to its lane.
func (t *Total) carry(slot int64) {
	if number := slot / chunk.Slots; number != t.last/chunk.Slots {
		t.endChunk(number)
		gap := chunk.Repeat(t.word, int(slot-t.last-1))
		t.nodes[ofChunk].gap = gap.Float
		gap.Float = 0
		t.whole = t.whole.Plus(gap)
	} else if point.KindOf(t.word) == point.KindFloat {
		v := point.Float(t.word)
		for at := t.last + 1; at < slot; at++ {
			t.enter(at / chunk.Lane)
			t.lane += v
		}
	} else {
		t.whole = t.whole.Plus(chunk.Repeat(t.word, int(slot-t.last-1)))
	}
	t.enter(slot / chunk.Lane)
}

// enter goes to a lane of the chunk that is open.
func (t *Total) enter(lane int64) {
	if lane != t.lanes {
		t.nodes[ofChunk].sum += t.lane
		t.lane, t.lanes = 0, lane
	}
}

// endChunk ends the chunk that is open, and what the chunk number is not in.
func (t *Total) endChunk(number int64) {
	c := &t.nodes[ofChunk]
	c.sum, c.open = c.sum+t.lane, true
	t.lane, t.lanes = 0, number*(chunk.Slots/chunk.Lane)
	before := t.last / chunk.Slots
	t.nodes[ofUnit].put(c)
	if before/unitChunks != number/unitChunks {
		t.nodes[ofLarge].put(&t.nodes[ofUnit])
	}
	if before/largeChunks != number/largeChunks {
		t.nodes[ofRange].put(&t.nodes[ofLarge])
	}
}

// End returns the sum of the slots [from, past), which hold all that came, and the
// word that is carried on behind them, and empties t. The word carry is that of the
// slots up to the first one that is set; unset counts as 0.
func (t *Total) End(carry uint64, from, past int64) (sum chunk.Sum, last uint64) {
	carry = t.counted(carry)
	if t.Count == 0 {
		return chunk.Repeat(carry, int(past-from)), carry
	}
	sum, last = t.whole, t.word
	if t.first/chunk.Slots != t.last/chunk.Slots {
		t.endChunk(-largeChunks) // which is in none of the nodes
		sum.Float = t.nodes[ofRange].sum
		t.nodes[ofRange] = node{}
	} else { // most steps lie in one chunk
		sum.Float = t.nodes[ofChunk].sum + t.lane
		t.nodes[ofChunk].sum = 0
	}
	if rest := past - 1 - t.last; rest > 0 {
		sum = sum.Plus(chunk.Repeat(last, int(rest)))
	}
	if lead := t.first - from; lead > 0 {
		sum = chunk.Repeat(carry, int(lead)).Plus(sum)
	}
	t.Count, t.whole, t.lane = 0, chunk.Sum{}, 0
	return sum, last
}
