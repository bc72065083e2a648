package store

import (
	"dalmatiner/internal/datadir"
	"dalmatiner/internal/manifest"
)

// segmentFile is the path of a segment below the data directory.
func segmentFile(m *manifest.Segment) string { return datadir.Segment(m.Kind, m.Seq) }
