package replica

import (
	"encoding/binary"
	"time"

	"github.com/zeebo/xxh3"

	"dalmatiner/internal/metric"
)

// copiedFor is for how long a slot that a copy filled is remembered. A batch and its repetitions are over by then.
const copiedFor = 10 * time.Second

// copied remembers which slots were unset until a copy from another node filled them, by a comparison or a hint.
// Where the write itself comes behind it, its point is no duplicate: it is received once. Where there is no room the
// oldest of the slots that lie in the same place is forgotten.
type copied struct {
	table [][copiedWays]copiedSlot // none, or 1<<copiedBits
}

const (
	copiedBits = 14
	copiedWays = 8
)

// copiedSlot is a slot of a series in one of its lives, by a hash; 0 is none.
type copiedSlot struct {
	place uint64
	at    int64 // ms
}

// placeOf returns the hash of a slot.
func placeOf(id metric.SeriesID, incarnation uint64, slot int64) uint64 {
	var b [len(id) + 16]byte
	copy(b[:], id[:])
	binary.LittleEndian.PutUint64(b[len(id):], incarnation)
	binary.LittleEndian.PutUint64(b[len(id)+8:], uint64(slot))
	return xxh3.Hash(b[:]) | 1
}

// add notes that a copy has filled a slot.
func (c *copied) add(place uint64, now time.Time) {
	if c.table == nil {
		c.table = make([][copiedWays]copiedSlot, 1<<copiedBits)
	}
	ways, oldest := &c.table[place>>(64-copiedBits)], 0
	for i := range ways {
		if ways[i].place == place {
			oldest = i
			break
		}
		if ways[i].at < ways[oldest].at {
			oldest = i
		}
	}
	ways[oldest] = copiedSlot{place, now.UnixMilli()}
}

// take reports whether a copy has filled a slot lately, and forgets it.
func (c *copied) take(place uint64, now time.Time) bool {
	if c.table == nil {
		return false
	}
	ways := &c.table[place>>(64-copiedBits)]
	for i := range ways {
		if ways[i].place == place {
			lately := now.UnixMilli()-ways[i].at < copiedFor.Milliseconds()
			ways[i] = copiedSlot{}
			return lately
		}
	}
	return false
}

// clear forgets everything: what is there may come anew.
func (c *copied) clear() { clear(c.table) }
