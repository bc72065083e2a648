package recovery

import (
	"cmp"
	"slices"
	"time"

	"dalmatiner/internal/codec/chunk"
	"dalmatiner/internal/disk/hole"
	"dalmatiner/internal/disk/manifest"
	"dalmatiner/internal/model/buckets"
	"dalmatiner/internal/model/incarnation"
)

// rebuild makes the edit that leads from the state that was read to the one to go
// on with.
func (p *planner) rebuild() {
	st, e := p.in.State, &p.plan.Edit
	unread := false
	for i := range p.plan.Verdicts {
		v := &p.plan.Verdicts[i]
		if f := v.File; f.Unread && v.Fate == Keep && !p.named[f.Seq] {
			unread = true
			if !isLost(st, f.Seq) { // what is written meanwhile must not call it dead
				e.Lost = append(e.Lost, manifest.LostSegment{Seq: f.Seq, Kind: f.Kind})
			}
		}
		if v.Fate == Adopt {
			e.AddSegments = append(e.AddSegments, v.File.Meta)
			if i, ok := slices.BinarySearchFunc(st.Lost, v.File.Seq,
				func(l manifest.LostSegment, seq uint64) int {
					return cmp.Compare(l.Seq, seq)
				}); ok {
				p.plan.Found = append(p.plan.Found, recovered(st.Lost[i], v.File.Meta.Points))
				e.Found = append(e.Found, v.File.Seq)
			}
		}
	}
	slices.SortFunc(e.AddSegments, func(a, b manifest.Segment) int {
		return cmp.Compare(a.Seq, b.Seq)
	})
	for i := range st.Segments {
		if seq := st.Segments[i].Seq; p.dead[seq] || p.lost[seq] != nil || p.outlived[seq] {
			e.RemoveSegments = append(e.RemoveSegments, seq)
		}
	}
	for _, l := range p.plan.Lost {
		e.Lost = append(e.Lost, manifest.LostSegment{
			Seq:    l.Meta.Seq,
			Kind:   l.Meta.Kind,
			Points: uint64(max(l.Meta.Points, 0)),
		})
		e.AddHoles = append(e.AddHoles, l.Meta.LostMarks(chunk.Slots)...)
	}
	for _, h := range st.Holes {
		if h.Cause == hole.File && slices.Contains(e.Found, h.Source) {
			e.EndHoles = append(e.EndHoles, h) // its file is back
		}
	}
	if st.Suspect || len(e.AddSegments) > 0 {
		e.Recall = true // what is taken in may be older than a deletion of which nothing was left
		p.takeOver()
	}
	p.takeBuckets()
	p.plan.NextSeq = max(st.NextSeq, e.NextSeq, p.in.Highest+1, 1)
	p.plan.Changed = st.Suspect ||
		len(e.AddSegments)+len(e.RemoveSegments)+len(e.Lost)+len(e.Files.Add)+len(e.Files.Remove)+len(
			e.Files.Lost)+len(e.Files.Found) > 0
	if p.plan.Changed {
		e.NextSeq = p.plan.NextSeq
		e.Settled, e.Suspect = !unread, unread
	}
	p.plan.State = st.Clone()
	p.plan.State.Apply(e)
}

// recovered is what comes back with a file of so many points: its own, and of those that
// merges left out under its hole as many, at most, which it lies over.
func recovered(l manifest.LostSegment, points int64) manifest.LostSegment {
	l.Points = min(l.Points, 2*uint64(max(points, 0)))
	return l
}

