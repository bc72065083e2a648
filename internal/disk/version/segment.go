package version

import (
	"slices"
	"sync/atomic"

	"dalmatiner/internal/disk/datadir"
	"dalmatiner/internal/disk/manifest"
	"dalmatiner/internal/disk/segment"
)

// Segment is a committed segment that could be opened. A new one is not shared until it is in
// a version that is published; then only what merges note in it changes.
type Segment struct {
	Meta   manifest.Segment // as the MANIFEST has it
	Reader *segment.Reader
	Info   segment.Info
	Noted  SegmentNotes // by merges, one of which looks at a time

	purged   atomic.Uint64 // Meta.Purged or a later one, which readers do not need to know of
	versions int           // that have it; under Versions.mu
}

// SegmentNotes is what merges know of a segment.
type SegmentNotes struct {
	Deleted DeletedSeries
	Unread  int  // merges that failed because the device could not read it
	Damaged bool // a merge met damage in it: it is set aside in the end
	Covered bool // a merge left out points of it that a hole hides: likewise
}

// DeletedSeries is what is known of the deleted series in a segment.
type DeletedSeries struct {
	UpTo   uint64 // tombstones with a DeleteSequence up to it were looked for
	Series int64
	Unsure bool // damage hides some of it
}

// Chunks is a range of chunk numbers.
type Chunks struct{ First, Past int64 }

// PurgedThrough says what the segment holds nothing of, as manifest.Segment's.
func (seg *Segment) PurgedThrough() uint64 {
	return max(seg.Meta.PurgedThrough(), seg.purged.Load())
}

// SetPurged notes a later PurgedThrough that the MANIFEST has.
func (seg *Segment) SetPurged(to uint64) { seg.purged.Store(to) }

// Has reports whether the segment has chunks of a bucket.
func (seg *Segment) Has(bucket uint64) bool {
	return slices.ContainsFunc(seg.Meta.Ranges, func(r manifest.Range) bool {
		return r.Bucket == bucket
	})
}

// Overlaps reports whether the segment may hold chunks of the range.
func (seg *Segment) Overlaps(r manifest.Range) bool {
	return slices.ContainsFunc(seg.Meta.Ranges, func(o manifest.Range) bool {
		return o.Bucket == r.Bucket && o.First < r.Past && o.Past > r.First
	})
}

// Name is the path of its file below the data directory.
func (seg *Segment) Name() string { return datadir.Segment(seg.Meta.Kind, seg.Meta.Seq) }
