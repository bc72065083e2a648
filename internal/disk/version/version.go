package version

import (
	"maps"
	"slices"
	"sync"

	"dalmatiner/internal/disk/hole"
	"dalmatiner/internal/disk/manifest"
	"dalmatiner/internal/disk/window"
	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/model/metric"
)

// Version is everything that readers lay over each other, but for the head: all
// committed segments and what hides parts of them, as they were at one moment. It
// never changes. Who reads files of its segments has it pinned.
type Version struct {
	Segments []*Segment // in window.Order: of two that hold a slot the later wins
	hiding   map[uint64]visibility
	// Deletions counts those of series in all versions so far: where two versions have
	// the same count, no tombstone came between them, nor came and went.
	Deletions uint64
	pins      int        // under Versions.mu; the current version has one of its own
	dropped   []*Segment // that the version before has, until it is published
}

// visibility is what hides parts of the segments of a bucket.
type visibility struct {
	tombs   Tombstones
	holes   *hole.Set // nil when there are none
	changes uint64
	expired int64
}

// Changes counts, in all versions so far, what made reads of a bucket give something else:
// deletions of series, holes that came or went, and merges that had to leave out what damage took.
// What flushes and merges do beside that does not count.
func (v *Version) Changes(bucket uint64) uint64 { return v.hiding[bucket].changes }

// ExpiredBelow returns the slot of a bucket below which merges have dropped points as older than
// its lifetime.
func (v *Version) ExpiredBelow(bucket uint64) int64 { return v.hiding[bucket].expired }

// Change counts a change of what a bucket reads as, in a version that is not published yet.
func (v *Version) Change(bucket uint64) {
	h := v.hiding[bucket]
	h.changes++
	v.hiding[bucket] = h
}

// Expire notes that points of a bucket below a slot are dropped, in a version that is not published
// yet.
func (v *Version) Expire(bucket uint64, slot int64) {
	if h := v.hiding[bucket]; slot > h.expired {
		h.expired = slot
		v.hiding[bucket] = h
	}
}

// Tombstones returns those of a bucket. They must not be changed.
func (v *Version) Tombstones(bucket uint64) Tombstones { return v.hiding[bucket].tombs }

// Holes returns those of a bucket, nil where there are none.
func (v *Version) Holes(bucket uint64) *hole.Set { return v.hiding[bucket].holes }

// Hide replaces the tombstones of a bucket in a version that is not published yet.
func (v *Version) Hide(bucket uint64, t Tombstones) {
	h := v.hiding[bucket]
	h.tombs = t
	v.set(bucket, h)
}

// Delete is Hide behind a deletion of series, which looks under way must see.
func (v *Version) Delete(bucket uint64, t Tombstones) {
	v.Hide(bucket, t)
	v.Change(bucket)
	v.Deletions++
}

// Cover replaces the holes of a bucket in a version that is not published yet; nil is none.
func (v *Version) Cover(bucket uint64, holes *hole.Set) {
	h := v.hiding[bucket]
	if !slices.Equal(h.holes.Holes(), holes.Holes()) {
		h.changes++
	}
	h.holes = holes
	v.set(bucket, h)
}

// ShowHoles replaces the holes of all buckets by those of the MANIFEST, in a version that is not
// published yet.
func (v *Version) ShowHoles(living []buckets.Info, all []hole.Hole) {
	for i := range living {
		v.Cover(living[i].ID, hole.NewSet(living[i].ID, all))
	}
}

func (v *Version) set(bucket uint64, h visibility) {
	if len(h.tombs) == 0 && h.holes == nil && h.changes == 0 && h.expired == 0 {
		delete(v.hiding, bucket)
	} else {
		v.hiding[bucket] = h
	}
}

// Add adds segments to a version that is not published yet, each in its place.
func (v *Version) Add(segs ...*Segment) {
	v.Segments = append(v.Segments, segs...)
	slices.SortFunc(v.Segments, func(a, b *Segment) int { return window.Order(a.Meta, b.Meta) })
}

// Drop takes segments out of a version that is not published yet.
func (v *Version) Drop(gone func(*Segment) bool) {
	v.Segments = slices.DeleteFunc(v.Segments, func(seg *Segment) bool {
		if gone(seg) {
			v.dropped = append(v.dropped, seg)
			return true
		}
		return false
	})
}

