package store

import (
	"slices"

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
