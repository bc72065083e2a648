package manifest

import (
	"cmp"
	"slices"

	"dalmatiner/internal/disk/hole"
	"dalmatiner/internal/disk/origin"
	"dalmatiner/internal/model/buckets"
)

// Kind is the kind of a segment.
type Kind uint8

// The kinds.
const (
	Flush   Kind = iota // flush/<seq>.seg: what was sealed, all buckets
	Window              // window/<seq>.seg: all that was flushed of a bucket and a range
	Overlay             // overlay/<seq>.seg: late points that win over windows
)

// Segment names one committed segment file.
type Segment struct {
	Seq    uint64 // never given again
	Kind   Kind
	Bytes  int64
	Sum    uint32 // of all that it has
	Points int64

	// Generation orders what segments say of the same slot: the highest wins,
	// and of equal ones the window. It is the Seq of the newest flush whose
	// points the segment holds.
	Generation uint64
	// Purged says what the segment holds nothing of: series that a tombstone with
	// a DeleteSequence up to it deletes. 0 stands for the Generation.
	Purged uint64
	// Ranges are what the segment holds chunks of, sorted.
	Ranges []Range
	// Marks say which of its chunks may lie over something older. They never change.
	Marks hole.Marks
}

// Range is a range of chunks of one bucket: [First, Past).
type Range struct {
	Bucket      uint64
	First, Past int64
}

// PurgedThrough is the DeleteSequence up to which tombstones concern a segment no more: what a
// segment of a later generation holds was written with the tombstone in sight.
func (s *Segment) PurgedThrough() uint64 { return max(s.Purged, s.Generation) }

// Tombstones delete series of a bucket: what a segment holds of them is hidden
// if its PurgedThrough is lower than DeleteSequence.
type Tombstones struct {
	Bucket         uint64
	DeleteSequence uint64 // a number of segments: the next one when the series were deleted
	// of the last record of the deletion: points of the series in front of it are deleted
	LSN uint64

	// Incarnation is what the series have from then on: the clock of the deletion. It
	// is 0 where they expired, which is not remembered.
	Incarnation uint64
	Series      []DeletedSeries
}

// DeletedSeries is a series that was deleted, and the column it had.
type DeletedSeries struct {
	Hash   [16]byte
	Group  uint32
	Column uint8
}

// DroppedTombstones drops the tombstones of a bucket that nothing needs any more: those
// with a DeleteSequence up to the one here, deleted in front of LSN.
type DroppedTombstones struct {
	Bucket         uint64
	DeleteSequence uint64
	LSN            uint64
}

// ReplayPosition is the LSN from which on a group needs the log.
type ReplayPosition struct {
	Group uint32
	LSN   uint64
}

// PurgedSegment raises the Purged of a segment.
type PurgedSegment struct{ Seq, Purged uint64 }

// Accounts are the account of points and the ledger of copies at one moment.
type Accounts struct {
	// Account and Copies are opaque, and replace the former ones. nil is unchanged, and in a State
	// that there never was one; empty is a value.
	Account, Copies []byte
	AccountLSN      uint64 // they hold all records of the log below it
}

func (a *Accounts) apply(e *Accounts) {
	if e.Account != nil {
		a.Account = append([]byte{}, e.Account...)
	}
	if e.Copies != nil {
		a.Copies = append([]byte{}, e.Copies...)
	}
	if e.AccountLSN != 0 {
		a.AccountLSN = e.AccountLSN
	}
}

// Edit is one atomic change. Zero fields change nothing.
type Edit struct {
	AddSegments    []Segment
	RemoveSegments []uint64 // unknown ones are passed over
	// new, or all properties of a known one; a deleted one stays deleted
	PutBuckets     []buckets.Info
	DeleteBuckets  []buckets.Deletion  // with their tombstones
	DropTombstones []DroppedTombstones // before Tombstones are added
	Tombstones     []Tombstones        // Commit keeps their Series
	Purged         []PurgedSegment     // unknown ones are passed over

	// Remembered are added to State.Remembered, to which DropTombstones moves tombstones by
	// itself. Recall makes tombstones again of all that there are.
	Remembered    []Tombstones
	Recall        bool
	RememberAfter uint64 // these never fall
	Incarnation   uint64

	AddHoles []hole.Hole
	EndHoles []hole.Hole // equal ones of State or AddHoles end; unknown ones are passed over
	Slots

	// ReplayPositions replaces the replay positions of the groups it lists. Where ReplayPosition is
	// not 0, it is the replay position of all others from then on, whatever they had before.
	ReplayPositions []ReplayPosition
	ReplayPosition  uint64

	Accounts

	NextSeq   uint64 // these never fall
	NextGroup uint32

	// DeletionsFrom raises State.DeletionsFrom.
	DeletionsFrom uint64

	// Catalogue is what the catalogue must at least be: its owner's number for
	// the state that the edit relies on.
	Catalogue uint64

	// LastFlush and LastMerged are the highest numbers of a flush and of any other
	// segment that an edit ever named; AddSegments raises them by itself. The MANIFEST
	// knows what became of all up to them.
	LastFlush, LastMerged uint64

	LossChanges
	Files FileChanges

	// Live are, in an edit that a segment carries, the numbers of the segments that
	// count when it is committed, sorted. Of those up to LastFlush and LastMerged no
	// other one counts any more. The state does not change by it.
	Live []LiveSegment

	Settled bool // ends State.Suspect
	Suspect bool // begins it

	begin
}

