package labels

import (
	"encoding/binary"
	"sync"
	"sync/atomic"

	"dalmatiner/internal/host/memory"
	"dalmatiner/internal/model/metric"
)

// known is which series have their tags, as far as it is remembered: up to 2^20 series, 16 bytes
// each. A series that is not remembered is looked up again where the tags are.
type known struct {
	shards [knownShards]knownShard
	bytes  atomic.Int64
}

const (
	knownShards = 16
	knownFirst  = 64      // slots of a shard at first
	knownMost   = 1 << 16 // slots of a shard
	knownWays   = 4       // slots that an id may be in
	idBytes     = len(metric.SeriesID{})
)

type knownShard struct {
	mu     sync.Mutex
	losses uint64 // what is remembered holds as long as there were no more
	ids    []metric.SeriesID
	n      int // slots in use
}

// pool is the memory of what is known, under the name of a listener.
func (k *known) pool(listener string) memory.Pool {
	return memory.Pool{
		Name:  listener + "-tags",
		Holds: "which tagged series are known; at most 16 MiB",
		Use:   k.bytes.Load,
	}
}

func (k *known) shard(id metric.SeriesID) *knownShard { return &k.shards[id[0]%knownShards] }

// slots returns the slots that an id may be in.
func (s *knownShard) slots(id metric.SeriesID) []metric.SeriesID {
	at := int(binary.LittleEndian.Uint32(id[4:])) & (len(s.ids) - 1) &^ (knownWays - 1)
	return s.ids[at : at+knownWays]
}

// has reports whether a series is known to have its tags, where there were so many losses.
func (k *known) has(id metric.SeriesID, losses uint64) bool {
	s := k.shard(id)
	s.mu.Lock()
	defer s.mu.Unlock()
	if losses > s.losses { // what is known may hold no more
		clear(s.ids)
		s.losses, s.n = losses, 0
	}
	if losses < s.losses || s.n == 0 {
		return false
	}
	for _, other := range s.slots(id) {
		if other == id {
			return true
		}
	}
	return false
}

// add notes that a series has its tags. It may take the place of another one.
func (k *known) add(id metric.SeriesID, losses uint64) {
	s := k.shard(id)
	s.mu.Lock()
	defer s.mu.Unlock()
	if losses != s.losses {
		return
	}
	if 2*s.n >= len(s.ids) && len(s.ids) < knownMost {
		old := s.ids
		s.ids, s.n = make([]metric.SeriesID, max(knownFirst, 2*len(old))), 0
		k.bytes.Add(int64(idBytes * (len(s.ids) - len(old))))
		for _, id := range old {
			if id != (metric.SeriesID{}) {
				s.put(id)
			}
		}
	}
	s.put(id)
}

func (s *knownShard) put(id metric.SeriesID) {
	slots := s.slots(id)
	for i, other := range slots {
		if other == (metric.SeriesID{}) {
			slots[i] = id
			s.n++
			return
		}
	}
	slots[id[1]%knownWays] = id
}

// remove forgets a series.
func (k *known) remove(id metric.SeriesID) {
	s := k.shard(id)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.n == 0 {
		return
	}
	slots := s.slots(id)
	for i, other := range slots {
		if other == id {
			slots[i] = metric.SeriesID{}
			s.n--
		}
	}
}
