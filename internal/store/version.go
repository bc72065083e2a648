package store

import (
	"maps"
	"slices"
	"sync"

	"dalmatiner/internal/buckets"
	"dalmatiner/internal/hole"
	"dalmatiner/internal/manifest"
	"dalmatiner/internal/metric"
	"dalmatiner/internal/window"
)

// version is everything that readers lay over each other, but for the head: all
// committed segments and what hides parts of them, as they were at one moment. It
// never changes. Who reads files of its segments has it pinned.
type version struct {
	segments []*storedSegment // in window.Order: of two that hold a slot the later wins
	hiding   map[uint64]hiding
	// deletions counts those of series in all versions so far: where two versions have
	// the same count, no tombstone came between them, nor came and went.
	deletions uint64
	pins      int              // under versions.mu; the current version has one of its own
	dropped   []*storedSegment // that the version before has, until it is published
}

// hiding is what hides parts of the segments of a bucket.
type hiding struct {
	tombs tombstones
	holes *hole.Set // nil when there are none
}

func (v *version) tombs(bucket uint64) tombstones { return v.hiding[bucket].tombs }
func (v *version) holes(bucket uint64) *hole.Set  { return v.hiding[bucket].holes }

// hide replaces the tombstones of a bucket in a version that is not published yet.
func (v *version) hide(bucket uint64, t tombstones) {
	h := v.hiding[bucket]
	h.tombs = t
	v.set(bucket, h)
}

func (v *version) set(bucket uint64, h hiding) {
	if len(h.tombs) == 0 && h.holes == nil {
		delete(v.hiding, bucket)
	} else {
		v.hiding[bucket] = h
	}
}

// add adds segments to a version that is not published yet, each in its place.
func (v *version) add(segs ...*storedSegment) {
	v.segments = append(v.segments, segs...)
	slices.SortFunc(v.segments, func(a, b *storedSegment) int { return window.Order(a.meta, b.meta) })
}

// drop takes segments out of a version that is not published yet.
func (v *version) drop(gone func(*storedSegment) bool) {
	v.segments = slices.DeleteFunc(v.segments, func(seg *storedSegment) bool {
		if gone(seg) {
			v.dropped = append(v.dropped, seg)
			return true
		}
		return false
	})
}

// prune drops what hides parts of deleted buckets of which no segment is left.
func (v *version) prune(buckets *buckets.Registry[*bucket]) {
	maps.DeleteFunc(v.hiding, func(id uint64, _ hiding) bool {
		return buckets.ID(id) == nil && !slices.ContainsFunc(v.segments, func(seg *storedSegment) bool { return seg.has(id) })
	})
}

// segmentsOf calls fn for every segment that may hold chunks of the range of a
// series, in the order in which they lie over each other, but for those from
// before the series was deleted. Every read of a series goes through it.
func (v *version) segmentsOf(bucket uint64, id metric.SeriesID, r chunkRange, fn func(*storedSegment) error) error {
	below := v.tombs(bucket).below(id)
	for _, seg := range v.segments {
		if seg.info.Chunks == 0 || seg.cleanTo() < below || !overlaps(seg, manifest.Range{Bucket: bucket, First: r.first, Past: r.past}) {
			continue
		}
		if err := fn(seg); err != nil {
			return err
		}
	}
	return nil
}

// versions are the current version and those that readers still have. A segment
// whose last version goes is retired: its files are closed, and removed.
type versions struct {
	publishing sync.Mutex // one publication at a time; before mu
	retire     func(*storedSegment)

	mu      sync.Mutex
	current *version
	readers int        // that may look at the head, at a version, or both
	gone    *sync.Cond // readers fell to 0
	closed  bool       // nobody enters any more
	kept    int64      // bytes of segments that were dropped and that readers still have
}

func newVersions(retire func(*storedSegment)) *versions {
	v := &versions{retire: retire, current: &version{hiding: map[uint64]hiding{}, pins: 1}}
	v.gone = sync.NewCond(&v.mu)
	return v
}

// latest returns the current version without pinning it: for what stands in memory,
// and for those who hold mergeMu, without which no segment goes.
func (v *versions) latest() *version {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.current
}

// enter lets a reader in: head and files stay open until it leaves. It reports false
// when the store is closed.
func (v *versions) enter() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.closed {
		return false
	}
	v.readers++
	return true
}

func (v *versions) leave() {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.readers--; v.readers == 0 {
		v.gone.Broadcast()
	}
}

// pin returns the current version, whose files stay until unpin, to a reader that has
// entered.
func (v *versions) pin() *version {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.current.pins++
	return v.current
}

// unpin ends what pin began. Who is the last to have a segment retires it.
func (v *versions) unpin(p *version) {
	v.mu.Lock()
	left := v.release(p)
	for _, seg := range left {
		v.kept -= seg.info.Size
	}
	v.mu.Unlock()
	for _, seg := range left {
		v.retire(seg)
	}
}

// release takes a pin away and returns the segments that no version has any more.
func (v *versions) release(p *version) (left []*storedSegment) {
	if p.pins--; p.pins > 0 {
		return nil
	}
	for _, seg := range p.segments {
		if seg.versions--; seg.versions == 0 {
			left = append(left, seg)
		}
	}
	return left
}

// publish replaces the current version by a copy with a change. What the change
// looks at besides must not change meanwhile: tombstones change under flushMu, segments
// and holes under mergeMu, and flushes add segments.
func (v *versions) publish(change func(*version)) {
	v.publishing.Lock()
	defer v.publishing.Unlock()
	old := v.latest()
	next := &version{segments: slices.Clone(old.segments), hiding: maps.Clone(old.hiding), deletions: old.deletions, pins: 1}
	change(next)
	v.mu.Lock()
	for _, seg := range next.segments {
		seg.versions++
	}
	v.current = next
	left := v.release(old)
	for _, seg := range next.dropped {
		if seg.versions > 0 {
			v.kept += seg.info.Size
		}
	}
	next.dropped = nil
	v.mu.Unlock()
	for _, seg := range left {
		v.retire(seg)
	}
}

// pinned returns the bytes of segments that are merged away and stay for readers.
func (v *versions) pinned() int64 {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.kept
}

// close waits for all readers, and returns what the current version has.
func (v *versions) close() []*storedSegment {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.closed = true
	for v.readers > 0 {
		v.gone.Wait()
	}
	return v.current.segments
}
