package ledger

import (
	"sync"

	"dalmatiner/internal/model/account"
	"dalmatiner/internal/write/logrecord"
)

// sheet is an account, the refusals of it that wait for the log, and how a record of these is
// appended.
type sheet struct {
	account *account.Account
	waiting refusals
	record  func(dst []byte, bucket uint64, minute int64, c *account.Counts) []byte
}

// appendCopiesRefused appends the record of copies that were refused.
func appendCopiesRefused(dst []byte, bucket uint64, minute int64, c *account.Counts) []byte {
	at := len(dst)
	dst = logrecord.AppendRefused(dst, bucket, minute, c)
	logrecord.MarkCopies(dst[at:])
	return dst
}

// refusals are counts that are in the account and not yet in the log. On a full
// disk they wait there for a second: with a record for each commit, senders that
// go on would use up what is left for the log, which would end the node.
type refusals struct {
	mu   sync.Mutex
	rows account.Rows
}

func (r *refusals) add(bucket uint64, minute int64, c *account.Counts) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.rows.Add(bucket, minute, c)
}

// take gives all rows to put, unless there are none or room says that there is no place
// for them. It ends at the first that put does not take.
func (r *refusals) take(room func() error,
	put func(bucket uint64, minute int64, c *account.Counts) bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.rows.Len() > 0 && room() == nil {
		r.rows.Take(put)
	}
}
