package store

import "dalmatiner/internal/account"

// accountRow names a row of the account.
type accountRow struct {
	bucket uint64
	minute int64
}

// uncounted is what the first reading of the log has counted and the account has not.
type uncounted struct {
	rows map[accountRow]*account.Counts
	row  *account.Counts // the one counted last, of
	last accountRow
}

// count adds what a record counts.
func (t *uncounted) count(bucket uint64, minute int64, c *account.Counts) {
	if k := (accountRow{bucket, minute}); t.row == nil || k != t.last {
		t.row = t.rows[k]
		if t.row == nil {
			t.row = new(account.Counts)
			t.rows[k] = t.row
		}
		t.last = k
	}
	t.row.Add(c)
}

// addCounts adds what was counted to the account, which then stands for all
// records below end. A flush takes both in one moment.
func (r *replayer) addCounts(end uint64) {
	s := r.s
	s.commit.RLock()
	defer s.commit.RUnlock()
	for k, c := range r.uncounted.rows {
		s.account.Add(s.accountID(k.bucket), k.minute, c)
	}
	clear(r.uncounted.rows)
	r.uncounted.row = nil
	s.counted.Store(end)
}
