package sumtree

import (
	"dalmatiner/internal/codec/chunk"
	"dalmatiner/internal/codec/floatsum"
	"dalmatiner/internal/codec/kernel"
	"dalmatiner/internal/codec/point"
)

// Total adds up slots that come in order as words: what Tree gives for the same range, bit
// for bit, without the other aggregates. Unset slots and NaN add nothing. It takes the words
// in pieces, cut anywhere. The zero value is empty.
type Total struct {
	// Means has the total know the mean, which takes a little longer.
	Means bool

	// Count is the number of numbers so far.
	Count int64

	whole chunk.Sum // the integer part
	lane  floatsum.Sum
	lanes int64                      // number of the lane that is open
	nodes [totalRollups]floatsum.Sum // of the chunk that is open, and those it is in

	// With Means.
	low, high float64
	scaled    float64 // sum of the numbers times MeanScale, where theirs is beyond the doubles
}

const (
	ofChunk = iota
	ofUnit
	ofLarge
	ofRange
	totalRollups
)

// MeanScale keeps the sum of 2^64 doubles finite.
const MeanScale = 0x1p-64

// Mean returns the mean of n numbers by their sum, their least and their greatest one, between
// which it lies. It is finite where they are: where the sum is beyond the doubles, it is by the sum
// of the numbers times MeanScale. NaN without a number, and with infinities of both signs.
func Mean(sum, scaled float64, n int64, low, high float64) float64 {
	mean := sum / float64(n)
	if mean-mean != 0 { // not finite
		mean = scaled / float64(n) / MeanScale
	}
	switch {
	case mean < low:
		return low
	case mean > high:
		return high
	}
	return mean
}

// Add takes the words of the slots from from on. They lie behind all that came before; none
// below 0 is set.
func (t *Total) Add(words []uint64, from int64) {
	for i := 0; i < len(words); {
		if words[i]>>56 == 0 {
			i++
			continue
		}
		slot := from + int64(i)
		i += t.run(words[i:min(len(words), i+chunk.Lane-int(slot%chunk.Lane))], slot)
	}
}

// run takes words of one lane up to the first of another kind, and returns how many these
// are. The first one is set.
func (t *Total) run(words []uint64, slot int64) int {
	t.enter(slot / chunk.Lane)
	if point.KindOf(words[0]) == point.KindFloat {
		return t.floats(words)
	}
	if e := kernel.Measure(words); e.Ints() {
		t.AddInts(&e, len(words))
		return len(words)
	}
	n := 0
	for n < len(words) && point.KindOf(words[n]) == point.KindInt {
		n++
	}
	e := kernel.Measure(words[:n])
	t.AddInts(&e, n)
	return n
}

// AddInts takes n words, all of them integers, by what was measured of them. Their sum has no
// order, so they may lie in several lanes.
func (t *Total) AddInts(e *kernel.Extent, n int) {
	t.whole.AddInt(e.Sum)
	t.extend(float64(e.Least), float64(e.Most))
	t.scaled += float64(e.Sum) * MeanScale
	t.Count += int64(n)
}

func (t *Total) floats(words []uint64) (n int) {
	lane := t.lane
	for n < len(words) && point.KindOf(words[n]) == point.KindFloat {
		v := point.Double(words[n])
		n++
		if v != v {
			continue
		}
		lane.Add(v)
		if t.Means {
			t.extend(v, v)
			t.scaled += v * MeanScale
		}
		t.Count++
	}
	t.lane = lane
	return n
}

// extend takes in the extremes of numbers that are about to be counted.
func (t *Total) extend(low, high float64) {
	if t.Count == 0 {
		t.low, t.high = low, high
		return
	}
	t.low, t.high = min(t.low, low), max(t.high, high)
}

// enter goes to a lane: it ends the one that is open, and the chunk and the units of chunks
// that the new one is not in.
func (t *Total) enter(lane int64) {
	if lane == t.lanes {
		return
	}
	const perChunk = chunk.Slots / chunk.Lane
	before, number := t.lanes/perChunk, lane/perChunk
	t.nodes[ofChunk].Add(t.lane.Value())
	t.lane, t.lanes = floatsum.Sum{}, lane
	if before == number {
		return
	}
	t.put(ofChunk)
	if before/unitChunks != number/unitChunks {
		t.put(ofUnit)
	}
	if before/largeChunks != number/largeChunks {
		t.put(ofLarge)
	}
}

// put adds a node to the one that it is in, and empties it.
func (t *Total) put(node int) {
	t.nodes[node+1].Add(t.nodes[node].Value())
	t.nodes[node] = floatsum.Sum{}
}

// Sum returns the sum of what came.
func (t *Total) Sum() chunk.Sum {
	sum, last := t.whole, t.lane.Value()
	for _, node := range t.nodes {
		node.Add(last)
		last = node.Value()
	}
	sum.Float = last
	return sum
}

// Mean returns the sum ÷ the count: between the least and the greatest number, and finite where
// these are. NaN without a number, and with infinities of both signs.
func (t *Total) Mean() float64 {
	return Mean(t.Sum().Float64(), t.scaled, t.Count, t.low, t.high)
}

// Reset empties t.
func (t *Total) Reset() { *t = Total{Means: t.Means} }