// begin is what an edit says that is a snapshot.
type begin struct {
	reset     bool // forget all edits before
	directory origin.Directory
}

// State is the sum of all edits. The slices are sorted by id.
type State struct {
	Directory      origin.Directory
	Segments       []Segment
	Buckets        []buckets.Info
	DeletedBuckets []buckets.Deletion // all there ever were: none of their ids is given again
	Tombstones     []Tombstones
	// of deletions with a clock above RememberAfter that hide nothing any more
	Remembered    []Tombstones
	RememberAfter uint64
	Incarnation   uint64      // the highest that a deletion of series gave
	Holes         []hole.Hole // those of deleted buckets go with them
	Slots
	ReplayPosition uint64 // of the groups that ReplayPositions does not list
	Accounts
	NextSeq    uint64
	NextGroup  uint32
	Catalogue  uint64
	LastFlush  uint64 // see Edit
	LastMerged uint64
	Lost       []LostSegment
	Files      []File     // sorted by kind and number
	LostFiles  []LostFile // likewise

	EventAccount    []byte // nil = there never was one
	EventAccountLSN uint64

	// DeletionsFrom is 0 where DeletedBuckets has all buckets that were deleted.
	// Otherwise it may lack some that were deleted before: a clock as in
	// buckets.Deletion.
	DeletionsFrom uint64

	// Suspect says that edits may be missing: the MANIFEST was damaged, or
	// there was none. As long as it holds, segment files that are not listed
	// must not be deleted. The owner ends it with Edit.Settled.
	Suspect bool

	replayPositions []ReplayPosition
}

// ReplayPositions returns the replay positions of the groups that have one of their own, sorted
// by group. The slice is the caller's.
func (s *State) ReplayPositions() []ReplayPosition { return slices.Clone(s.replayPositions) }

// ReplayPositionOf returns the replay position of a group.
func (s *State) ReplayPositionOf(group uint32) uint64 {
	i, ok := slices.BinarySearchFunc(s.replayPositions, group, byGroup)
	if ok {
		return s.replayPositions[i].LSN
	}
	return s.ReplayPosition
}

func bySeq(s Segment, seq uint64) int    { return cmp.Compare(s.Seq, seq) }
func byID(b buckets.Info, id uint64) int { return cmp.Compare(b.ID, id) }
func byDeleted(d buckets.Deletion, id uint64) int {
	return cmp.Compare(d.ID, id)
}
func byLost(l LostSegment, seq uint64) int       { return cmp.Compare(l.Seq, seq) }
func byGroup(f ReplayPosition, group uint32) int { return cmp.Compare(f.Group, group) }

// IsDeleted reports whether the id is that of a deleted bucket.
func (s *State) IsDeleted(bucket uint64) bool {
	_, ok := slices.BinarySearchFunc(s.DeletedBuckets, bucket, byDeleted)
	return ok
}

// HasSegment reports whether a segment of that number is committed.
func (s *State) HasSegment(seq uint64) bool {
	_, ok := slices.BinarySearchFunc(s.Segments, seq, bySeq)
	return ok
}

// clone returns a copy that shares nothing. Empty slices become nil, but for
// the account, where the difference counts.
func (s *State) clone() *State {
	c := *s
	c.Segments = append([]Segment(nil), s.Segments...)
	c.Buckets = append([]buckets.Info(nil), s.Buckets...)
	c.Holes = append([]hole.Hole(nil), s.Holes...)
	c.Highest = append([]Highest(nil), s.Highest...)
	c.Late = append([]LateNote(nil), s.Late...)
	c.DeletedBuckets = append([]buckets.Deletion(nil), s.DeletedBuckets...)
	c.Tombstones = append([]Tombstones(nil), s.Tombstones...) // their series never change
	c.Remembered = append([]Tombstones(nil), s.Remembered...)
	c.Account, c.Copies = slices.Clone(s.Account), slices.Clone(s.Copies)
	c.Lost = append([]LostSegment(nil), s.Lost...)
	c.Files = append([]File(nil), s.Files...) // their ranges never change
	c.LostFiles = append([]LostFile(nil), s.LostFiles...)
	c.EventAccount = slices.Clone(s.EventAccount)
	c.replayPositions = append([]ReplayPosition(nil), s.replayPositions...)
	return &c
}

