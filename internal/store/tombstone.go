package store

import (
	"dalmatiner/internal/series"
	"dalmatiner/internal/version"
)

// refOf is the column that a deleted series had.
func refOf(t *version.Tombstone) series.Ref { return series.At(t.Group, int(t.Column)) }

// tombs returns the tombstones of a bucket.
func (s *Store) tombs(bucket uint64) version.Tombstones {
	return s.versions.Latest().Tombstones(bucket)
}
