package manifest

import (
	"cmp"
	"encoding/binary"
	"slices"
)

// Slots say how far the slots of buckets go: up in segments, and back in the log.
type Slots struct {
	Highest []Highest // these never fall
	// an edit adds some; what no record of the log needs is dropped. Sorted by bucket and LSN
	Late []LateNote
}

// LateNote says that records of the log go back to a slot of a bucket, or may do so. It is noted
// before anybody is told of such a record. It is about the records in front of the flush that came
// next behind LSN, the end of the log when it was noted.
type LateNote struct {
	Bucket uint64
	Slot   int64
	LSN    uint64
}

const tagLate = 34 // id bucket · z slot · v lsn

func appendLate(dst []byte, late []LateNote) []byte {
	for _, l := range late {
		dst = appendID(append(dst, tagLate), l.Bucket)
		dst = binary.AppendUvarint(binary.AppendVarint(dst, l.Slot), l.LSN)
	}
	return dst
}

func (r *reader) lateNote() LateNote {
	return LateNote{Bucket: r.U64(), Slot: r.Varint(), LSN: r.Uvarint()}
}

// applyLate is called behind the positions of an edit. was is the position of the account before:
// what was noted behind that is about the records in front of the flush that the edit is of. What
// is about records that no start reads any more is dropped.
func (s *State) applyLate(e *Edit, was uint64) {
	for i := range s.Late {
		if l := &s.Late[i]; l.LSN >= was && l.LSN < e.AccountLSN {
			l.LSN = e.AccountLSN - 1
		}
	}
	s.Late = slices.DeleteFunc(slices.Concat(s.Late, e.Late), func(l LateNote) bool {
		return s.IsDeleted(l.Bucket) || l.LSN < s.AccountLSN && l.LSN < s.ReplayFrom()
	})
	slices.SortFunc(s.Late, func(a, b LateNote) int {
		return cmp.Or(cmp.Compare(a.Bucket, b.Bucket), cmp.Compare(a.LSN, b.LSN),
			cmp.Compare(a.Slot, b.Slot))
	})
	s.Late = slices.CompactFunc(s.Late, func(a, b LateNote) bool {
		return a.Bucket == b.Bucket && a.LSN == b.LSN
	})
}

// ReplayFrom is the first position in the log that a start on the state needs.
func (s *State) ReplayFrom() uint64 {
	from := min(s.ReplayPosition, s.AccountLSN)
	for _, p := range s.replayPositions {
		from = min(from, p.LSN)
	}
	return from
}

// LowestOf returns the lowest slot of a bucket that is noted for records of the log at and behind
// an LSN, or slot where no lower one is.
func (s *State) LowestOf(bucket, lsn uint64, slot int64) int64 {
	for _, l := range s.Late {
		if l.Bucket == bucket && (l.LSN >= lsn || l.LSN >= s.AccountLSN) {
			slot = min(slot, l.Slot)
		}
	}
	return slot
}
