package store

import (
	"fmt"
	"time"

	"dalmatiner/internal/incarnation"
	"dalmatiner/internal/manifest"
	"dalmatiner/internal/metric"
)

// deletedBuckets are the buckets that were deleted. The next bucket of a name has
// an id that follows from the last deletion of that name, so none gets an id whose
// points may still lie in files or in the log.
type deletedBuckets struct {
	ids  map[uint64]struct{}
	last map[string]uint64 // clock of the last deletion of a name
	from uint64            // any name may have been deleted before this clock, unknown to us; 0 = none
}

// clock returns the clock of the last deletion of a name, 0 for none.
func (d *deletedBuckets) clock(name string) uint64 { return max(d.last[name], d.from) }

func (d *deletedBuckets) add(b manifest.DeletedBucket) {
	d.ids[b.ID] = struct{}{}
	d.last[string(b.Name)] = max(d.last[string(b.Name)], b.Clock)
}

// wasDeleted reports whether a bucket of that id was deleted.
func (r *registry) wasDeleted(id uint64) bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	_, ok := r.deleted.ids[id]
	return ok
}

// noteDeleted notes a deletion.
func (r *registry) noteDeleted(d manifest.DeletedBucket) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.deleted.add(d)
}

// noteDeleted notes the deletion of a bucket that was not there: its creation was
// lost, and its id must not be given again all the same.
func (s *Store) noteDeleted(d manifest.DeletedBucket) {
	if s.buckets.wasDeleted(d.ID) {
		return
	}
	s.buckets.noteDeleted(d)
	s.pendMu.Lock()
	defer s.pendMu.Unlock()
	s.droppedBuckets = append(s.droppedBuckets, d)
}

// deletion describes the deletion of a bucket now.
func (r *registry) deletion(b *bucket, now time.Time) manifest.DeletedBucket {
	r.mu.RLock()
	defer r.mu.RUnlock()
	name := b.info.Name
	return manifest.DeletedBucket{ID: b.info.ID, Clock: incarnation.Next(r.deleted.clock(name), now), Name: []byte(name)}
}

// forgetsDeletions notes that buckets may have been deleted before now of which
// nothing is known.
func (r *registry) forgetsDeletions(now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.deleted.from = incarnation.Next(r.deleted.from, now)
}

// deletionsFrom is what the MANIFEST has of that.
func (r *registry) deletionsFrom() uint64 {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.deleted.from
}

// newID returns the id of a new bucket. Two names whose ids are equal by chance do
// not go together: the error wraps ErrInvalidBucket.
func (r *registry) newID(info *BucketInfo) (uint64, error) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	id := r.hash(info.Name, info.Resolution, info.HPTS, r.deleted.clock(info.Name))
	if b := r.byID[id]; b != nil {
		return 0, fmt.Errorf("%w: %s would have the id %016x, which bucket %s has; choose another name",
			ErrInvalidBucket, metric.Quoted(info.Name), id, metric.Quoted(b.info.Name))
	}
	if _, deleted := r.deleted.ids[id]; deleted {
		return 0, fmt.Errorf("%w: %s would have the id %016x, which a deleted bucket had; choose another name",
			ErrInvalidBucket, metric.Quoted(info.Name), id)
	}
	return id, nil
}
