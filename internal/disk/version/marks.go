package version

import (
	"dalmatiner/internal/disk/hole"
	"dalmatiner/internal/disk/manifest"
	"dalmatiner/internal/disk/window"
)

// MarksOver returns the marks that a new segment needs: of those given what lies over
// a range of an older one.
func MarksOver(marks []hole.Mark, m *manifest.Segment, others []*Segment) hole.Marks {
	given := hole.Marks{List: marks}
	var kept []hole.Mark
	for _, o := range others {
		if window.Order(o.Meta, *m) >= 0 {
			continue
		}
		for _, r := range o.Meta.Ranges {
			kept = append(kept, given.Clip(hole.WholeChunks(r.Bucket, r.First, r.Past))...)
		}
	}
	return hole.MarksOf(kept)
}
