package store

import (
	"encoding/binary"
	"slices"
	"sync"

	"dalmatiner/internal/head"
	"dalmatiner/internal/kernel"
	"dalmatiner/internal/metric"
)

// seriesRef is where a series lives: group id in 23 bits, column in the lower 8;
// or, with the top bit set, its number among the names of its bucket that have no
// column.
type seriesRef uint32

// maxGroups is the number of groups a node can have: 23 bits, some two billion
// series at a time.
const maxGroups = 1<<23 - 1

// nowhere is the place of a series that had no column when it was forgotten.
const nowhere = seriesRef(maxGroups << 8)

const parkedBit = seriesRef(1 << 31)

// noColumn is no place, and no column's.
const noColumn = ^seriesRef(0)

func makeRef(group uint32, col int) seriesRef { return seriesRef(group<<8 | uint32(col)) }
func parkedRef(number uint32) seriesRef       { return parkedBit | seriesRef(number) }
func (r seriesRef) parked() bool              { return r&parkedBit != 0 }
func (r seriesRef) number() uint32            { return uint32(r &^ parkedBit) }
func (r seriesRef) group() uint32             { return uint32(r) >> 8 }
func (r seriesRef) column() int               { return int(r & 0xff) }

// indexShards divides the index so that growing a table stops one 64th of the
// look-ups for the time of its copy.
const indexShards = 64

// seriesIndex finds a series by its id: open addressing over 20-byte entries
// without a pointer, which the collector does not scan.
type seriesIndex struct {
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

func (x *seriesIndex) shard(id *metric.SeriesID) *indexShard { return &x.shards[id[15]%indexShards] }

// first returns where the probe of id begins.
func (t *indexShard) first(id *metric.SeriesID) int {
	return int(binary.LittleEndian.Uint64(id[:8])) & (len(t.entries) - 1)
}

// slot returns the place of id in the table: where it is, or the free entry
// that ends its probe.
func (t *indexShard) slot(id *metric.SeriesID) int {
	mask := len(t.entries) - 1
	i := t.first(id)
	for t.entries[i].state != entryFree && (t.entries[i].state == entryRemoved || t.entries[i].id != *id) {
		i = (i + 1) & mask
	}
	return i
}

func (x *seriesIndex) get(id metric.SeriesID) (seriesRef, bool) {
	t := x.shard(&id)
	t.mu.RLock()
	defer t.mu.RUnlock()
	if len(t.entries) == 0 {
		return 0, false
	}
	if e := &t.entries[t.slot(&id)]; e.state >= entryFirst {
		return seriesRef(e.state - entryFirst), true
	}
	return 0, false
}

// lookUp puts the places of many series into refs, noColumn for one that has none
// or is not known. It goes from shard to shard, and asks for all entries of a shard
// before it reads the first: one look-up after the other would wait for memory each
// time. order is room for a number of each series.
func (x *seriesIndex) lookUp(ids []metric.SeriesID, refs []seriesRef, order []uint16) {
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
			x.shards[i].lookUp(ids, refs, order[from:end])
		}
		from = end
	}
}

// lookUp is that of the index for the ids with the given numbers, which are all of
// this shard.
func (t *indexShard) lookUp(ids []metric.SeriesID, refs []seriesRef, numbers []uint16) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	for _, i := range numbers {
		refs[i] = noColumn
		if len(t.entries) > 0 {
			kernel.FetchOf(&t.entries[t.first(&ids[i])])
		}
	}
	if len(t.entries) == 0 {
		return
	}
	for _, i := range numbers {
		if e := &t.entries[t.slot(&ids[i])]; e.state >= entryFirst {
			if ref := seriesRef(e.state - entryFirst); !ref.parked() {
				refs[i] = ref
			}
		}
	}
}

func (x *seriesIndex) has(id metric.SeriesID) bool {
	_, ok := x.get(id)
	return ok
}

// set says where a series is now.
func (x *seriesIndex) set(id metric.SeriesID, ref seriesRef) {
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

// growth returns by how many bytes the index grows for a new series.
func (x *seriesIndex) growth(id *metric.SeriesID) int64 {
	t := x.shard(id)
	t.mu.RLock()
	defer t.mu.RUnlock()
	if t.used*4 < len(t.entries)*3 {
		return 0
	}
	_, size := t.grown()
	return max(0, int64(size-len(t.entries))) * indexEntrySize
}

// grown returns how many entries are in use, and the size of the table that it
// would grow to.
func (t *indexShard) grown() (live, size int) {
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
	live, size := t.grown()
	t.entries = make([]indexEntry, size)
	t.used = live
	for i := range old {
		if old[i].state >= entryFirst {
			t.entries[t.slot(&old[i].id)] = old[i]
		}
	}
}

func (x *seriesIndex) remove(id metric.SeriesID) {
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

// bytes returns the memory of the index.
func (x *seriesIndex) bytes() (n int64) {
	for i := range x.shards {
		t := &x.shards[i]
		t.mu.RLock()
		n += int64(len(t.entries)) * indexEntrySize
		t.mu.RUnlock()
	}
	return n
}

// groupTable finds a group by its id.
type groupTable struct {
	mu     sync.RWMutex
	list   []*head.Group // by id; nil where there is none
	nextID uint32
}

func (t *groupTable) get(id uint32) *head.Group {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if int(id) < len(t.list) {
		return t.list[id]
	}
	return nil
}

// column returns where the head has a series, no group where it holds nothing of it.
func (t *groupTable) column(ref seriesRef) (g *head.Group, col int) {
	if ref.parked() {
		return nil, 0
	}
	return t.get(ref.group()), ref.column()
}

// put adds a group under its id.
func (t *groupTable) put(g *head.Group) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if need := int(g.ID) + 1 - len(t.list); need > 0 {
		t.list = append(t.list, make([]*head.Group, need)...)
	}
	t.list[g.ID] = g
	t.nextID = max(t.nextID, g.ID+1)
}

func (t *groupTable) remove(id uint32) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if int(id) < len(t.list) {
		t.list[id] = nil
	}
}

// reserve returns an id that no group has or had.
func (t *groupTable) reserve() (uint32, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.nextID >= maxGroups {
		return 0, false
	}
	t.nextID++
	return t.nextID - 1, true
}

// all returns the groups in the order of their ids.
func (t *groupTable) all() []*head.Group {
	t.mu.RLock()
	defer t.mu.RUnlock()
	out := slices.Clone(t.list)
	return slices.DeleteFunc(out, func(g *head.Group) bool { return g == nil })
}
