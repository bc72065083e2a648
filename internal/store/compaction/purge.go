package compaction

import (
	"slices"

	"dalmatiner/internal/codec/chunk"
	"dalmatiner/internal/disk/manifest"
	"dalmatiner/internal/disk/segment"
	"dalmatiner/internal/disk/version"
	"dalmatiner/internal/disk/window"
	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/model/metric"
)

// maxDeleted is the share of a file's series, 1/maxDeleted, that may be deleted
// before the file is rewritten without them.
const maxDeleted = 20

// purge returns the segments to rewrite because of their deleted series. Without all these are the
// segments in which deleted series are more than a small share, except flushes, which are merged
// before long. With all it is every segment that holds any. A segment that holds none is noted as
// purged.
func (m *merging) purge(all bool) (map[uint64]bool, error) {
	if len(m.tombs) == 0 {
		return nil, nil
	}
	out := make(map[uint64]bool)
	for _, seg := range m.sources {
		d := &seg.Noted.Deleted
		if d.UpTo < m.newest {
			if err := m.countDeleted(seg); err != nil {
				return nil, err
			}
		}
		few := seg.Meta.Kind == manifest.Flush || d.Series*maxDeleted <= seg.Info.Series
		if d.Series > 0 && (all || !few) {
			out[seg.Meta.Seq] = true
		}
	}
	return out, nil
}

// countDeleted counts the series in a segment, by chunks and by names, that were
// deleted.
func (m *merging) countDeleted(seg *version.Segment) error {
	d := version.DeletedSeries{UpTo: m.newest}
	purged, any := seg.PurgedThrough(), false
	note := func(err error) error {
		d.Unsure = d.Unsure || segment.IsDamage(err)
		return m.c.o.Damage.NoteReadError(seg, err)
	}
	for bucket, tombs := range m.tombs {
		hashes := tombs.HashesAfter(purged)
		any = any || len(hashes) > 0
		b, ok := m.c.o.Buckets.BucketByID(bucket)
		if len(hashes) == 0 || !seg.Has(bucket) || !ok {
			continue
		}
		if err := note(seg.Reader.EachHolding(bucket, hashes, func(int) {
			d.Series += int64(b.Columns())
		})); err != nil {
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
	b, ok := m.c.o.Buckets.BucketByID(bucket)
	return ok && seg.PurgedThrough() < m.tombs[bucket].DeleteSequence(b.ValueID(metric.SeriesID(h)))
}

// mergeSource returns a segment as the source of a merge of one bucket.
func (m *merging) mergeSource(seg *version.Segment, bucket uint64) window.Source {
	src := window.Source{
		Seq: seg.Meta.Seq, Generation: seg.Meta.Generation, Window: seg.Meta.Kind == manifest.Window,
		Reader: seg.Reader,
		Unread: seg.Noted.Unread >= MaxUnread, Marks: seg.Meta.Marks,
	}
	if b, ok := m.c.o.Buckets.BucketByID(bucket); ok {
		src.Timestamped = b.HPTS
	}
	if len(m.tombs[bucket]) > 0 {
		src.Hidden = func(h segment.Hash) bool { return m.hides(seg, bucket, h) }
		src.Dropped = func(data []byte) {
			if n, err := chunk.Count(data); err == nil {
				m.dropped += int64(n)
			}
		}
	}
	return src
}

// DropTombstones notes which segments are purged and drops the tombstones that
// no segment and no record of the log needs any more. Files that were merged away
// need theirs until their removal is durable: a start could take them in.
func (c *Compactor) DropTombstones() error {
	c.o.Gate.Lock()
	defer c.o.Gate.Unlock()
	now, all := c.o.Versions.Latest(), c.o.Buckets.Buckets()
	all = slices.DeleteFunc(all, func(b buckets.Info) bool { return len(now.Tombstones(b.ID)) == 0 })
	if err := c.o.Failed(); len(all) == 0 || err != nil || c.o.Gate.IsClosed() {
		return err
	}
	if err := c.o.Dir.RemoveLeftovers(); err != nil {
		return err
	}
	left := c.o.Dir.PurgedThrough()
	var e manifest.Edit
	purgedThrough := make(map[uint64]uint64, len(now.Segments))
	for _, seg := range now.Segments {
		purged := seg.PurgedThrough()
		if d := &seg.Noted.Deleted; d.Series == 0 && !d.Unsure && d.UpTo > purged {
			purged = d.UpTo
			e.Purged = append(e.Purged, manifest.PurgedSegment{Seq: seg.Meta.Seq, Purged: purged})
		}
		purgedThrough[seg.Meta.Seq] = purged
	}
	for i := range all {
		dropped := manifest.DroppedTombstones{Bucket: all[i].ID, DeleteSequence: left, LSN: c.o.Needed()}
		for _, seg := range now.Segments {
			if seg.Has(dropped.Bucket) || seg.Info.Identities > 0 {
				dropped.DeleteSequence = min(dropped.DeleteSequence, purgedThrough[seg.Meta.Seq])
			}
		}
		// hides nothing of a series that was deleted since
		for _, h := range now.Holes(dropped.Bucket).Holes() {
			dropped.DeleteSequence = min(dropped.DeleteSequence, h.At.Generation)
		}
		if t := now.Tombstones(dropped.Bucket); len(t.Subtract(dropped)) < len(t) {
			e.DropTombstones = append(e.DropTombstones, dropped)
		}
	}
	if len(e.Purged)+len(e.DropTombstones) == 0 {
		return nil
	}
	// A power cut may undo the deletions: no later one gets a number up to these.
	e.NextSeq = c.o.Dir.NextNumber()
	if err := c.o.Commit(e); err != nil {
		return err
	}
	for _, seg := range now.Segments {
		seg.SetPurged(purgedThrough[seg.Meta.Seq])
	}
	c.o.Versions.Publish(func(v *version.Version) {
		for _, dead := range e.DropTombstones {
			v.Hide(dead.Bucket, v.Tombstones(dead.Bucket).Subtract(dead))
		}
	})
	return nil
}
