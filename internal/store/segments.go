package store

import (
	"dalmatiner/internal/datadir"
	"dalmatiner/internal/manifest"
)

// LostSegment is the account's cause for points in a segment that is missing
// or cannot be opened.
const LostSegment = "segment_unreadable"

// segmentFile is the path of a segment below the data directory.
func segmentFile(m *manifest.Segment) string { return datadir.Segment(m.Kind, m.Seq) }
