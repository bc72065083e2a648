package store

import (
	"errors"

	"dalmatiner/internal/catalogue"
	"dalmatiner/internal/compaction"
	"dalmatiner/internal/datadir"
	"dalmatiner/internal/durable"
	"dalmatiner/internal/manifest"
	"dalmatiner/internal/recovery"
	"dalmatiner/internal/version"
)

// planFiles decides what becomes of every file of segments. Nothing is changed yet.
func (s *Store) planFiles(state *manifest.State, created bool) (*manifest.State, error) {
	in, readers, err := recovery.Look(s.o.FS, s.o.Dir, state, s.files.Open)
	s.readers = readers
	if err != nil {
		return nil, errors.Join(err, readers.Close(), s.manifest.Close())
	}
	in.Now = s.o.Now().UnixMilli()
	plan := recovery.Decide(in)
	s.start = &plan
	if used := in.LogFrom != 0 || len(in.Files) > 0; used && state.Suspect {
		s.buckets.DeletionsLost(s.o.Now()) // edits with some may be lost
		if created {
			s.damage.Report("MANIFEST", errors.New("both copies are missing: the segments say what they held"))
		}
	}
	for _, l := range plan.Lines() {
		if l.Damage {
			s.damage.Report("segment "+l.File, errors.New(l.Text))
		} else {
			s.o.Logger.Info("start: " + l.File + " " + l.Text)
		}
	}
	if plan.Rebuilt {
		plan.State.Catalogue |= catalogue.NamesUnread // it may not have all that segments name
	}
	return plan.State, nil
}

// openSegments opens the segments of the plan and does with the others what it says.
func (s *Store) openSegments(state *manifest.State) error {
	plan := s.start
	var all []*version.Segment
	for _, m := range state.Segments {
		if r := s.readers[m.Seq]; r != nil {
			all = append(all, s.dir.Stored(m, r))
			delete(s.readers, m.Seq)
		} else {
			all = append(all, s.dir.Later(m))
		}
	}
	s.versions.Publish(func(v *version.Version) { v.Add(all...) })
	if err := s.readers.Close(); err != nil {
		return err
	}
	s.start, s.readers = nil, nil
	s.dir.RaiseNumber(plan.NextSeq)
	for i := range plan.Lost {
		s.account.Lose(compaction.LostSegment, uint64(max(plan.Lost[i].Meta.Points, 0)))
	}
	for _, l := range plan.Found {
		s.account.Recover(compaction.LostSegment, l.Points)
	}
	permanent, err := s.commitPlan(plan)
	if err != nil || !permanent {
		return err // on a full disk the next start finds the files as they are
	}
	return s.sortFiles(plan)
}

// commitPlan makes the plan permanent, unless the disk is full, and puts up the
// tombstones that segments carry where the MANIFEST may have lost them.
func (s *Store) commitPlan(plan *recovery.Plan) (permanent bool, err error) {
	if !plan.Changed {
		return true, nil
	}
	e := plan.Edit
	s.settleBySegments()
	whole, err := s.recoverTombstones(&e)
	if err != nil {
		return false, err
	}
	e.NextSeq = max(e.NextSeq, s.dir.NextNumber())
	e.DeletionsFrom = max(e.DeletionsFrom, s.buckets.DeletionsFrom())
	if plan.Rebuilt {
		e.Catalogue = plan.State.Catalogue // a crash from here on leaves it to the next start
	}
	if !whole {
		e.Settled, e.Suspect = false, plan.State.Suspect
	}
	if len(plan.Lost)+len(plan.Found) > 0 || e.Account != nil {
		e.Account = s.account.Snapshot()
	}
	return s.manifest.Settle(e)
}

// sortFiles does with each file what the plan says, which is committed.
func (s *Store) sortFiles(plan *recovery.Plan) error {
	aside := false
	for i := range plan.Verdicts {
		v := &plan.Verdicts[i]
		switch v.Fate {
		case recovery.Remove:
			err := s.o.FS.Remove(s.path(v.File.Path))
			if err != nil {
				s.o.Logger.Warn("a file that nothing needs stays until the next start", "file", v.File.Path, "err", err)
			}
			s.dir.Removed(&v.File.Meta, err)
		case recovery.Aside:
			if err := s.dir.SetAside(v.File.Path); err != nil {
				return err
			}
			aside = true
		}
	}
	if !aside {
		return nil
	}
	return durable.SyncDir(s.o.FS, s.path(datadir.LostFound))
}
