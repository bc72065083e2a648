package store

import "dalmatiner/internal/version"

// showHoles puts the holes that are committed into a version, together with the change
// of segments that they belong to.
func (s *Store) showHoles(v *version.Version) { v.ShowHoles(s.Buckets(), s.manifest.Holes()) }
