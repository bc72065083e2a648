package logrecord

import (
	"cmp"
	"fmt"
	"slices"

	"dalmatiner/internal/disk/manifest"
	"dalmatiner/internal/disk/wal"
)

// LostRecord is what the head says of a record with points that damage took from the log.
type LostRecord struct {
	LSN uint64
	Head
	// Whole stands for all records in front of LSN of which nothing is known: what they may have
	// overwritten, whichever series of the bucket it is of.
	Whole bool
}

// LostRecords returns the records with points that a replay reports as lost and whose points
// no segment has: those at or above the replay position of their group in state. They have
// the order of the log.
func LostRecords(report *wal.Report, state *manifest.State) (out []LostRecord) {
	for _, l := range report.Lost {
		if h, ok := ParseHead(l.Head); ok && uint64(l.LSN) >= state.ReplayPositionOf(h.Group) {
			out = append(out, LostRecord{LSN: uint64(l.LSN), Head: h})
		}
	}
	return out
}

// LostByGroup has the lost records by group, in the order of the log. They may have
// overwritten slots of the group: what is known of these slots may not be what was sent last.
type LostByGroup map[uint32][]LostRecord

// ByGroup returns lost records, which have the order of the log, by group; nil for none.
func ByGroup(records []LostRecord) LostByGroup {
	if len(records) == 0 {
		return nil
	}
	o := make(LostByGroup)
	for _, l := range records {
		o[l.Group] = append(o[l.Group], l)
	}
	return o
}

// After returns the lost records of a group above an LSN. The slice must not be written to.
func (o LostByGroup) After(group uint32, lsn uint64) []LostRecord {
	list := o[group]
	i, _ := slices.BinarySearchFunc(list, lsn+1, func(l LostRecord, lsn uint64) int {
		return cmp.Compare(l.LSN, lsn)
	})
	return list[i:]
}

// AnyNames reports whether a slot lies between the lowest and the highest one of any of the
// records.
func AnyNames(records []LostRecord, slot int64) bool {
	return slices.ContainsFunc(records, func(l LostRecord) bool {
		return l.First <= slot &&
			slot <= l.Last
	})
}

// LostSlots is a range of slots of a group in which points of lost records were.
type LostSlots struct {
	Bucket      uint64 // id
	Group       uint32
	First, Last int64  // slots; Last is one of them
	Points      uint64 // lost,
	Copies      uint64 // and of them those that the ledger of copies counts
}

// String returns one line for a report.
func (l *LostSlots) String() string {
	copies := ""
	if l.Copies > 0 {
		copies = fmt.Sprintf(", %d of them copies,", l.Copies)
	}
	return fmt.Sprintf("records with %d points%s of group %d are lost: their slots are %d to %d, "+
		"where no older value of its series is shown as current", l.Points, copies, l.Group, l.First,
		l.Last)
}

// LostRanges returns the slots of lost records, in the order of bucket, group and slot. Ranges
// of one group that overlap or touch are one.
func LostRanges(records []LostRecord) (out []LostSlots) {
	list := slices.Clone(records)
	slices.SortStableFunc(list, func(a, b LostRecord) int {
		return cmp.Or(cmp.Compare(a.Bucket, b.Bucket), cmp.Compare(a.Group, b.Group),
			cmp.Compare(a.First, b.First))
	})
	for _, l := range list {
		ofCopies := uint64(0)
		if l.Copies {
			ofCopies = l.Points
		}
		if n := len(out); n > 0 && out[n-1].Bucket == l.Bucket && out[n-1].Group == l.Group &&
			l.First <= out[n-1].Last+1 {
			out[n-1].Last = max(out[n-1].Last, l.Last)
			out[n-1].Points += l.Points
			out[n-1].Copies += ofCopies
			continue
		}
		out = append(out, LostSlots{l.Bucket, l.Group, l.First, l.Last, l.Points, ofCopies})
	}
	return out
}

// UnknownRecords returns a line on the damaged bytes of which not even a head is known.
func UnknownRecords(report *wal.Report) string {
	return fmt.Sprintf("%d bytes of damaged or missing places may have held records of points, "+
		"events and tags, of which nothing is known", report.Unknown)
}
