package store

import (
	"fmt"

	"dalmatiner/internal/account"
	"dalmatiner/internal/logrecord"
	"dalmatiner/internal/wal"
)

// countLost counts the points of records that damage took from the log, names their
// slots, and hides what is older there. What no flush has counted yet is counted as
// received first. Its error may be a *startAgain.
func (r *replayer) countLost(report *wal.Report) error {
	s := r.s
	var lost []logrecord.Lost
	for _, l := range logrecord.LostRecords(report, r.state) {
		if s.buckets.ID(l.Bucket) == nil {
			continue // it was deleted
		}
		if lost = append(lost, l); l.LSN >= r.state.AccountLSN {
			r.uncounted.Add(l.Bucket, l.Minute, &account.Counts{Accepted: l.Points})
		}
	}
	r.addCounts(0)
	s.ledger.Count(func() { // a flush takes the account and what is counted again in one moment
		for _, l := range lost {
			s.lostLog.Count(l.Group, l.LSN, l.Points)
		}
	})
	ranges := logrecord.LostRanges(lost)
	for i := range ranges {
		l := &ranges[i]
		s.damage.Report(fmt.Sprintf("log of bucket %s", s.buckets.ID(l.Bucket).Name), fmt.Errorf("%s", l))
	}
	if report.Unknown > 0 {
		s.damage.Report("log", fmt.Errorf("%s", logrecord.UnknownRecords(report)))
	}
	return r.hide(lost)
}
