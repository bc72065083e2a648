package store

import (
	"slices"

	"dalmatiner/internal/chunk"
	"dalmatiner/internal/columns"
	"dalmatiner/internal/head"
	"dalmatiner/internal/manifest"
)

// settle completes what is settled for a capture of a group of the bucket, and notes
// what will be once the flush is committed. A deleted bucket has none.
func (f *flushing) settle(b *columns.Bucket, g *head.Group, c *head.Capture) {
	if b == nil {
		return
	}
	if c.Unsettled {
		c.Settled = max(c.Settled, b.Highest())
		g.Settle(c.Settled)
	}
	if c.Highest == columns.NoSlot {
		return
	}
	i := slices.IndexFunc(f.highest, func(h manifest.Highest) bool { return h.Bucket == b.ID })
	if i < 0 {
		i = len(f.highest)
		f.highest = append(f.highest, manifest.Highest{Bucket: b.ID, Slot: c.Highest})
	}
	f.highest[i].Slot = max(f.highest[i].Slot, c.Highest)
}

// raiseHighest notes the highest slots that are flushed.
func (s *Store) raiseHighest(list []manifest.Highest) {
	for _, h := range list {
		if b := s.buckets.ID(h.Bucket); b != nil {
			b.RaiseHighest(h.Slot)
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