// takeOver adds what segments say beside their own descriptions and the MANIFEST
// does not: buckets, deletions, ids, and, where the log does not reach back to
// where the state would have it read, account and replay positions.
func (p *planner) takeOver() {
	st, e := p.in.State, &p.plan.Edit
	var said []*File // by all that open, the oldest first
	known := newDeletions(st)
	forgotten := max(st.RememberAfter, incarnation.ExpiredUpTo(time.UnixMilli(p.in.Now)))
	for _, f := range p.at {
		if f.Edit != nil {
			said = append(said, f)
		}
	}
	slices.SortFunc(said, func(a, b *File) int {
		return cmp.Or(cmp.Compare(a.Edit.AccountLSN, b.Edit.AccountLSN), cmp.Compare(a.Seq, b.Seq))
	})
	for _, f := range said { // an older one still remembers what a newer one says is forgotten
		forgotten = max(forgotten, f.Edit.RememberAfter)
	}
	for _, f := range said {
		s := f.Edit
		for _, h := range s.AddHoles {
			if !slices.Contains(st.Holes, h) && (h.Cause != hole.File || p.at[h.Source] == nil) {
				e.AddHoles = append(e.AddHoles, h)
			}
		}
		p.takeSaidBuckets(s)
		for _, t := range slices.Concat(s.Tombstones, s.Remembered) {
			if t.Incarnation <= forgotten { // a series may have begun anew without it
				e.RememberAfter = max(e.RememberAfter, t.Incarnation)
				t.Incarnation = 0
			}
			if known.add(t) {
				e.Tombstones = append(e.Tombstones, t)
			}
			e.NextSeq = max(e.NextSeq, t.DeleteSequence)
		}
		for _, l := range s.Lost {
			if p.at[l.Seq] == nil && !isLost(st, l.Seq) && p.lost[l.Seq] == nil {
				e.Lost = append(e.Lost, l) // counted in the account that it carries
			}
		}
		p.takeLostFiles(s.Files.Lost)
		e.Highest, e.Late = append(e.Highest, s.Highest...), append(e.Late, s.Late...)
		e.NextSeq, e.NextGroup, e.DeletionsFrom = max(e.NextSeq, s.NextSeq),
			max(e.NextGroup, s.NextGroup), max(e.DeletionsFrom, s.DeletionsFrom)
		e.Incarnation, e.RememberAfter = max(e.Incarnation, s.Incarnation),
			max(e.RememberAfter, s.RememberAfter)
		e.LastFlush, e.LastMerged = max(e.LastFlush, s.LastFlush), max(e.LastMerged, s.LastMerged)
	}
	if len(said) == 0 || p.logReachesBack() {
		return
	}
	newest := said[len(said)-1].Edit
	if newest.AccountLSN > st.AccountLSN {
		e.Accounts = newest.Accounts
	}
	if !p.flushMissing() && newest.AccountLSN >= st.AccountLSN {
		e.ReplayPosition, e.ReplayPositions = newest.ReplayPosition, newest.ReplayPositions
	}
	p.plan.Rebuilt = true
}

// takeSaidBuckets adds the buckets that a segment knows of, and those it knows to be deleted.
func (p *planner) takeSaidBuckets(s *manifest.Edit) {
	st, e := p.in.State, &p.plan.Edit
	for _, d := range s.DeleteBuckets {
		known := func(o buckets.Deletion) bool { return o.ID == d.ID }
		if !st.IsDeleted(d.ID) && !slices.ContainsFunc(e.DeleteBuckets, known) {
			e.DeleteBuckets = append(e.DeleteBuckets, d)
		}
	}
	for _, b := range s.PutBuckets {
		if newer := s.AccountLSN > st.AccountLSN; newer || !hasBucket(st, b.ID) {
			e.PutBuckets = append(slices.DeleteFunc(e.PutBuckets, func(o buckets.Info) bool {
				return o.ID == b.ID
			}), b)
		}
	}
}

// takeLostFiles adds the lost side files that a segment knows of.
func (p *planner) takeLostFiles(said []manifest.LostFile) {
	e := &p.plan.Edit.Files
	for i := range said {
		l := &said[i]
		same := func(o manifest.LostFile) bool { return o.FileName == l.FileName }
		if p.in.State.LostFile(l.FileName) == nil && !p.there(l.FileName) &&
			!slices.ContainsFunc(e.Lost, same) {
			e.Lost = append(e.Lost, *l)
		}
	}
}

// deletions are those of series that are known, by bucket and DeleteSequence.
type deletions map[[2]uint64][]manifest.Tombstones

func newDeletions(st *manifest.State) deletions {
	d := make(deletions)
	for _, t := range slices.Concat(st.Tombstones, st.Remembered) {
		d.add(t)
	}
	return d
}

// add reports whether a deletion was not known.
func (d deletions) add(t manifest.Tombstones) bool {
	at := [2]uint64{t.Bucket, t.DeleteSequence}
	same := func(o manifest.Tombstones) bool {
		return o.LSN == t.LSN && slices.Equal(o.Series, t.Series)
	}
	if slices.ContainsFunc(d[at], same) {
		return false
	}
	d[at] = append(d[at], t)
	return true
}

// flushMissing reports whether a flush is lost: the log may still hold some of it.
func (p *planner) flushMissing() bool {
	for i := range p.in.Files {
		if f := &p.in.Files[i]; f.Kind == manifest.Flush && !f.Temp && !f.Foreign && !f.opens() &&
			!p.dead[f.Seq] {
			return true
		}
	}
	return slices.ContainsFunc(p.plan.Lost, func(l Loss) bool { return l.Meta.Kind == manifest.Flush })
}

func hasBucket(st *manifest.State, id uint64) bool {
	return slices.ContainsFunc(st.Buckets, func(b buckets.Info) bool { return b.ID == id })
}

// replayFrom is the first position in the log that a start on the state needs.
func replayFrom(st *manifest.State) uint64 {
	from := min(st.ReplayPosition, st.AccountLSN)
	for _, f := range st.ReplayPositions() {
		from = min(from, f.LSN)
	}
	return from
}
