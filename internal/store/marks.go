package store

import (
	"slices"

	"dalmatiner/internal/chunk"
	"dalmatiner/internal/head"
	"dalmatiner/internal/hole"
	"dalmatiner/internal/manifest"
	"dalmatiner/internal/metric"
	"dalmatiner/internal/version"
	"dalmatiner/internal/window"
)

// noSlot is the highest flushed slot of a bucket that has flushed none.
const noSlot = -1

// prefixOf is the prefix under which marks and holes have a series.
func prefixOf(id metric.SeriesID) hole.Prefix { return hole.PrefixOf(id) }

// settle completes what is settled for a capture of a group of the bucket, and notes
// what will be once the flush is committed. A deleted bucket has none.
func (f *flushing) settle(b *bucket, g *head.Group, c *head.Capture) {
	if b == nil {
		return
	}
	if c.Unsettled {
		c.Settled = max(c.Settled, b.highest.Load())
		g.Settle(c.Settled)
	}
	if c.Highest == noSlot {
		return
	}
	i := slices.IndexFunc(f.highest, func(h manifest.Highest) bool { return h.Bucket == b.info.ID })
	if i < 0 {
		i = len(f.highest)
		f.highest = append(f.highest, manifest.Highest{Bucket: b.info.ID, Slot: c.Highest})
	}
	f.highest[i].Slot = max(f.highest[i].Slot, c.Highest)
}

// raiseHighest notes the highest slots that are flushed.
func (s *Store) raiseHighest(list []manifest.Highest) {
	for _, h := range list {
		if b := s.buckets.ID(h.Bucket); b != nil {
			b.highest.Store(max(b.highest.Load(), h.Slot))
		}
	}
}

// settleBySegments raises the highest flushed slots to the ends of all segments: a
// MANIFEST with damage may not have the last ones.
func (s *Store) settleBySegments() {
	for _, seg := range s.versions.Latest().Segments {
		for _, r := range seg.Meta.Ranges {
			s.raiseHighest([]manifest.Highest{{Bucket: r.Bucket, Slot: r.Past*chunk.Slots - 1}})
		}
	}
}

// marksOver returns the marks that a new segment needs: of those given what lies over
// a range of an older one.
func marksOver(marks []hole.Mark, m *manifest.Segment, others []*version.Segment) hole.Marks {
	given := hole.Marks{List: marks}
	var kept []hole.Mark
	for _, o := range others {
		if window.Order(o.Meta, *m) >= 0 {
			continue
		}
		for _, r := range o.Meta.Ranges {
			kept = append(kept, given.Within(hole.Everywhere(r.Bucket, r.First, r.Past))...)
		}
	}
	return hole.Of(kept)
}

// marks returns what an output of the merge may lie over once the merge is committed:
// what its sources may have.
func (m *merging) marks(o *version.Segment) hole.Marks {
	var given []hole.Mark
	for _, seg := range m.sources {
		for _, r := range o.Meta.Ranges {
			if seg.Overlaps(r) {
				given = append(given, seg.Meta.Marks.Within(hole.Everywhere(r.Bucket, r.First, r.Past))...)
			}
		}
	}
	stay := func(seg *version.Segment) bool { return !slices.Contains(m.plan.Remove, seg.Meta.Seq) }
	others := m.out
	for _, seg := range m.sources {
		if stay(seg) {
			others = append(others[:len(others):len(others)], seg)
		}
	}
	return marksOver(given, &o.Meta, others)
}
