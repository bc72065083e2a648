package events

import (
	"bytes"
	"cmp"
	"maps"
	"slices"
	"sort"

	"dalmatiner/internal/disk/eventfile"
)

// Sizes of a table.
const (
	leafEvents = 256       // of a leaf at most: an insertion moves 10 KiB at most
	slabBytes  = 256 << 10 // of bodies
	largeBody  = 64 << 10  // from here on a body has a slab of its own
)

// key is the place of an event in the order of its bucket.
type key struct {
	time int64
	id   ID
}

func (k key) compare(o key) int {
	return cmp.Or(cmp.Compare(k.time, o.time), bytes.Compare(k.id[:], o.id[:]))
}

func keyOf(e *Event) key { return key{e.Time, e.ID} }

// entry is an event in memory, without pointers.
type entry struct {
	key
	slab, offset, length uint32
}

// entryBytes is the memory of an entry, in leaves that are three quarters full.
const entryBytes = 56

// table has events in memory in their order. It takes events until it is frozen for a flush. The
// lock is that of the store. What stands in slabs never changes.
type table struct {
	buckets map[uint64]*leaves
	slabs   [][]byte
	open    int // number of the slab that takes bodies, -1 for none
	bytes   int64
	events  int64
	lost    []eventfile.LostRange // for the next file
}

// leaves are the events of one bucket: lists of up to leafEvents, none of them empty.
type leaves struct {
	list   [][]entry
	events int64
}

func newTable() *table { return &table{buckets: make(map[uint64]*leaves), open: -1} }

func (t *table) empty() bool { return t.events == 0 && len(t.lost) == 0 }

// insert adds an event, of which it copies the body, unless the table has it: then it returns
// false.
func (t *table) insert(bucket uint64, e *Event) bool {
	l := t.buckets[bucket]
	if l == nil {
		l = &leaves{}
		t.buckets[bucket] = l
	}
	k := keyOf(e)
	leaf, at, found := l.find(k)
	if found {
		return false
	}
	slab, offset := t.put(e.Body)
	l.insert(leaf, at, entry{k, slab, offset, uint32(len(e.Body))})
	l.events++
	t.events++
	t.bytes += entryBytes + int64(len(e.Body))
	return true
}

// has reports whether the table has an event.
func (t *table) has(bucket uint64, k key) bool {
	l := t.buckets[bucket]
	if l == nil {
		return false
	}
	_, _, found := l.find(k)
	return found
}

// put copies a body into a slab.
func (t *table) put(body []byte) (slab, offset uint32) {
	if len(body) >= largeBody {
		t.slabs = append(t.slabs, slices.Clone(body))
		return uint32(len(t.slabs) - 1), 0
	}
	if t.open < 0 || len(t.slabs[t.open])+len(body) > slabBytes {
		t.open = len(t.slabs)
		t.slabs = append(t.slabs, make([]byte, 0, slabBytes))
	}
	s := &t.slabs[t.open]
	offset = uint32(len(*s))
	*s = append(*s, body...)
	return uint32(t.open), offset
}

// event returns an event whose body is part of a slab.
func (t *table) event(n *entry) Event {
	end := n.offset + n.length
	return Event{Time: n.time, ID: n.id, Body: t.slabs[n.slab][n.offset:end:end]}
}

// find returns where a key is, or where it belongs.
func (l *leaves) find(k key) (leaf, at int, found bool) {
	if n := len(l.list); n > 0 {
		if last := l.list[n-1]; last[len(last)-1].compare(k) < 0 {
			return n - 1, len(last), false // most events come in their order
		}
	}
	leaf = max(sort.Search(len(l.list), func(i int) bool { return l.list[i][0].compare(k) > 0 })-1, 0)
	if len(l.list) == 0 {
		return 0, 0, false
	}
	at, found = slices.BinarySearchFunc(l.list[leaf], k, func(n entry, k key) int {
		return n.compare(k)
	})
	return leaf, at, found
}

func (l *leaves) insert(leaf, at int, n entry) {
	if len(l.list) == 0 {
		l.list = [][]entry{{n}}
		return
	}
	to := l.list[leaf]
	switch {
	case len(to) < leafEvents:
		l.list[leaf] = slices.Insert(to, at, n)
	case leaf == len(l.list)-1 && at == len(to):
		l.list = append(l.list, append(make([]entry, 0, leafEvents), n))
	default: // in halves
		const half = leafEvents / 2
		right := append(make([]entry, 0, leafEvents), to[half:]...)
		l.list = slices.Insert(l.list, leaf+1, right)
		l.list[leaf] = to[:half]
		if at > half {
			leaf, at = leaf+1, at-half
		}
		l.list[leaf] = slices.Insert(l.list[leaf], at, n)
	}
}

// ids returns the buckets of tables in ascending order.
func ids(tables []*table) []uint64 {
	all := make(map[uint64]struct{})
	for _, t := range tables {
		for id := range t.buckets {
			all[id] = struct{}{}
		}
	}
	return slices.Sorted(maps.Keys(all))
}

// from returns up to limit events of a bucket from a key on, appended to list. Bodies are parts of
// slabs.
func (t *table) from(list []Event, bucket uint64, k key, limit int) []Event {
	l := t.buckets[bucket]
	if l == nil || len(l.list) == 0 {
		return list
	}
	leaf, at, _ := l.find(k)
	for ; leaf < len(l.list) && len(list) < limit; leaf, at = leaf+1, 0 {
		for _, n := range l.list[leaf][at:] {
			if list = append(list, t.event(&n)); len(list) == limit {
				break
			}
		}
	}
	return list
}

// before returns up to limit events of a bucket before a key, the last one first, appended to list.
func (t *table) before(list []Event, bucket uint64, k key, limit int) []Event {
	l := t.buckets[bucket]
	if l == nil || len(l.list) == 0 {
		return list
	}
	leaf, at, _ := l.find(k)
	for {
		for ; at > 0 && len(list) < limit; at-- {
			list = append(list, t.event(&l.list[leaf][at-1]))
		}
		if leaf--; leaf < 0 || len(list) == limit {
			return list
		}
		at = len(l.list[leaf])
	}
}

// count adds the events of a bucket to the counts of steps.
func (t *table) count(bucket uint64, s *Steps) {
	l := t.buckets[bucket]
	if l == nil {
		return
	}
	for _, leaf := range l.list {
		first, last := leaf[0].time, leaf[len(leaf)-1].time
		if s.addAll(first, last, int64(len(leaf))) {
			continue
		}
		for i := range leaf {
			s.Add(leaf[i].time)
		}
	}
}

// drop drops a bucket. Its bodies stay until the table goes.
func (t *table) drop(bucket uint64) {
	if l := t.buckets[bucket]; l != nil {
		t.events -= l.events
		delete(t.buckets, bucket)
	}
	t.lost = slices.DeleteFunc(t.lost, func(l eventfile.LostRange) bool { return l.Bucket == bucket })
}
