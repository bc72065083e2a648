package store

import (
	"dalmatiner/internal/manifest"
	"dalmatiner/internal/recovery"
)

// LostSegment is the account's cause for points in a segment that is missing
// or cannot be opened.
const LostSegment = "segment_unreadable"

// segmentDirs are the directories of segments, by manifest.Kind.
var segmentDirs = recovery.Dirs

// segmentFile is the path of a segment below the data directory.
func segmentFile(m *manifest.Segment) string { return recovery.Path(m.Kind, m.Seq) }
