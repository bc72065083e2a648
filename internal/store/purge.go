package store

import (
	"dalmatiner/internal/chunk"
	"dalmatiner/internal/manifest"
	"dalmatiner/internal/segment"
	"dalmatiner/internal/version"
	"dalmatiner/internal/window"
)

// maxDoomed is the share of a file's series, 1/maxDoomed, that may be deleted
// before the file is rewritten without them.
const maxDoomed = 20

// purge returns the segments that are to be rewritten for the sake of the
// deleted series in them: those in which they are more than a small share, but
// flushes, which are merged before long; with all, those that hold any. A
// segment that holds none is noted as clean.
func (m *merging) purge(all bool) (map[uint64]bool, error) {
	if len(m.tombs) == 0 {
		return nil, nil
	}
	out := make(map[uint64]bool)
	for _, seg := range m.sources {
		d := &seg.Noted.Deleted
		if d.UpTo < m.newest {
			if err := m.countDoomed(seg); err != nil {
				return nil, err
			}
		}
		few := seg.Meta.Kind == manifest.Flush || d.Series*maxDoomed <= seg.Info.Series
		if d.Series > 0 && (all || !few) {
			out[seg.Meta.Seq] = true
		}
	}
	return out, nil
}

// countDoomed counts the series in a segment, by chunks and by names, that were
// deleted.
func (m *merging) countDoomed(seg *version.Segment) error {
	d := version.Deleted{UpTo: m.newest}
	clean, any := seg.PurgedThrough(), false
	note := func(err error) error {
		d.Unsure = d.Unsure || segment.IsDamage(err)
		return m.s.noteUnreadable(seg, err)
	}
	for bucket, tombs := range m.tombs {
		hashes := tombs.Over(clean)
		any = any || len(hashes) > 0
		b := m.s.buckets.ID(bucket)
		if len(hashes) == 0 || !seg.Has(bucket) || b == nil {
			continue
		}
		if err := note(seg.Reader.Holding(bucket, hashes, func(int) { d.Series += int64(b.width()) })); err != nil {
			return err
		}
	}
	if any && seg.Info.Identities > 0 {
		err := note(seg.Reader.Series(func(e segment.Series) error {
			if e.DeleteSequence == 0 && m.hides(seg, e.Bucket, e.Hash) {
				d.Series++
			}
			return nil
		}))
		if err != nil {
			return err
		}
	}
	seg.Noted.Deleted = d
	return nil
}

// hides reports whether what a segment has of a series is deleted.
func (m *merging) hides(seg *version.Segment, bucket uint64, h segment.Hash) bool {
	b := m.s.buckets.ID(bucket)
	return b != nil && seg.PurgedThrough() < m.tombs[bucket].DeleteSequence(b.valueID(h))
}

// mergeSource returns a segment as the source of a merge of one bucket.
func (m *merging) mergeSource(seg *version.Segment, bucket uint64) window.Source {
	src := window.Source{
		Seq: seg.Meta.Seq, Generation: seg.Meta.Generation, Window: seg.Meta.Kind == manifest.Window, Reader: seg.Reader,
		Unread: seg.Noted.Unread >= maxUnread, Marks: seg.Meta.Marks,
	}
	if b := m.s.buckets.ID(bucket); b != nil {
		src.Timestamped = b.info.HPTS
	}
	if len(m.tombs[bucket]) > 0 {
		src.Hidden = func(h segment.Hash) bool { return m.hides(seg, bucket, h) }
		src.Dropped = func(data []byte) {
			if h, err := chunk.ParseHeader(data); err == nil {
				m.dropped += int64(h.Count)
			}
		}
	}
	return src
}

// settleTombstones notes which segments are clean and drops the tombstones that
// no segment and no record of the log needs any more. Files that were merged away
// need theirs until their removal is durable: a start could take them in.
func (s *Store) settleTombstones() error {
	s.flushMu.Lock()
	defer s.flushMu.Unlock()
	if s.tombstoneCount() == 0 || s.failed() != nil || s.flushMu.Closed() {
		return s.failed()
	}
	now := s.versions.Latest()
	segments := now.Segments
	if err := s.dir.RemoveLeftovers(); err != nil {
		return err
	}
	left := s.dir.PurgedThrough()
	var e manifest.Edit
	purgedThrough := make(map[uint64]uint64, len(segments))
	for _, seg := range segments {
		clean := seg.PurgedThrough()
		if d := &seg.Noted.Deleted; d.Series == 0 && !d.Unsure && d.UpTo > clean {
			clean = d.UpTo
			e.Clean = append(e.Clean, manifest.CleanSegment{Seq: seg.Meta.Seq, Clean: clean})
		}
		purgedThrough[seg.Meta.Seq] = clean
	}
	for _, b := range s.buckets.All() {
		if buried := (manifest.Buried{Bucket: b.info.ID, DeleteSequence: left, LSN: s.needed.Load()}); len(now.Tombstones(b.info.ID)) > 0 {
			for _, seg := range segments {
				if seg.Has(b.info.ID) || seg.Info.Identities > 0 {
					buried.DeleteSequence = min(buried.DeleteSequence, purgedThrough[seg.Meta.Seq])
				}
			}
			for _, h := range now.Holes(b.info.ID).Holes() { // hides nothing of a series that was deleted since
				buried.DeleteSequence = min(buried.DeleteSequence, h.At.Generation)
			}
			if t := now.Tombstones(b.info.ID); len(t.Without(buried)) < len(t) {
				e.Bury = append(e.Bury, buried)
			}
		}
	}
	if len(e.Clean)+len(e.Bury) == 0 {
		return nil
	}
	// A power cut may undo the deletions: no later one gets a number up to these.
	e.NextSeq = s.dir.NextNumber()
	if err := s.commitEdit(e); err != nil {
		return err
	}
	for _, seg := range segments {
		seg.SetClean(purgedThrough[seg.Meta.Seq])
	}
	s.versions.Publish(func(v *version.Version) {
		for _, dead := range e.Bury {
			v.Hide(dead.Bucket, v.Tombstones(dead.Bucket).Without(dead))
		}
	})
	return nil
}

// beginMerge takes what a round of merges works on in one moment between two
// deletions: what it writes holds nothing of the series that were deleted
// before, and is hidden by the deletions behind it.
func (s *Store) beginMerge() (*merging, error) {
	s.flushMu.Lock()
	defer s.flushMu.Unlock()
	if s.flushMu.Closed() {
		return nil, ErrClosed
	}
	m := &merging{s: s, late: map[uint64]map[manifest.Range]int64{}, clean: s.dir.NextNumber(), tombs: map[uint64]version.Tombstones{}}
	now := s.versions.Latest()
	for _, b := range s.buckets.All() {
		if t := now.Tombstones(b.info.ID); len(t) > 0 {
			m.tombs[b.info.ID] = t
			for i := range t {
				m.newest = max(m.newest, t[i].DeleteSequence)
			}
		}
	}
	m.sources = append(m.sources, now.Segments...)
	return m, nil
}
