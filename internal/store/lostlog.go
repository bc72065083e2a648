package store

import (
	"cmp"
	"fmt"
	"slices"

	"dalmatiner/internal/account"
	"dalmatiner/internal/manifest"
	"dalmatiner/internal/wal"
)

// lostRecord is a record with points that damage took from the log before any
// segment had them, as far as its head says.
type lostRecord struct {
	lsn uint64
	dataHead
}

// lostRecords returns the records that a replay says are lost and that a start on
// state needs, in the order of the log.
func lostRecords(report *wal.Report, state *manifest.State) (out []lostRecord) {
	for _, l := range report.Lost {
		if h, ok := parseDataHead(l.Head); ok && uint64(l.LSN) >= state.FloorOf(h.group) {
			out = append(out, lostRecord{uint64(l.LSN), h})
		}
	}
	return out
}

// overwritten are the records of each group that damage took from the log, in its
// order: what stood in the group's slots before may not be what was sent last.
type overwritten map[uint32][]lostRecord

// byGroup sorts lost records, which are in the order of the log, by group.
func byGroup(records []lostRecord) overwritten {
	if len(records) == 0 {
		return nil
	}
	o := make(overwritten)
	for _, l := range records {
		o[l.group] = append(o[l.group], l)
	}
	return o
}

// behind returns the records of a group that were lost behind a position.
func (o overwritten) behind(group uint32, lsn uint64) []lostRecord {
	list := o[group]
	i, _ := slices.BinarySearchFunc(list, lsn+1, func(l lostRecord, lsn uint64) int { return cmp.Compare(l.lsn, lsn) })
	return list[i:]
}

// anyNames reports whether one of the records names a slot.
func anyNames(records []lostRecord, slot int64) bool {
	return slices.ContainsFunc(records, func(l lostRecord) bool { return l.first <= slot && slot <= l.last })
}

// lostSlots are slots of all series of a group in which points of lost records were.
type lostSlots struct {
	bucket      uint64
	group       uint32
	first, last int64
	points      uint64
}

func (l *lostSlots) String() string {
	return fmt.Sprintf("records with %d points of group %d are lost: their slots are %d to %d, where no older value of its series is shown as current", l.points, l.group, l.first, l.last)
}

// lostRanges joins the slots of records by group.
func lostRanges(records []lostRecord) (out []lostSlots) {
	list := slices.Clone(records)
	slices.SortStableFunc(list, func(a, b lostRecord) int {
		return cmp.Or(cmp.Compare(a.bucket, b.bucket), cmp.Compare(a.group, b.group), cmp.Compare(a.first, b.first))
	})
	for _, l := range list {
		if n := len(out); n > 0 && out[n-1].bucket == l.bucket && out[n-1].group == l.group && l.first <= out[n-1].last+1 {
			out[n-1].last = max(out[n-1].last, l.last)
			out[n-1].points += l.points
			continue
		}
		out = append(out, lostSlots{l.bucket, l.group, l.first, l.last, l.points})
	}
	return out
}

// unknownRecords says what damage may have taken beside.
func unknownRecords(report *wal.Report) string {
	return fmt.Sprintf("%d bytes of damaged or missing places may have held records of which nothing is known", report.Unknown)
}

// lose counts the points of records that damage took from the log, names their
// slots, and hides what is older there. What no flush has counted yet is counted as
// received first. Its error may be a *startAgain.
func (r *replayer) lose(report *wal.Report) error {
	s := r.s
	var lost []lostRecord
	for _, l := range lostRecords(report, r.state) {
		if s.buckets.ID(l.bucket) == nil {
			continue // it was deleted
		}
		if lost = append(lost, l); l.lsn >= r.state.AccountLSN {
			r.tally.count(l.bucket, l.minute, &account.Counts{Accepted: l.points})
		}
	}
	r.settleCounts(0)
	s.commit.RLock() // a flush takes the account and what is counted again in one moment
	for _, l := range lost {
		s.lostLog.lose(s.account, l.group, l.lsn, l.points)
	}
	s.commit.RUnlock()
	ranges := lostRanges(lost)
	for i := range ranges {
		l := &ranges[i]
		s.reportDamage(fmt.Sprintf("log of bucket %s", s.buckets.ID(l.bucket).info.Name), fmt.Errorf("%s", l))
	}
	if report.Unknown > 0 {
		s.reportDamage("log", fmt.Errorf("%s", unknownRecords(report)))
	}
	return r.hide(lost)
}
