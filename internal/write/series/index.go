package series

import (
	"encoding/binary"
	"sync"

	"dalmatiner/internal/codec/kernel"
	"dalmatiner/internal/model/metric"
)

// indexShards divides the index so that growing a table stops one 64th of the
// look-ups for the time of its copy.
const indexShards = 64

// Index finds a series by its id: open addressing over 20-byte entries
// without a pointer, which the collector does not scan.
type Index struct {
	shards [indexShards]indexShard
}

type indexShard struct {
	mu      sync.RWMutex
	entries []indexEntry // a power of two of them
	used    int          // with tombstones
}

type indexEntry struct {
	id    metric.SeriesID
	state uint32 // 0 never used, 1 removed, else ref+2
}

// indexEntrySize is the size of an indexEntry.
const indexEntrySize = 20

const (
	entryFree    = 0
	entryRemoved = 1
	entryFirst   = 2
)

func (x *Index) shard(id *metric.SeriesID) *indexShard { return &x.shards[id[15]%indexShards] }

// first returns where the probe of id begins.
func (t *indexShard) first(id *metric.SeriesID) int {
	return int(binary.LittleEndian.Uint64(id[:8])) & (len(t.entries) - 1)
}

// slot returns the place of id in the table: where it is, or the free entry
// that ends its probe.
func (t *indexShard) slot(id *metric.SeriesID) int {
	mask := len(t.entries) - 1
	i := t.first(id)
	for t.entries[i].state != entryFree &&
		(t.entries[i].state == entryRemoved || t.entries[i].id != *id) {
		i = (i + 1) & mask
	}
	return i
}

func (x *Index) Lookup(id metric.SeriesID) (Ref, bool) {
	t := x.shard(&id)
	t.mu.RLock()
	defer t.mu.RUnlock()
	if len(t.entries) == 0 {
		return 0, false
	}
	if e := &t.entries[t.slot(&id)]; e.state >= entryFirst {
		return Ref(e.state - entryFirst), true
	}
	return 0, false
}

// LookupAll puts the places of many series into refs, NoColumn for one that has none
// or is not known. It goes from shard to shard, and asks for all entries of a shard
// before it reads the first: one look-up after the other would wait for memory each
// time. order is room for a number of each series.
func (x *Index) LookupAll(ids []metric.SeriesID, refs []Ref, order []uint16) {
	var ends [indexShards]uint16
	for i := range ids {
		ends[ids[i][15]%indexShards]++
	}
	at := uint16(0)
	for i, n := range ends {
		ends[i] = at
		at += n
	}
	for i := range ids {
		end := &ends[ids[i][15]%indexShards]
		order[*end] = uint16(i)
		*end++
	}
	from := uint16(0)
	for i, end := range ends {
		if from < end {
			x.shards[i].lookupAll(ids, refs, order[from:end])
		}
		from = end
	}
}

// probed is how many entries of a probe are asked for: two lines of the cache.
const probed = 4

// lookupAll is that of the index for the ids with the given numbers, which are all of
// this shard.
func (t *indexShard) lookupAll(ids []metric.SeriesID, refs []Ref, numbers []uint16) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	for _, i := range numbers {
		refs[i] = NoColumn
		if len(t.entries) > 0 {
			first := t.first(&ids[i])
			kernel.FetchAll(t.entries[first:min(first+probed, len(t.entries))])
		}
	}
	if len(t.entries) == 0 {
		return
	}
	for _, i := range numbers {
		if e := &t.entries[t.slot(&ids[i])]; e.state >= entryFirst {
			if ref := Ref(e.state - entryFirst); !ref.Inactive() {
				refs[i] = ref
			}
		}
	}
}

func (x *Index) Has(id metric.SeriesID) bool {
	_, ok := x.Lookup(id)
	return ok
}

// Define says where a series is now.
func (x *Index) Define(id metric.SeriesID, ref Ref) {
	t := x.shard(&id)
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.used*4 >= len(t.entries)*3 {
		t.grow()
	}
	e := &t.entries[t.slot(&id)]
	if e.state == entryFree {
		t.used++
	}
	*e = indexEntry{id: id, state: uint32(ref) + entryFirst}
}

// Growth returns by how many bytes the index grows for a new series.
func (x *Index) Growth(id *metric.SeriesID) int64 {
	t := x.shard(id)
	t.mu.RLock()
	defer t.mu.RUnlock()
	if t.used*4 < len(t.entries)*3 {
		return 0
	}
	_, size := t.grownSize()
	return max(0, int64(size-len(t.entries))) * indexEntrySize
}

// grownSize returns how many entries are in use, and the size of the table that it
// would grow to.
func (t *indexShard) grownSize() (live, size int) {
	for i := range t.entries {
		if t.entries[i].state >= entryFirst {
			live++
		}
	}
	size = 16
	for size*3 < live*4*2 {
		size *= 2
	}
	return live, size
}

func (t *indexShard) grow() {
	old := t.entries
	live, size := t.grownSize()
	t.entries = make([]indexEntry, size)
	t.used = live
	for i := range old {
		if old[i].state >= entryFirst {
			t.entries[t.slot(&old[i].id)] = old[i]
		}
	}
}

func (x *Index) Delete(id metric.SeriesID) {
	t := x.shard(&id)
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.entries) == 0 {
		return
	}
	if e := &t.entries[t.slot(&id)]; e.state >= entryFirst {
		e.state = entryRemoved
	}
}

// Bytes returns the memory of the index.
func (x *Index) Bytes() (n int64) {
	for i := range x.shards {
		t := &x.shards[i]
		t.mu.RLock()
		n += int64(len(t.entries)) * indexEntrySize
		t.mu.RUnlock()
	}
	return n
}
