package startup

import (
	"dalmatiner/internal/codec/chunk"
	"dalmatiner/internal/disk/datadir"
	"dalmatiner/internal/disk/manifest"
	"dalmatiner/internal/disk/mirror"
	"dalmatiner/internal/disk/segment"
	"dalmatiner/internal/disk/version"
	"dalmatiner/internal/host/durable"
	"dalmatiner/internal/model/incarnation"
	"dalmatiner/internal/model/metric"
	"dalmatiner/internal/store/compaction"
	"dalmatiner/internal/store/recovery"
	"dalmatiner/internal/write/columns"
)

// openSegments opens the segments of the plan and does with the others what it says.
func (s *start) openSegments() error {
	plan := &s.plan
	var all []*version.Segment
	for _, m := range s.found.State.Segments {
		if r := s.readers[m.Seq]; r != nil {
			all = append(all, s.o.Segments.OpenedSegment(m, r))
			delete(s.readers, m.Seq)
		} else {
			all = append(all, s.o.Segments.UnreadSegment(m))
		}
	}
	s.o.Versions.Publish(func(v *version.Version) { v.Add(all...) })
	unused := s.readers
	s.readers = nil
	if err := unused.Close(); err != nil {
		return err
	}
	s.o.Segments.RaiseNumber(plan.NextSeq)
	for i := range plan.Lost {
		s.o.Account.Lose(compaction.LostSegment, uint64(max(plan.Lost[i].Meta.Points, 0)))
	}
	for _, l := range plan.Found {
		s.o.Account.Recover(compaction.LostSegment, l.Points)
	}
	defer func() { s.o.SideFiles(s.found.State, s.found.FilesTaken) }()
	permanent, err := s.commitPlan()
	if err != nil || !permanent {
		return err // on a full disk the next start finds the files as they are
	}
	return s.sortFiles()
}

// commitPlan makes the plan permanent, unless the disk is full, and puts up the
// tombstones that segments carry where the MANIFEST may have lost them.
func (s *start) commitPlan() (permanent bool, err error) {
	plan := &s.plan
	if !plan.Changed {
		return true, nil
	}
	e := plan.Edit
	s.settleBySegments()
	whole, err := s.recoverTombstones(&e)
	if err != nil {
		return false, err
	}
	e.NextSeq = max(e.NextSeq, s.o.Segments.NextNumber())
	e.DeletionsFrom = max(e.DeletionsFrom, s.o.Buckets.DeletionsFrom())
	if plan.Rebuilt {
		e.Catalogue = plan.State.Catalogue // a crash from here on leaves it to the next start
	}
	if !whole {
		e.Settled, e.Suspect = false, plan.State.Suspect
	}
	if len(plan.Lost)+len(plan.Found) > 0 || e.Account != nil {
		e.Account = s.o.Account.Snapshot()
	}
	return s.d.Manifest.Settle(e)
}

// sortFiles does with each file what the plan says, which is committed.
func (s *start) sortFiles() error {
	aside := false
	for i := range s.plan.Verdicts {
		v := &s.plan.Verdicts[i]
		switch v.Fate {
		case recovery.Remove:
			err := s.o.FS.Remove(s.path(v.File.Path))
			if err != nil {
				s.o.Logger.Warn("a file that nothing needs stays until the next start", "file", v.File.Path,
					"err", err)
			}
			s.o.Segments.NoteRemoved(&v.File.Meta, err)
		case recovery.Aside:
			if err := s.o.Segments.SetAside(v.File.Path); err != nil {
				return err
			}
			aside = true
		}
	}
	for i := range s.plan.Sides {
		v := &s.plan.Sides[i]
		path := v.File.Path
		if v.Fate == recovery.Aside {
			if err := mirror.SetAside(s.o.FS, s.o.Dir, path); err != nil {
				return err
			}
		}
		if v.Fate == recovery.Remove || v.Fate == recovery.Aside {
			if err := s.o.FS.Remove(s.path(path)); err != nil {
				s.o.Logger.Warn("a file that nothing needs stays until the next start", "file", path, "err",
					err)
			}
		}
	}
	if !aside {
		return nil
	}
	return durable.SyncDir(s.o.FS, s.path(datadir.LostFound))
}

// showHoles shows the holes that are committed to readers.
func (s *start) showHoles() error {
	s.o.Versions.Publish(func(v *version.Version) {
		v.ShowHoles(s.o.Buckets.Infos(), s.d.Manifest.Holes())
	})
	return nil
}

// settleBySegments raises the highest flushed slots to the ends of all segments: a
// MANIFEST with damage may not have the last ones.
func (s *start) settleBySegments() {
	for _, seg := range s.o.Versions.Latest().Segments {
		for _, r := range seg.Meta.Ranges {
			s.o.Columns.RaiseHighest(r.Bucket, r.Past*chunk.Slots-1)
		}
	}
}

// recoverTombstones publishes the tombstones that segments carry and the MANIFEST has lost, and
// adds them to an edit. Those that nothing needs any more may be among them: they
// hide nothing. It reports whether all segments could be read.
func (s *start) recoverTombstones(e *manifest.Edit) (whole bool, err error) {
	whole = true
	remembered := max(s.o.Columns.Deletions.ForgottenUpTo(), incarnation.ExpiredUpTo(s.o.Now()))
	found := make(map[*columns.Bucket][]version.Tombstone)
	v := s.o.Versions.Latest()
	for _, seg := range v.Segments {
		if seg.Info.Identities == 0 {
			continue
		}
		err := seg.Reader.Series(func(d segment.Series) error {
			b, id := s.o.Buckets.ID(d.Bucket), metric.SeriesID(d.Hash)
			s.o.Columns.Deletions.Advance(d.Incarnation)
			if d.DeleteSequence == 0 || b == nil ||
				v.Tombstones(d.Bucket).DeleteSequence(id) >= d.DeleteSequence {
				return nil
			}
			if d.Incarnation <= remembered { // the series may have begun anew without it
				e.RememberAfter = max(e.RememberAfter, d.Incarnation)
				d.Incarnation = 0
			}
			b.Incarnations.Raise(id, d.Incarnation)
			found[b] = append(found[b], version.Tombstone{
				ID:             id,
				Group:          d.Group,
				Column:         uint8(d.Column),
				DeleteSequence: d.DeleteSequence,
				LSN:            d.Since,
				Incarnation:    d.Incarnation,
			})
			return nil
		})
		whole = whole && !segment.ReadFailed(err)
		if err := s.o.Damage.NoteReadError(seg, err); err != nil {
			return false, err
		}
	}
	s.o.Columns.Deletions.Forget(e.RememberAfter)
	for b, list := range found {
		list = version.Tombstones(nil).Union(list)
		s.o.Columns.PublishTombstones(b.ID, list)
		for _, deletion := range version.ByDeletion(list) {
			s.o.Segments.RaiseNumber(deletion[0].DeleteSequence)
			e.Tombstones = append(e.Tombstones, version.Deletion(b.ID, deletion))
		}
	}
	return whole, nil
}