// Prune drops what hides parts of unknown buckets of which no segment is left. The version must not
// be published yet.
func (v *Version) Prune(known func(bucket uint64) bool) {
	maps.DeleteFunc(v.hiding, func(id uint64, _ visibility) bool {
		return !known(id) && !slices.ContainsFunc(v.Segments, func(seg *Segment) bool {
			return seg.Has(id)
		})
	})
}

// SegmentsOf calls fn for every segment that may hold chunks of the range of a
// series, in the order in which they lie over each other, but for those from
// before the series was deleted. Every read of a series goes through it.
func (v *Version) SegmentsOf(bucket uint64, id metric.SeriesID, r Chunks,
	fn func(*Segment) error) error {
	below := v.Tombstones(bucket).DeleteSequence(id)
	for _, seg := range v.Segments {
		if seg.Info.Chunks == 0 || seg.PurgedThrough() < below || !seg.Overlaps(manifest.Range{
			Bucket: bucket,
			First:  r.First,
			Past:   r.Past,
		}) {
			continue
		}
		if err := fn(seg); err != nil {
			return err
		}
	}
	return nil
}

// Versions are the current version and those that readers still have. A segment
// whose last version goes is retired: its files are closed, and removed.
type Versions struct {
	publishing sync.Mutex // one publication at a time; before mu
	retire     func(*Segment)

	mu      sync.Mutex
	current *Version
	readers int        // that may look at the head, at a version, or both
	gone    *sync.Cond // readers fell to 0
	closed  bool       // nobody enters any more
	kept    int64      // bytes of segments that were dropped and that readers still have
}

// New returns versions of which the current one has nothing. retire is called for each segment
// that no version has any more.
func New(retire func(*Segment)) *Versions {
	v := &Versions{retire: retire, current: &Version{hiding: map[uint64]visibility{}, pins: 1}}
	v.gone = sync.NewCond(&v.mu)
	return v
}

// Latest returns the current version without pinning it: for what stands in memory,
// and for the one who merges, without whom no segment goes.
func (v *Versions) Latest() *Version {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.current
}

// Enter lets a reader in: head and files stay open until it leaves. It reports false
// when the store is closed.
func (v *Versions) Enter() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.closed {
		return false
	}
	v.readers++
	return true
}

// Leave ends what Enter began.
func (v *Versions) Leave() {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.readers--; v.readers == 0 {
		v.gone.Broadcast()
	}
}

// Pin returns the current version, whose files stay until unpin, to a reader that has
// entered.
func (v *Versions) Pin() *Version {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.current.pins++
	return v.current
}

// Unpin ends what Pin began. Who is the last to have a segment retires it.
func (v *Versions) Unpin(p *Version) {
	v.mu.Lock()
	left := v.release(p)
	for _, seg := range left {
		v.kept -= seg.Info.Size
	}
	v.mu.Unlock()
	for _, seg := range left {
		v.retire(seg)
	}
}

// release takes a pin away and returns the segments that no version has any more.
func (v *Versions) release(p *Version) (left []*Segment) {
	if p.pins--; p.pins > 0 {
		return nil
	}
	for _, seg := range p.Segments {
		if seg.versions--; seg.versions == 0 {
			left = append(left, seg)
		}
	}
	return left
}

// Publish replaces the current version by a copy with a change. What the change
// looks at besides must not change meanwhile: of deletions and flushes one at a time publishes,
// and of those who take segments away or change holes.
func (v *Versions) Publish(change func(*Version)) {
	v.publishing.Lock()
	defer v.publishing.Unlock()
	old := v.Latest()
	next := &Version{
		Segments:  slices.Clone(old.Segments),
		hiding:    maps.Clone(old.hiding),
		Deletions: old.Deletions,
		pins:      1,
	}
	change(next)
	v.mu.Lock()
	for _, seg := range next.Segments {
		seg.versions++
	}
	v.current = next
	left := v.release(old)
	for _, seg := range next.dropped {
		if seg.versions > 0 {
			v.kept += seg.Info.Size
		}
	}
	next.dropped = nil
	v.mu.Unlock()
	for _, seg := range left {
		v.retire(seg)
	}
}

// PinnedBytes returns the bytes of segments that are merged away and stay for readers.
func (v *Versions) PinnedBytes() int64 {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.kept
}

// Close waits for all readers, and returns what the current version has.
func (v *Versions) Close() []*Segment {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.closed = true
	for v.readers > 0 {
		v.gone.Wait()
	}
	return v.current.Segments
}
