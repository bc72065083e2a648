package logrecord

import (
	"cmp"
	"fmt"
	"slices"

	"dalmatiner/internal/manifest"
	"dalmatiner/internal/wal"
)

// Lost is a record with points that damage took from the log before any
// segment had them, as far as its head says.
type Lost struct {
	LSN uint64
	Head
}

// LostRecords returns the records that a replay says are lost and that a start on
// state needs, in the order of the log.
func LostRecords(report *wal.Report, state *manifest.State) (out []Lost) {
	for _, l := range report.Lost {
		if h, ok := ParseHead(l.Head); ok && uint64(l.LSN) >= state.ReplayPositionOf(h.Group) {
			out = append(out, Lost{uint64(l.LSN), h})
		}
	}
	return out
}

// Overwritten are the records of each group that damage took from the log, in its
// order: what stood in the group's slots before may not be what was sent last.
type Overwritten map[uint32][]Lost

// ByGroup sorts lost records, which are in the order of the log, by group.
func ByGroup(records []Lost) Overwritten {
	if len(records) == 0 {
		return nil
	}
	o := make(Overwritten)
	for _, l := range records {
		o[l.Group] = append(o[l.Group], l)
	}
	return o
}

// Behind returns the records of a group that were lost behind a position.
func (o Overwritten) Behind(group uint32, lsn uint64) []Lost {
	list := o[group]
	i, _ := slices.BinarySearchFunc(list, lsn+1, func(l Lost, lsn uint64) int { return cmp.Compare(l.LSN, lsn) })
	return list[i:]
}

// AnyNames reports whether one of the records names a slot.
func AnyNames(records []Lost, slot int64) bool {
	return slices.ContainsFunc(records, func(l Lost) bool { return l.First <= slot && slot <= l.Last })
}

// LostSlots are slots of all series of a group in which points of lost records were.
type LostSlots struct {
	Bucket      uint64
	Group       uint32
	First, Last int64
	Points      uint64
}

func (l *LostSlots) String() string {
	return fmt.Sprintf("records with %d points of group %d are lost: their slots are %d to %d, where no older value of its series is shown as current", l.Points, l.Group, l.First, l.Last)
}

// LostRanges joins the slots of records by group.
func LostRanges(records []Lost) (out []LostSlots) {
	list := slices.Clone(records)
	slices.SortStableFunc(list, func(a, b Lost) int {
		return cmp.Or(cmp.Compare(a.Bucket, b.Bucket), cmp.Compare(a.Group, b.Group), cmp.Compare(a.First, b.First))
	})
	for _, l := range list {
		if n := len(out); n > 0 && out[n-1].Bucket == l.Bucket && out[n-1].Group == l.Group && l.First <= out[n-1].Last+1 {
			out[n-1].Last = max(out[n-1].Last, l.Last)
			out[n-1].Points += l.Points
			continue
		}
		out = append(out, LostSlots{l.Bucket, l.Group, l.First, l.Last, l.Points})
	}
	return out
}

// UnknownRecords says what damage may have taken beside.
func UnknownRecords(report *wal.Report) string {
	return fmt.Sprintf("%d bytes of damaged or missing places may have held records of which nothing is known", report.Unknown)
}
