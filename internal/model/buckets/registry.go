package buckets

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"dalmatiner/internal/model/incarnation"
	"dalmatiner/internal/model/metric"
)

// Bucket is what a registry holds: a bucket of the node in memory.
type Bucket interface {
	comparable
	Info() Info // its ID, Name, Resolution and HPTS never change
}

// Registry is the set of buckets, and of those that were deleted. Its methods may be
// called concurrently. Its lock is held for map operations only and no other is taken
// under it, but for that of Create, which is held during the call of add.
type Registry[B Bucket] struct {
	creating sync.Mutex // one creation at a time; taken before mu

	mu      sync.RWMutex
	byName  map[string]B
	byID    map[uint64]B
	deleted deletions

	// Hash gives the id of a new bucket. It is metric.BucketID, and tests replace
	// it by one whose values collide.
	Hash func(name string, resolution int64, hpts bool, deleted uint64) uint64
}

// NewRegistry returns an empty registry.
func NewRegistry[B Bucket]() *Registry[B] {
	return &Registry[B]{
		byName: make(map[string]B), byID: make(map[uint64]B), Hash: metric.BucketID,
		deleted: deletions{ids: make(map[uint64]struct{}), last: make(map[string]Deletion)},
	}
}

// Get returns the bucket of a name, the zero B for none.
func (r *Registry[B]) Get(name string) B {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.byName[name]
}

// ID returns the bucket of an id, the zero B for none.
func (r *Registry[B]) ID(id uint64) B {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.byID[id]
}

// ByName returns the bucket of a name, or an error that wraps ErrUnknown.
func (r *Registry[B]) ByName(name string) (B, error) {
	return checkKnown(r.Get(name), name)
}

// ByIdentity is ByName for a bucket that was known before: one of its name made since is
// another.
func (r *Registry[B]) ByIdentity(info Info) (B, error) {
	return checkKnown(r.ID(info.ID), info.Name)
}

func checkKnown[B Bucket](b B, name string) (B, error) {
	var none B
	if b == none {
		return none, UnknownError(name)
	}
	return b, nil
}

// All returns all buckets, sorted by name. The slice is the caller's.
func (r *Registry[B]) All() []B {
	r.mu.RLock()
	defer r.mu.RUnlock()
	out := make([]B, 0, len(r.byID))
	for _, b := range r.byID {
		out = append(out, b)
	}
	slices.SortFunc(out, func(a, b B) int { return strings.Compare(a.Info().Name, b.Info().Name) })
	return out
}

// Infos returns the properties of all buckets, sorted by name. The slice is the caller's.
func (r *Registry[B]) Infos() []Info {
	all := r.All()
	out := make([]Info, len(all))
	for i, b := range all {
		out[i] = b.Info()
	}
	return out
}

// Add puts a bucket into the registry.
func (r *Registry[B]) Add(b B) {
	info := b.Info()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.byName[info.Name] = b
	r.byID[info.ID] = b
}

// Create gives a new bucket an id and calls add with it, which is to Add the bucket
// when it is in the log. The error is that of add, or wraps ErrExists, or ErrInvalid
// where another bucket has the id by chance: two such names do not go together.
func (r *Registry[B]) Create(info Info, add func(Info) error) (Info, error) {
	var none B
	r.creating.Lock()
	defer r.creating.Unlock()
	if r.Get(info.Name) != none {
		return Info{}, fmt.Errorf("%w: %s", ErrExists, metric.Quote(info.Name))
	}
	var err error
	if info.ID, err = r.newID(&info); err != nil {
		return Info{}, err
	}
	return info, add(info)
}

// newID returns the id of a new bucket.
func (r *Registry[B]) newID(info *Info) (uint64, error) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	id := r.Hash(info.Name, info.Resolution, info.HPTS, r.deleted.clock(info.Name))
	return id, r.checkID(info.Name, id)
}

// checkID refuses an id that another bucket has or had. The lock is held.
func (r *Registry[B]) checkID(name string, id uint64) error {
	if b, ok := r.byID[id]; ok {
		return fmt.Errorf("%w: %s would have the id %016x, which bucket %s has; choose another name",
			ErrInvalid, metric.Quote(name), id, metric.Quote(b.Info().Name))
	}
	if _, deleted := r.deleted.ids[id]; deleted {
		return fmt.Errorf("%w: %s would have the id %016x, which a deleted bucket had; choose another "+
			"name",
			ErrInvalid, metric.Quote(name), id)
	}
	return nil
}

// Deletion describes the deletion of a bucket now.
func (r *Registry[B]) Deletion(b B, now time.Time) Deletion {
	info := b.Info()
	r.mu.RLock()
	defer r.mu.RUnlock()
	return Deletion{
		ID:    info.ID,
		Clock: incarnation.Next(r.deleted.clock(info.Name), now),
		Name:  info.Name,
	}
}

// Remove takes a bucket out of the registry and notes its deletion.
func (r *Registry[B]) Remove(b B, d Deletion) {
	info := b.Info()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.deleted.add(d)
	if r.byName[info.Name] == b {
		delete(r.byName, info.Name)
	}
	delete(r.byID, info.ID)
}

// NoteDeleted notes the deletion of a bucket that is not there.
func (r *Registry[B]) NoteDeleted(d Deletion) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.deleted.add(d)
}

// WasDeleted reports whether a bucket of that id was deleted.
func (r *Registry[B]) WasDeleted(id uint64) bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	_, ok := r.deleted.ids[id]
	return ok
}

// DeletionsLost notes that buckets may have been deleted before now of which nothing
// is known: no id of a new bucket may be one of theirs.
func (r *Registry[B]) DeletionsLost(now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.deleted.from = incarnation.Next(r.deleted.from, now)
}

// RaiseDeletionsFrom notes what DeletionsFrom was in an earlier life of the node.
func (r *Registry[B]) RaiseDeletionsFrom(clock uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.deleted.from = max(r.deleted.from, clock)
}

// DeletionsFrom returns the clock before which any bucket may have been deleted
// unknown to the registry, 0 for none.
func (r *Registry[B]) DeletionsFrom() uint64 {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.deleted.from
}

// DeletionsBytes returns the memory of what is known of deleted buckets.
func (r *Registry[B]) DeletionsBytes() int64 {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return int64(len(r.deleted.ids))*deletionCost + r.deleted.names
}

// deletionCost is what a deletion takes beside the name: its places in the maps here, and in
// the MANIFEST's.
const deletionCost = 160

// deletions are the buckets that were deleted. The next bucket of a name has an id
// that follows from the last deletion of that name. So no bucket gets an id whose
// points may still lie in files or in the log.
type deletions struct {
	ids   map[uint64]struct{}
	last  map[string]Deletion // of each name
	names int64               // bytes of the names in last
	// any name may have been deleted before this clock, unknown to us; 0 = none
	from uint64
}

// clock returns the clock of the last deletion of a name, 0 for none.
func (d *deletions) clock(name string) uint64 { return max(d.last[name].Clock, d.from) }

func (d *deletions) add(b Deletion) {
	d.ids[b.ID] = struct{}{}
	last, again := d.last[b.Name]
	if !again {
		d.names += int64(len(b.Name))
	}
	if !again || b.Clock > last.Clock {
		d.last[b.Name] = b
	}
}
