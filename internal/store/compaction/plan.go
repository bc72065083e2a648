package compaction

import (
	"fmt"
	"slices"
	"time"

	"dalmatiner/internal/codec/chunk"
	"dalmatiner/internal/disk/manifest"
	"dalmatiner/internal/disk/window"
	"dalmatiner/internal/model/buckets"
)

// closeAfter is how long after its end a window is written: late points of
// an hour then need no overlay.
const closeAfter = time.Hour

// state is what a plan follows from.
type state struct {
	now      int64              // ms since 1970
	segments []manifest.Segment // that are committed
	buckets  []buckets.Info

	late func(seq uint64, r window.Range) int64 // bytes that a segment holds of a range
	// segments to be rewritten for the sake of what is deleted in them
	purge map[uint64]bool

	free    int64 // bytes on the disk, where that is known
	known   bool
	minFree int64 // of them merges leave so many
}

// closing says of every bucket what is closed and what has expired. A
// window is closed some time after its end, and when the bucket's data has gone
// on past it: a backfill closes its windows as it goes.
func (s *state) closing() map[uint64]window.Bucket {
	newest := make(map[uint64]int64)
	for i := range s.segments {
		for _, r := range s.segments[i].Ranges {
			newest[r.Bucket] = max(newest[r.Bucket], r.Past)
		}
	}
	out := make(map[uint64]window.Bucket)
	for i := range s.buckets {
		b := &s.buckets[i]
		perChunk := b.Resolution * chunk.Slots
		closed := min((s.now-closeAfter.Milliseconds())/perChunk, newest[b.ID]-window.Small)
		w := window.Bucket{ClosedBefore: max(closed, 0)}
		if b.TTL > 0 {
			w.ExpiredBefore = max((s.now/b.Resolution-b.TTL)/chunk.Slots, 0)
		}
		out[b.ID] = w
	}
	return out
}

// plan returns what to do, and for every bucket what is closed and expired. Where the
// disk has no room for it, what is gone altogether is still removed, and the error says
// what is missing.
func (s *state) plan() (window.Plan, map[uint64]window.Bucket, error) {
	all := s.closing()
	p := window.Make(s.segments, all, s.late, s.purge)
	err := s.checkSpace(&p)
	if err == nil {
		return p, all, nil
	}
	gone := slices.DeleteFunc(slices.Clone(s.segments), func(seg manifest.Segment) bool {
		return seg.Kind == manifest.Flush || len(seg.Ranges) == 0 ||
			slices.ContainsFunc(seg.Ranges, func(r manifest.Range) bool {
				b, ok := all[r.Bucket]
				return ok && r.Past > b.ExpiredBefore
			})
	})
	return window.Make(gone, all, s.late, nil), all, err
}

// checkSpace keeps merges off the space that storage.min_free holds for the
// log: a log that cannot be written ends the node.
func (s *state) checkSpace(p *window.Plan) error {
	if !s.known {
		return nil
	}
	var need int64 // at most: both copies are there until the commit
	for i := range s.segments {
		if reads(p, &s.segments[i]) {
			need += s.segments[i].Bytes
		}
	}
	if need > 0 && s.free-need < s.minFree {
		return fmt.Errorf("merge: it needs up to %d bytes, %d are free and storage.min_free is %d: "+
			"make space, or shorten a TTL",
			need, s.free, s.minFree)
	}
	return nil
}

// reads reports whether a plan makes something of a segment.
func reads(p *window.Plan, seg *manifest.Segment) bool {
	return slices.ContainsFunc(p.Windows, func(w window.Range) bool {
		return slices.ContainsFunc(seg.Ranges, func(r window.Range) bool {
			return r.Bucket == w.Bucket && r.First < w.Past && r.Past > w.First
		})
	}) || slices.ContainsFunc(p.Overlay, func(part window.Part) bool {
		return slices.Contains(part.From, seg.Seq)
	})
}
