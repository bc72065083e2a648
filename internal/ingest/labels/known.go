package labels

import (
	"encoding/binary"
	"sync"
	"sync/atomic"

	"dalmatiner/internal/host/memory"
	"dalmatiner/internal/model/metric"
)

// known is which series have their tags, as far as it is remembered: up to 2^20 series, in the
// order in which they came first. Senders repeat themselves, so the next series is most often the
// one behind the last, whose memory the processor has fetched by then; a look-up by hash would wait
// for it. A series that is not remembered is looked up again where the tags are.
//
// Readers take no lock: what a list has is never changed, and a list that no longer holds is
// replaced.
type known struct {
	list  atomic.Pointer[knownList]
	bytes atomic.Int64

	mu     sync.Mutex // of those that add
	missed int        // series that a full list had no room for
}

const (
	knownMost  = 1 << 20 // series of a list
	knownBlock = 1 << 12 // series whose memory is taken at once
	knownFirst = 1 << 8  // slots of the first index
	idBytes    = len(metric.SeriesID{})
)

type knownList struct {
	losses uint64 // what is remembered holds as long as there were no more
	n      atomic.Uint32
	blocks [knownMost / knownBlock]atomic.Pointer[[knownBlock]metric.SeriesID]
	// the position of a series, from 1: in the slot of its hash or behind it. Half of them at least
	// are 0. A reader of an index that was replaced meanwhile misses what is new.
	index atomic.Pointer[[]atomic.Uint32]
}

// pool is the memory of what is known, under the name of a listener.
func (k *known) pool(listener string) memory.Pool {
	return memory.Pool{
		Name:  listener + "-tags",
		Holds: "which tagged series are known; at most 24 MiB",
		Use:   k.bytes.Load,
	}
}

func (l *knownList) at(i uint32) *metric.SeriesID {
	return &l.blocks[i/knownBlock].Load()[i%knownBlock]
}

// find returns the position of a series, and the slot of the index where it stands or may stand.
func (l *knownList) find(id metric.SeriesID) (i uint32, slot *atomic.Uint32, ok bool) {
	index := *l.index.Load()
	for h := binary.LittleEndian.Uint32(id[4:]); ; h++ {
		slot = &index[int(h)&(len(index)-1)]
		n := slot.Load()
		if n == 0 {
			return 0, slot, false
		}
		if *l.at(n - 1) == id {
			return n - 1, slot, true
		}
	}
}

// has reports whether a series is known to have its tags, where there were so many losses. next is
// where it is looked for first; it becomes the position behind it.
func (k *known) has(id metric.SeriesID, losses uint64, next *uint32) bool {
	l := k.list.Load()
	if l == nil || l.losses != losses {
		return false
	}
	i := *next
	if i >= l.n.Load() || *l.at(i) != id {
		var ok bool
		if i, _, ok = l.find(id); !ok {
			return false
		}
	}
	*next = i + 1
	return true
}

// add notes that series have their tags, where there were so many losses.
func (k *known) add(ids []metric.SeriesID, losses uint64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	l := k.list.Load()
	if l != nil && losses < l.losses {
		return
	}
	if l == nil || losses > l.losses {
		l = k.begin(losses)
	}
	for _, id := range ids {
		if l.n.Load() == knownMost {
			if k.missed++; k.missed < knownMost {
				continue // as long as others are known, that is better than none
			}
			l = k.begin(losses)
		}
		k.put(l, id)
	}
}

// begin replaces the list by an empty one.
func (k *known) begin(losses uint64) *knownList {
	l := &knownList{losses: losses}
	index := make([]atomic.Uint32, knownFirst)
	l.index.Store(&index)
	k.bytes.Store(int64(4 * len(index)))
	k.missed = 0
	k.list.Store(l)
	return l
}

// put adds a series to a list that has room.
func (k *known) put(l *knownList, id metric.SeriesID) {
	_, slot, ok := l.find(id)
	if ok {
		return
	}
	n := l.n.Load()
	if block := &l.blocks[n/knownBlock]; block.Load() == nil {
		block.Store(new([knownBlock]metric.SeriesID))
		k.bytes.Add(int64(knownBlock * idBytes))
	}
	*l.at(n) = id
	l.n.Store(n + 1)
	slot.Store(n + 1)
	if index := *l.index.Load(); 2*int(n+1) > len(index) {
		l.grow(2 * len(index))
		k.bytes.Add(int64(4 * len(index)))
	}
}

// grow replaces the index by one with so many slots.
func (l *knownList) grow(slots int) {
	index := make([]atomic.Uint32, slots)
	for i := range l.n.Load() {
		h := binary.LittleEndian.Uint32(l.at(i)[4:])
		for index[int(h)&(slots-1)].Load() != 0 {
			h++
		}
		index[int(h)&(slots-1)].Store(i + 1)
	}
	l.index.Store(&index)
}
