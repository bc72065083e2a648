package store

import (
	"dalmatiner/internal/manifest"
	"dalmatiner/internal/segment"
	"dalmatiner/internal/series"
	"dalmatiner/internal/version"
)

// refOf is the column that a deleted series had.
func refOf(t *version.Tombstone) series.Ref { return series.At(t.Group, int(t.Column)) }

// tombs returns the tombstones of a bucket.
func (s *Store) tombs(bucket uint64) version.Tombstones {
	return s.versions.Latest().Tombstones(bucket)
}

// addTombstones names the deleted series in a segment as well: the MANIFEST may
// lose the edit that has them.
func addTombstones(w *segment.Writer, t *manifest.Tombstones) {
	for i := range t.Series {
		d := &t.Series[i]
		w.AddSeries(segment.Series{Bucket: t.Bucket, Hash: d.Hash, Group: d.Group, Column: uint16(d.Column), Since: t.LSN, DeleteSequence: t.DeleteSequence, Incarnation: t.Incarnation})
	}
}
