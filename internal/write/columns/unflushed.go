package columns

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"dalmatiner/internal/disk/catalogue"
	"dalmatiner/internal/disk/manifest"
	"dalmatiner/internal/disk/segment"
	"dalmatiner/internal/disk/version"
	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/model/metric"
	"dalmatiner/internal/write/series"
)

const (
	// changeCost is what a flush takes for a series that it has to name, beside its
	// key: its place in the list, which is there twice while it grows, and the record.
	// The key lies in the record again, and in what its group had for names before,
	// by keyTimes/keyPart of its length.
	changeCost = 256
	keyTimes   = 3
	keyPart    = 2
)

// Changes are what one flush tells the catalogue and the MANIFEST.
type Changes struct {
	Catalogue  []catalogue.Change // series that got or lost a column, in the order of the log
	Buckets    []buckets.Deletion
	Tombstones []manifest.Tombstones
}

// Names reports whether a change gives a series a column, which a segment has to
// say, too.
func Names(c catalogue.Change) bool { return len(c.Series.Key) > 0 }

// PendingChanges is what has changed since the last flush. Its methods may be called
// concurrently.
type PendingChanges struct {
	mu      sync.Mutex
	changes Changes
	// places in the catalogue that have no name, by the record that took it
	unnamed map[formerPlace]uint64
	gone    map[segment.Hash]int // see IsLeaving: by series, the number of takes before it went
	takes   int                  // by flushes
	need    atomic.Int64         // see FlushMemory
}

// formerPlace is the column that a deleted series had.
type formerPlace struct {
	bucket uint64
	ref    series.Ref
	id     metric.SeriesID
}

// FlushMemory returns the memory that the next flush takes to name series, with those of a flush
// that is under way.
func (u *PendingChanges) FlushMemory() int64 { return u.need.Load() }

// changeNeed is what a flush takes for changes that it has to tell the catalogue.
func changeNeed(changes ...catalogue.Change) int64 {
	n := int64(0)
	for i := range changes {
		n += nameNeed(len(changes[i].Series.Key))
	}
	return n
}

// nameNeed is what a flush takes for a series with a key of n bytes.
func nameNeed(n int) int64 { return changeCost + int64(n)*keyTimes/keyPart }

// Len returns how many changes wait for the catalogue.
func (u *PendingChanges) Len() int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return len(u.changes.Catalogue)
}

// Tombstones returns how many tombstones wait.
func (u *PendingChanges) Tombstones() int64 {
	u.mu.Lock()
	defer u.mu.Unlock()
	return version.CountDeleted(u.changes.Tombstones)
}

// AddTombstones hands the tombstones of one deletion to the next flush.
func (u *PendingChanges) AddTombstones(b *Bucket, list []version.Tombstone) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.changes.Tombstones = append(u.changes.Tombstones, version.Deletion(b.ID, list))
}

// add adds a change that gives a series the column that it names.
func (u *PendingChanges) add(c catalogue.Change, at formerPlace) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.unnamed, at)
	u.append(c)
}

// append adds a change. The lock is held.
func (u *PendingChanges) append(c catalogue.Change) {
	u.need.Add(changeNeed(c))
	list := u.changes.Catalogue
	if len(list) == cap(list) {
		list = slices.Grow(list, len(list)+1) // a start on a long log adds millions
	}
	u.changes.Catalogue = append(list, c)
}

// addGone adds the change for a series that is gone from left. Where the place stays in
// the catalogue without a name, since is the record that took it, else 0.
func (u *PendingChanges) addGone(at formerPlace, since uint64, left *segment.Series) {
	c := catalogue.Change{Left: left, Nothing: since == 0}
	u.mu.Lock()
	defer u.mu.Unlock()
	if since != 0 {
		c.Series = segment.Series{
			Bucket: at.bucket,
			Hash:   segment.Hash(at.id),
			Group:  at.ref.Group(),
			Column: uint16(at.ref.Column()),
			Since:  since,
		}
		u.noteUnnamed(at, since)
	}
	if u.gone == nil {
		u.gone = make(map[segment.Hash]int)
	}
	u.gone[segment.Hash(at.id)] = u.takes
	u.append(c)
}

