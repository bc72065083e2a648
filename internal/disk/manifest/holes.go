package manifest

import (
	"cmp"
	"encoding/binary"
	"slices"

	"dalmatiner/internal/disk/hole"
)

// Highest is the highest slot that a bucket has flushed: see disk/hole/DESIGN.md.
type Highest struct {
	Bucket uint64
	Slot   int64
}

// Fields of edits about what damage hides.
const (
	tagMarks   = 30 // v seq · marks; behind the segment that the edit adds
	tagAddHole = 31 // hole
	tagEndHole = 32 // hole
	tagHighest = 33 // id bucket · z slot
)

// Position is the place of a segment in the order in which segments lie over each
// other.
func (s *Segment) Position() hole.Position {
	return hole.Position{Generation: s.Generation, Window: s.Kind == Window}
}

// LostMarks is what the loss of a whole segment hides: its marks, which all lie in its
// ranges. A chunk has so many slots.
func (s *Segment) LostMarks(slots int64) []hole.Hole {
	var lost []hole.Hole
	for _, r := range s.Ranges {
		for _, m := range s.Marks.Clip(hole.WholeChunks(r.Bucket, r.First, r.Past)) {
			lost = append(lost, m.LossHole(slots, s.Position(), hole.File, s.Seq))
		}
	}
	return hole.Join(lost)
}

func appendMarks(dst []byte, s *Segment) []byte {
	if s.Marks.Empty() {
		return dst
	}
	dst = binary.AppendUvarint(append(dst, tagMarks), s.Seq)
	return hole.AppendMarks(dst, &s.Marks)
}

func appendHoles(dst []byte, e *Edit) []byte {
	for i := range e.AddHoles {
		dst = hole.AppendHole(append(dst, tagAddHole), &e.AddHoles[i])
	}
	for i := range e.EndHoles {
		dst = hole.AppendHole(append(dst, tagEndHole), &e.EndHoles[i])
	}
	for _, h := range e.Highest {
		dst = appendID(append(dst, tagHighest), h.Bucket)
		dst = binary.AppendVarint(dst, h.Slot)
	}
	return dst
}

// marks reads the marks of the segment that was read last.
func (r *reader) marks(e *Edit) {
	seq := r.Uvarint()
	n := len(e.AddSegments)
	if r.Check(n > 0 && e.AddSegments[n-1].Seq == seq && e.AddSegments[n-1].Marks.Empty()); !r.Bad {
		e.AddSegments[n-1].Marks = hole.ReadMarks(&r.Reader)
	}
}

func byBucket(h Highest, bucket uint64) int { return cmp.Compare(h.Bucket, bucket) }

func (s *State) applyHoles(e *Edit) {
	if len(e.AddHoles)+len(e.EndHoles)+len(e.DeleteBuckets) > 0 {
		holes := slices.Concat(s.Holes, e.AddHoles)
		s.Holes = hole.Bound(slices.DeleteFunc(holes, func(h hole.Hole) bool {
			return s.IsDeleted(h.Bucket) || slices.Contains(e.EndHoles, h)
		}), hole.MaxHoles)
	}
	for _, h := range e.Highest {
		i, ok := slices.BinarySearchFunc(s.Highest, h.Bucket, byBucket)
		switch {
		case ok:
			s.Highest[i].Slot = max(s.Highest[i].Slot, h.Slot)
		case !s.IsDeleted(h.Bucket):
			s.Highest = slices.Insert(s.Highest, i, h)
		}
	}
	for _, d := range e.DeleteBuckets {
		s.Highest = remove(s.Highest, d.ID, byBucket)
	}
}

// Holes returns the holes of the state as it is now.
func (m *Manifest) Holes() []hole.Hole {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.state.Holes)
}
