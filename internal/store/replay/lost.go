package replay

import (
	"cmp"
	"fmt"
	"slices"

	"dalmatiner/internal/disk/wal"
	"dalmatiner/internal/model/account"
	"dalmatiner/internal/write/logrecord"
)

// countLost counts the points of records that damage took from the log, names their
// slots, and hides what is older there. What no flush has counted yet is counted as
// received first. Its error may be a *Again.
func (f *firstReading) countLost(report *wal.Report) error {
	o := f.r.o
	var lost []logrecord.LostRecord
	for _, l := range logrecord.LostRecords(report, f.state) {
		if o.Buckets.ID(l.Bucket) == nil {
			continue // it was deleted
		}
		if lost = append(lost, l); l.LSN >= f.state.AccountLSN {
			f.uncounted.Add(l.Copies, l.Bucket, l.Minute, &account.Counts{Accepted: l.Points})
		}
	}
	f.addCounts(0)
	o.Ledger.Count(func() { // a flush takes the account and what is counted again in one moment
		for _, l := range lost {
			o.Lost.Count(l.Group, l.Copies, l.LSN, l.Points)
		}
	})
	if len(report.Lost) > 0 && o.LostEvents != nil {
		o.Ledger.Count(func() { o.LostEvents(report) })
	}
	ranges := logrecord.LostRanges(lost)
	for i := range ranges {
		l := &ranges[i]
		o.Damage.Report(fmt.Sprintf("log of bucket %s", o.Buckets.ID(l.Bucket).Name), fmt.Errorf("%s", l))
	}
	if report.Unknown > 0 {
		o.Damage.Report("log", fmt.Errorf("%s", logrecord.UnknownRecords(report)))
	}
	whole, err := f.unknown(report)
	if err != nil {
		return err
	}
	lost = append(lost, whole...)
	slices.SortStableFunc(lost, func(a, b logrecord.LostRecord) int {
		return cmp.Compare(a.LSN,
			b.LSN)
	})
	return f.hide(lost)
}
