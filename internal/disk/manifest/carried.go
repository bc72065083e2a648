package manifest

import (
	"cmp"
	"encoding/binary"
	"slices"
)

// LostSegment is a segment that did not open or was missing, and whose points
// were counted as lost.
type LostSegment struct {
	Seq    uint64
	Kind   Kind
	Points uint64
}

// LossChanges are the losses of an edit.
type LossChanges struct {
	Lost  []LostSegment // are counted as lost
	Found []uint64      // are there again
}

// LiveSegment is the number of a segment that counts.
type LiveSegment struct {
	Seq  uint64
	Kind Kind
}

// carriedDeletions is how many series segments name again and again of deletions that
// are remembered: some 90 kB a segment.
const carriedDeletions = 4096

// newest returns the newest deletions, of so many series at most.
func newest(all []Tombstones, series int) []Tombstones {
	out := slices.Clone(all)
	slices.SortStableFunc(out, func(a, b Tombstones) int {
		return cmp.Compare(b.Incarnation, a.Incarnation)
	})
	for i := range out {
		if series -= len(out[i].Series); series < 0 {
			return out[:i]
		}
	}
	return out
}

// CarriedEdit returns what a segment says of the state after its commit. It is what the MANIFEST
// would say, with three differences. It names segments by their numbers instead of descriptions. It
// has no tombstones, because segments name theirs themselves. It has only the newest remembered
// deletions. So no other file is needed to know it. The edit shares the slices of s.
func (s *State) CarriedEdit() Edit {
	e := *s.snapshot()
	e.begin, e.AddSegments, e.Tombstones, e.Suspect, e.Catalogue = begin{}, nil, nil, false, 0
	e.Files = FileChanges{Lost: s.LostFiles} // side files say what they are
	e.Remembered = newest(s.Remembered, carriedDeletions)
	e.Live = make([]LiveSegment, 0, len(s.Segments)+len(s.Lost))
	for i := range s.Segments {
		e.Live = append(e.Live, LiveSegment{s.Segments[i].Seq, s.Segments[i].Kind})
	}
	for _, l := range s.Lost {
		e.Live = append(e.Live, LiveSegment{l.Seq, l.Kind}) // its file may come back
	}
	slices.SortFunc(e.Live, func(a, b LiveSegment) int { return cmp.Compare(a.Seq, b.Seq) })
	return e
}

// Apply adds an edit to the state. It keeps no slice of e but the series of
// tombstones.
func (s *State) Apply(e *Edit) { s.apply(e) }

// Clone returns a copy that shares nothing but the series of tombstones.
func (s *State) Clone() *State { return s.clone() }

// Encode returns the bytes of an edit, for segments that carry it.
func (e *Edit) Encode() []byte { return appendEdit(nil, e) }

// DecodeEdit undoes Encode. The edit shares no memory with src.
func DecodeEdit(src []byte) (Edit, error) { return parseEdit(src) }

func appendLive(dst []byte, live []LiveSegment) []byte {
	if live == nil {
		return dst
	}
	dst = binary.AppendUvarint(append(dst, tagLive), uint64(len(live)))
	last := uint64(0)
	for _, l := range live {
		dst = append(binary.AppendUvarint(dst, l.Seq-last), byte(l.Kind))
		last = l.Seq
	}
	return dst
}

func (r *reader) live() []LiveSegment {
	n := r.UpTo(uint64(len(r.Src)) / 2)
	live := make([]LiveSegment, 0, n)
	last := uint64(0)
	for ; n > 0 && !r.Bad; n-- {
		last += r.Uvarint()
		live = append(live, LiveSegment{last, r.kind()})
	}
	return live
}

func (s *State) applyLost(e *Edit) {
	for _, l := range e.Lost {
		s.Lost = put(s.Lost, l, l.Seq, byLost)
	}
	for _, seq := range e.Found {
		s.Lost = remove(s.Lost, seq, byLost)
	}
}
