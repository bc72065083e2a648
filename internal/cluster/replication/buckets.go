package replication

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/model/metric"
)

// Bucket is what nodes tell each other of a bucket.
type Bucket struct {
	Name       string
	Resolution int64 // in ms
	Timestamps bool
	Deleted    uint64 // clock of the last deletion of the name before it was created; 0: none
	Created    uint64 // clock
	Lifetime   int64  // in slots; the last change counts
	Changed    uint64 // clock of that change
	PPF, Grace int64  // as buckets.Info has them; the first creation counts
	Copies     int    // n; 0: that of the ring. The first creation counts
	Quorum     Quorum // the last change counts
}

// Quorum is how many copies of a bucket count. 0 stands for the number of the cluster.
type Quorum struct {
	Reads, Writes int
	Changed       uint64 // clock; 0: never
}

func (q Quorum) compare(o Quorum) int {
	return cmp.Or(cmp.Compare(q.Changed, o.Changed), cmp.Compare(q.Reads, o.Reads),
		cmp.Compare(q.Writes, o.Writes))
}

// NameDeletion is the last deletion of a bucket's name.
type NameDeletion struct {
	Name  string
	Clock uint64
}

// ID returns the id of the bucket: the same on every node, and never given twice.
func (b Bucket) ID() uint64 {
	return metric.BucketID(b.Name, b.Resolution, b.Timestamps, b.Deleted)
}

// Info returns the bucket as the store of a node has it.
func (b Bucket) Info() buckets.Info {
	return buckets.Info{
		ID:         b.ID(),
		Name:       b.Name,
		Resolution: b.Resolution,
		PPF:        b.PPF,
		TTL:        b.Lifetime,
		Grace:      b.Grace,
		HPTS:       b.Timestamps,
	}
}

// Buckets is what a node knows of buckets. Merging it with that of others gives the same on
// every node, in whatever order and however often.
type Buckets struct {
	known   map[uint64]Bucket // by id, those of deleted names too, until the deletion is known
	deleted map[string]uint64 // clock of the last deletion, by name
}

// NewBuckets returns an empty one.
func NewBuckets() *Buckets {
	return &Buckets{known: make(map[uint64]Bucket), deleted: make(map[string]uint64)}
}

// Create adds a bucket to those of a node. Its place behind the deletion of its name is set here.
func (b *Buckets) Create(of Bucket, clock uint64) Bucket {
	of.Deleted, of.Created, of.Changed = b.deleted[of.Name], clock, clock
	b.put(of)
	return b.known[of.ID()]
}

// Delete removes all buckets that have a name, those in conflict too. Its clock is behind that of
// the deletion before.
func (b *Buckets) Delete(name string, clock uint64) {
	b.remove(name, max(clock, b.deleted[name]+1))
}

// Merge takes what another node knows.
func (b *Buckets) Merge(o *Buckets) {
	for name, clock := range o.deleted {
		b.remove(name, clock)
	}
	for _, of := range o.known {
		b.put(of)
	}
}

// Put takes a bucket that another node knows.
func (b *Buckets) Put(of Bucket) { b.put(of) }

// NoteDeleted takes a deletion that another node knows.
func (b *Buckets) NoteDeleted(d NameDeletion) { b.remove(d.Name, d.Clock) }

// SetLifetime changes a bucket that is known. Its clock is behind that of the change before.
func (b *Buckets) SetLifetime(id uint64, slots int64, clock uint64) {
	if of, ok := b.known[id]; ok {
		of.Lifetime, of.Changed = slots, max(clock, of.Changed+1)
		b.known[id] = of
	}
}

// SetQuorum changes how many copies of a bucket count that is known.
func (b *Buckets) SetQuorum(id uint64, reads, writes int, clock uint64) {
	if of, ok := b.known[id]; ok {
		of.Quorum = Quorum{reads, writes, max(clock, of.Quorum.Changed+1)}
		b.known[id] = of
	}
}

// Get returns the bucket that has an id.
func (b *Buckets) Get(id uint64) (Bucket, bool) {
	of, ok := b.known[id]
	return of, ok
}

// ByName returns what is known of one name: its buckets, and when it was deleted.
func (b *Buckets) ByName(name string) *Buckets {
	out := NewBuckets()
	if clock, ok := b.deleted[name]; ok {
		out.deleted[name] = clock
	}
	for id, of := range b.known {
		if of.Name == name {
			out.known[id] = of
		}
	}
	return out
}

// All returns all buckets by id, those in conflict too.
func (b *Buckets) All() []Bucket {
	return slices.SortedFunc(maps.Values(b.known), func(x, y Bucket) int {
		return cmp.Compare(x.ID(), y.ID())
	})
}

// Deletions returns what is known to be deleted, by name.
func (b *Buckets) Deletions() (list []NameDeletion) {
	for _, name := range slices.Sorted(maps.Keys(b.deleted)) {
		list = append(list, NameDeletion{name, b.deleted[name]})
	}
	return list
}

// put adds a bucket, unless its name was deleted behind it. The same bucket may have been created
// on several nodes: the first creation counts, and the last change.
func (b *Buckets) put(of Bucket) {
	if of.Deleted < b.deleted[of.Name] {
		return
	}
	old, ok := b.known[of.ID()]
	if ok {
		if cmp.Or(cmp.Compare(old.Created, of.Created), cmp.Compare(old.PPF, of.PPF),
			cmp.Compare(old.Grace, of.Grace),
			cmp.Compare(old.Copies, of.Copies)) < 0 {
			of.Created, of.PPF, of.Grace, of.Copies = old.Created, old.PPF, old.Grace, old.Copies
		}
		if cmp.Or(cmp.Compare(old.Changed, of.Changed), cmp.Compare(old.Lifetime, of.Lifetime)) > 0 {
			of.Lifetime, of.Changed = old.Lifetime, old.Changed
		}
		if old.Quorum.compare(of.Quorum) > 0 {
			of.Quorum = old.Quorum
		}
	}
	b.known[of.ID()] = of
}

// remove notes a deletion that is news. Whoever knows a bucket knows the deletion before it, so
// all that are known are older.
func (b *Buckets) remove(name string, clock uint64) {
	if clock <= b.deleted[name] {
		return
	}
	b.deleted[name] = clock
	maps.DeleteFunc(b.known, func(_ uint64, of Bucket) bool { return of.Name == name })
}

// Names returns which bucket has which name. Of several that were created under one name with
// other properties the earliest has it; the others stay readable as name~conflict,
// name~conflict2 and so on, and somebody should be told.
func (b *Buckets) Names() (names map[string]Bucket, conflicts int) {
	list := slices.SortedFunc(maps.Values(b.known), func(x, y Bucket) int {
		return cmp.Or(cmp.Compare(x.Created, y.Created), cmp.Compare(x.ID(), y.ID()))
	})
	names = make(map[string]Bucket, len(list))
	for _, of := range list {
		name := of.Name
		for n := 1; ; n++ {
			if _, taken := names[name]; !taken {
				break
			}
			if name = of.Name + "~conflict"; n > 1 {
				name = fmt.Sprintf("%s~conflict%d", of.Name, n)
			}
		}
		if name != of.Name {
			conflicts++
		}
		names[name] = of
	}
	return names, conflicts
}