// IsLeaving reports whether a series was deleted or has expired, and no flush has committed that: a
// start finds it as it was, because the log has what took it. It is true before the index has
// the series no more.
func (u *PendingChanges) IsLeaving(id metric.SeriesID) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	_, ok := u.gone[segment.Hash(id)]
	return ok
}

// addUnnamed notes a place that the catalogue has without a name.
func (u *PendingChanges) addUnnamed(at formerPlace, since uint64) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.noteUnnamed(at, since)
}

// noteUnnamed is addUnnamed. The lock is held.
func (u *PendingChanges) noteUnnamed(at formerPlace, since uint64) {
	if u.unnamed == nil {
		u.unnamed = make(map[formerPlace]uint64)
	}
	u.unnamed[at] = since
}

// dropBucket takes what is about a bucket off the list, and puts its deletion on it.
func (u *PendingChanges) dropBucket(d buckets.Deletion) {
	u.mu.Lock()
	defer u.mu.Unlock()
	c := &u.changes
	before := changeNeed(c.Catalogue...)
	c.Catalogue = slices.DeleteFunc(c.Catalogue, func(p catalogue.Change) bool {
		return p.Series.Bucket == d.ID
	})
	u.need.Add(changeNeed(c.Catalogue...) - before)
	c.Buckets = append(c.Buckets, d)
}

// DropGone takes the series that are gone off the list of those that the next flush is to
// name. The list has what took them behind what named them.
func (u *PendingChanges) DropGone() {
	u.mu.Lock()
	defer u.mu.Unlock()
	list := u.changes.Catalogue
	before := changeNeed(list...)
	gone := make(map[segment.Hash]bool)
	kept := list[:0]
	for i, c := range slices.Backward(list) {
		switch {
		case !Names(c) && c.Left != nil:
			gone[c.Left.Hash] = true
		case Names(c) && gone[c.Series.Hash]:
			list[i].Series, list[i].Nothing = segment.Series{}, true
		}
	}
	for _, c := range list {
		if !c.Nothing || c.Left != nil {
			kept = append(kept, c)
		}
	}
	u.need.Add(changeNeed(kept...) - before)
	clear(list[len(kept):])
	u.changes.Catalogue = kept
}

// Take takes all that has changed, for a flush. needed is the first record that a restart
// reads: places without a name whose former series no replay meets any more leave the
// catalogue.
func (u *PendingChanges) Take(needed uint64) Changes {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.dropUnnamed(needed)
	c := u.changes
	u.changes = Changes{}
	u.takes++
	return c
}

func (u *PendingChanges) dropUnnamed(needed uint64) {
	var stale []catalogue.Change
	for p, since := range u.unnamed {
		if since <= needed {
			delete(u.unnamed, p)
			stale = append(stale, catalogue.Change{Nothing: true, Left: &segment.Series{
				Bucket: p.bucket, Hash: segment.Hash(p.id), Group: p.ref.Group(),
				Column: uint16(p.ref.Column())}})
		}
	}
	if len(stale) > 0 { // else it would be copied for nothing
		u.changes.Catalogue = append(stale, u.changes.Catalogue...)
		u.need.Add(changeNeed(stale...))
	}
}

// PutBack puts back what a flush took that failed.
func (u *PendingChanges) PutBack(c Changes) {
	u.mu.Lock()
	defer u.mu.Unlock()
	now := &u.changes
	now.Catalogue = append(c.Catalogue, now.Catalogue...)
	now.Buckets = append(c.Buckets, now.Buckets...)
	now.Tombstones = append(c.Tombstones, now.Tombstones...)
}

// NoteCommit notes that what a flush took is committed.
func (u *PendingChanges) NoteCommit(c Changes) {
	u.need.Add(-changeNeed(c.Catalogue...))
	u.mu.Lock()
	defer u.mu.Unlock()
	maps.DeleteFunc(u.gone, func(_ segment.Hash, takes int) bool { return takes < u.takes })
}
