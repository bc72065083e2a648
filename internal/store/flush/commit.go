package flush

import (
	"errors"

	"dalmatiner/internal/disk/datadir"
	"dalmatiner/internal/disk/manifest"
	"dalmatiner/internal/disk/version"
	"dalmatiner/internal/disk/wal"
)

// putCatalogue does step 3. After an error the catalogue may know series that
// no committed segment names; the log still defines them, and the next flush
// names them.
//
// A catalogue that has failed does not keep anything from being flushed. All that it would know is
// in segments and log, and the commit says that the next start has to rebuild it.
func (f *Flusher) putCatalogue(u *unit) error {
	err := f.changeCatalogue(u)
	if failed := f.o.Catalogue.Failure(); failed != nil {
		f.o.Damage.Report(datadir.Catalogue, failed)
	} else if err != nil {
		return err
	}
	f.o.Step(StepCatalogue)
	return nil
}

func (f *Flusher) changeCatalogue(u *unit) error {
	c := f.o.Catalogue
	if err := c.Change(u.changes.Catalogue); err != nil {
		return err
	}
	for _, d := range u.changes.Buckets {
		if err := c.DeleteBucket(d.ID); err != nil {
			return err
		}
	}
	return c.Flush()
}

// commit does step 4: see Commit for its errors.
func (f *Flusher) commit(u *unit, seg *version.Segment) error {
	var m *manifest.Segment
	if seg != nil {
		m = &seg.Meta
	}
	if err := f.Commit(f.edit(u, m)); err != nil {
		return err
	}
	f.o.Step(StepCommitted)
	return nil
}

// uncommitted gives up a flush whose commit failed. For want of room it is as if it had
// not been; after any other error the MANIFEST may name its file.
func (f *Flusher) uncommitted(u *unit, seg *version.Segment, err error) error {
	if seg != nil {
		err = errors.Join(err, seg.Reader.Close())
	}
	if !errors.Is(err, manifest.ErrUnwritten) {
		return err
	}
	if seg != nil {
		err = errors.Join(err, f.o.Dir.Discard(&seg.Meta))
	}
	f.abort(u)
	return err
}

// Commit makes an edit permanent, of a flush or of a merge. The caller has the gate, unless the
// edit is about the log alone. On a full disk, manifest.ErrUnwritten, it does not count, points are
// refused, and a flush is tried every second until there is room. Any other error ends the store:
// what is on disk is no longer known.
func (f *Flusher) Commit(e manifest.Edit) error {
	err := f.o.Manifest.Commit(e)
	switch pressure := f.o.Pressure; {
	case errors.Is(err, manifest.ErrUnwritten):
		pressure.SetFlushFailed(true)
		pressure.SetUnwritten(true)
		pressure.CheckDisk()
	case errors.Is(err, manifest.ErrClosed): // at the end of the store
	case err != nil:
		pressure.Fail(err)
	default:
		pressure.SetUnwritten(false)
	}
	return err
}

func (f *Flusher) edit(u *unit, m *manifest.Segment) manifest.Edit {
	e := manifest.Edit{
		PutBuckets:      u.buckets,
		DeleteBuckets:   u.changes.Buckets,
		Tombstones:      u.changes.Tombstones,
		ReplayPosition:  u.positions.Base,
		ReplayPositions: u.positions.Own,
		Accounts:        u.accounts,
		NextSeq:         f.o.Dir.NextNumber(),
		Catalogue:       f.o.Catalogue.Mark(),
		Slots:           manifest.Slots{Highest: u.highest, Late: u.late},
		Incarnation:     f.o.Columns.Deletions.Highest(),
		RememberAfter:   u.forget,
		DeletionsFrom:   f.o.Buckets.DeletionsFrom(),
	}
	if m != nil {
		e.AddSegments = []manifest.Segment{*m}
	}
	e.NextGroup = f.o.Columns.Groups.Next()
	e.Files = u.files
	return e
}

// publish moves readers from the head to the segment and does step 5. The segment is
// there before a group drops what it holds: a reader, who copies from the head before
// he looks at segments, may see a point twice, never not at all.
func (f *Flusher) publish(u *unit, seg *version.Segment) {
	for _, h := range u.highest {
		f.o.Columns.RaiseHighest(h.Bucket, h.Slot)
	}
	f.forget(u.forget, u.early)
	if seg != nil {
		f.o.Versions.Publish(func(v *version.Version) {
			v.Add(seg)
			u.eachAdopted(func(bucket uint64, _ []Chunk) { v.Change(bucket) })
		})
	}
	for _, g := range u.captures.Groups {
		sealed, late := g.EndFlush()
		f.o.Pressure.AddSealed(-sealed)
		f.o.Pressure.AddLate(-late)
	}
	if u.rarely {
		f.o.Arenas.ReleaseSealed()
	}
	f.o.Columns.Unflushed.NoteCommit(u.changes)
	f.committedSides()
	f.countAdopted(u)
	f.Count()
	f.o.Columns.NoteSilent(u.positions.Of)
	f.o.Pressure.MakeRoom()
	f.o.Committed()
	f.needed.Store(uint64(u.lowWater()))
	// The second reading of a replay goes on from u.base, whatever it will pass over.
	if err := f.o.Log.RemoveBelow(min(u.lowWater(), u.base)); err != nil {
		f.o.Logger.Warn("old log files stay until the next flush", "err", err)
	}
	f.o.Step(StepLogTrimmed)
}

// lowWater is the first position in the log that a restart needs.
func (u *unit) lowWater() wal.LSN {
	return min(wal.LSN(u.accounts.AccountLSN), u.positions.Lowest())
}

// forget forgets the deletions of series that an edit did that is committed.
func (f *Flusher) forget(upTo uint64, early int64) {
	if f.o.Columns.ForgetDeletions(upTo) && early > 0 {
		f.counters.forgotten.Add(early)
		f.o.Logger.Warn("deletions of series are forgotten before their time: there are too many",
			"series", early, "limit", f.o.MaxDeletions())
	}
}