// apply adds an edit. It keeps no slice of e. A bucket that is both put and
// deleted is deleted; a segment that is both removed and added is replaced.
func (s *State) apply(e *Edit) {
	if e.reset {
		*s = State{Directory: e.directory}
	}
	for _, seq := range e.RemoveSegments {
		s.Segments = remove(s.Segments, seq, bySeq)
	}
	for _, seg := range e.AddSegments {
		s.Segments = put(s.Segments, seg, seg.Seq, bySeq)
		if seg.Kind == Flush {
			s.LastFlush = max(s.LastFlush, seg.Seq)
		} else {
			s.LastMerged = max(s.LastMerged, seg.Seq)
		}
	}
	s.LastFlush, s.LastMerged = max(s.LastFlush, e.LastFlush), max(s.LastMerged, e.LastMerged)
	for _, c := range e.Purged {
		if i, ok := slices.BinarySearchFunc(s.Segments, c.Seq, bySeq); ok {
			s.Segments[i].Purged = max(s.Segments[i].Purged, c.Purged)
		}
	}
	s.applyLost(e)
	s.applyFiles(e)
	for _, b := range e.PutBuckets {
		if !s.IsDeleted(b.ID) {
			s.Buckets = put(s.Buckets, b, b.ID, byID)
		}
	}
	for _, d := range e.DeleteBuckets {
		s.Buckets = remove(s.Buckets, d.ID, byID)
		s.DeletedBuckets = put(s.DeletedBuckets, d, d.ID, byDeleted)
	}
	s.applyTombstones(e)
	s.applyHoles(e)
	if e.ReplayPosition != 0 {
		s.ReplayPosition, s.replayPositions = e.ReplayPosition, nil
	}
	for _, f := range e.ReplayPositions {
		s.replayPositions = put(s.replayPositions, f, f.Group, byGroup)
	}
	was := s.AccountLSN
	s.Accounts.apply(&e.Accounts)
	s.applyLate(e, was)
	s.NextSeq = max(s.NextSeq, e.NextSeq)
	s.DeletionsFrom = max(s.DeletionsFrom, e.DeletionsFrom)
	s.NextGroup = max(s.NextGroup, e.NextGroup)
	if e.Catalogue != 0 {
		s.Catalogue = e.Catalogue
	}
	s.Suspect = s.Suspect && !e.Settled || e.Suspect
}

func (s *State) applyTombstones(e *Edit) {
	s.Incarnation, s.RememberAfter = max(s.Incarnation, e.Incarnation),
		max(s.RememberAfter, e.RememberAfter)
	if e.Recall {
		s.Tombstones, s.Remembered = append(s.Tombstones, s.Remembered...), nil
	}
	s.Tombstones = slices.DeleteFunc(s.Tombstones, func(t Tombstones) bool {
		dropped := slices.ContainsFunc(e.DropTombstones, func(b DroppedTombstones) bool {
			return b.Bucket == t.Bucket && t.DeleteSequence <= b.DeleteSequence && t.LSN < b.LSN
		})
		if dropped {
			s.Remembered = append(s.Remembered, t)
		}
		return dropped || s.IsDeleted(t.Bucket)
	})
	for _, t := range e.Remembered {
		s.Remembered = append(s.Remembered, t)
		s.Incarnation = max(s.Incarnation, t.Incarnation)
	}
	s.Remembered = slices.DeleteFunc(s.Remembered, func(t Tombstones) bool {
		return s.IsDeleted(t.Bucket) || t.Incarnation <= s.RememberAfter
	})
	for _, t := range e.Tombstones {
		if !s.IsDeleted(t.Bucket) {
			s.Tombstones = append(s.Tombstones, t)
			s.Incarnation = max(s.Incarnation, t.Incarnation)
		}
	}
}

// snapshot returns the one edit that makes s out of nothing. It shares the
// slices of s.
func (s *State) snapshot() *Edit {
	return &Edit{
		begin:           begin{reset: true, directory: s.Directory},
		AddSegments:     s.Segments,
		PutBuckets:      s.Buckets,
		DeleteBuckets:   s.DeletedBuckets,
		Tombstones:      s.Tombstones,
		Remembered:      s.Remembered,
		RememberAfter:   s.RememberAfter,
		Incarnation:     s.Incarnation,
		AddHoles:        s.Holes,
		Slots:           s.Slots,
		ReplayPositions: s.replayPositions,
		ReplayPosition:  s.ReplayPosition,
		Accounts:        s.Accounts,
		NextSeq:         s.NextSeq,
		NextGroup:       s.NextGroup,
		DeletionsFrom:   s.DeletionsFrom,
		Catalogue:       s.Catalogue,
		LastFlush:       s.LastFlush,
		LastMerged:      s.LastMerged,
		LossChanges:     LossChanges{Lost: s.Lost},
		Files: FileChanges{
			Add:             s.Files,
			Lost:            s.LostFiles,
			EventAccount:    s.EventAccount,
			EventAccountLSN: s.EventAccountLSN,
		},
		Suspect: s.Suspect,
	}
}

// put inserts v into a sorted slice, or replaces the element with its id.
func put[E, ID any](to []E, v E, id ID, compare func(E, ID) int) []E {
	i, found := slices.BinarySearchFunc(to, id, compare)
	if found {
		to[i] = v
		return to
	}
	return slices.Insert(to, i, v)
}

func remove[E, ID any](from []E, id ID, compare func(E, ID) int) []E {
	i, found := slices.BinarySearchFunc(from, id, compare)
	if !found {
		return from
	}
	return slices.Delete(from, i, i+1)
}
