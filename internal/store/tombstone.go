package store

import (
	"dalmatiner/internal/columns"
	"dalmatiner/internal/incarnation"
	"dalmatiner/internal/manifest"
	"dalmatiner/internal/metric"
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

// recoverTombstones publishes the tombstones that segments carry and the MANIFEST has lost, and
// adds them to an edit. Those that nothing needs any more may be among them: they
// hide nothing. It reports whether all segments could be read.
func (s *Store) recoverTombstones(e *manifest.Edit) (whole bool, err error) {
	whole = true
	remembered := max(s.columns.Deletions.Forgotten(), incarnation.Expired(s.o.Now()))
	found := make(map[*columns.Bucket][]version.Tombstone)
	for _, seg := range s.versions.Latest().Segments {
		if seg.Info.Identities == 0 {
			continue
		}
		err := seg.Reader.Series(func(d segment.Series) error {
			b, id := s.buckets.ID(d.Bucket), metric.SeriesID(d.Hash)
			s.columns.Deletions.Saw(d.Incarnation)
			if d.DeleteSequence == 0 || b == nil || s.tombs(d.Bucket).DeleteSequence(id) >= d.DeleteSequence {
				return nil
			}
			if d.Incarnation <= remembered { // the series may have begun anew without it
				d.Incarnation = 0
			}
			b.Incarnations.Raise(id, d.Incarnation)
			found[b] = append(found[b], version.Tombstone{ID: id, Group: d.Group, Column: uint8(d.Column), DeleteSequence: d.DeleteSequence, LSN: d.Since, Incarnation: d.Incarnation})
			return nil
		})
		whole = whole && !segment.ReadFailed(err)
		if err := s.damage.Unreadable(seg, err); err != nil {
			return false, err
		}
	}
	for b, list := range found {
		list = version.Tombstones(nil).With(list)
		s.columns.PublishTombstones(b.ID, list)
		for _, deletion := range version.ByDeletion(list) {
			s.dir.RaiseNumber(deletion[0].DeleteSequence)
			e.Tombstones = append(e.Tombstones, version.Deletion(b.ID, deletion))
		}
	}
	return whole, nil
}
