package compaction

import (
	"slices"

	"dalmatiner/internal/disk/hole"
	"dalmatiner/internal/disk/version"
)

// marks returns what an output of the merge may lie over once the merge is committed:
// what its sources may have.
func (m *merging) marks(o *version.Segment) hole.Marks {
	var given []hole.Mark
	for _, seg := range m.sources {
		for _, r := range o.Meta.Ranges {
			if seg.Overlaps(r) {
				given = append(given, seg.Meta.Marks.Clip(hole.WholeChunks(r.Bucket, r.First, r.Past))...)
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
	return version.MarksOver(given, &o.Meta, others)
}
