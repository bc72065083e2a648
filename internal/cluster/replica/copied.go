package replica

import (
	"encoding/binary"
	"time"

	"github.com/zeebo/xxh3"

	"dalmatiner/internal/codec/chunk"
	"dalmatiner/internal/codec/point"
	"dalmatiner/internal/model/metric"
)

// copiedFor is for how long a slot that a copy filled is remembered at least, and at most twice as
// long. A batch and its repetitions are over by then.
const copiedFor = 10 * time.Second

// maxCopied bounds the chunks of a generation, each of 64 to 160 bytes. Beyond it the generation
// before is forgotten early.
const maxCopied = 1 << 16

// copyMemory remembers which slots were unset until a copy from another node filled them, by a
// comparison or a hint. Where the write itself comes behind it, its point is no duplicate: it is
// received once.
type copyMemory struct {
	newer, older generation
	number       int64 // of the newer generation: each begins with a multiple of copiedFor
}

// generation has slots by the chunk that they are in: see placeOf.
type generation map[uint64]*copiedSlots

// copiedSlots has a bit for each slot of a chunk.
type copiedSlots [(chunk.Slots + 63) / 64]uint64

// placeOf returns the hash of the chunk that a slot of a series is in, in one of its lives, and the
// place in the chunk.
func placeOf(id metric.SeriesID, incarnation uint64, slot int64) (of uint64, at int) {
	var b [len(id) + 16]byte
	copy(b[:], id[:])
	binary.LittleEndian.PutUint64(b[len(id):], incarnation)
	binary.LittleEndian.PutUint64(b[len(id)+8:], uint64(slot/chunk.Slots))
	return xxh3.Hash(b[:]), int(slot % chunk.Slots)
}

// turn begins another generation where it is time.
func (c *copyMemory) turn(now time.Time) {
	number := now.UnixMilli() / copiedFor.Milliseconds()
	switch {
	case number == c.number:
		return
	case number == c.number+1:
		c.older = c.newer
	default:
		c.older = nil
	}
	c.newer, c.number = nil, number
}

// slots returns those of a chunk in the newer generation, to be added to.
func (c *copyMemory) slots(of uint64, now time.Time) *copiedSlots {
	c.turn(now)
	s := c.newer[of]
	if s == nil {
		if len(c.newer) == maxCopied {
			c.older, c.newer = c.newer, nil
		}
		if c.newer == nil {
			c.newer = make(generation)
		}
		s = new(copiedSlots)
		c.newer[of] = s
	}
	return s
}

// add notes that a copy has filled a slot.
func (c *copyMemory) add(of uint64, at int, now time.Time) {
	c.slots(of, now)[at/64] |= 1 << (at % 64)
}

// addChunk is add for the slots of a chunk that words set, of which there is one for each slot.
func (c *copyMemory) addChunk(of uint64, words []uint64, now time.Time) {
	s := c.slots(of, now)
	for at, w := range words {
		if w != point.Unset {
			s[at/64] |= 1 << (at % 64)
		}
	}
}

// take reports whether a copy has filled a slot lately, and forgets it.
func (c *copyMemory) take(of uint64, at int, now time.Time) bool {
	c.turn(now)
	bit, found := uint64(1)<<(at%64), false
	for _, g := range []generation{c.newer, c.older} {
		if s := g[of]; s != nil && s[at/64]&bit != 0 {
			s[at/64] &^= bit
			found = true
		}
	}
	return found
}

// clear forgets everything: what is there may come anew.
func (c *copyMemory) clear() { c.newer, c.older = nil, nil }
