package store

import (
	"fmt"
	"sync"

	"dalmatiner/internal/account"
	"dalmatiner/internal/coordinator"
	"dalmatiner/internal/logrecord"
	"dalmatiner/internal/wal"
)

// refusals are counts that are in the account and not yet in the log. On a full
// disk they wait there for a second: with a record for each commit, senders that
// go on would use up what is left for the log, which would end the node.
type refusals struct {
	mu   sync.Mutex
	rows map[accountRow]*account.Counts
}

func (r *refusals) add(row accountRow, c *account.Counts) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.rows == nil {
		r.rows = make(map[accountRow]*account.Counts)
	}
	if r.rows[row] == nil {
		r.rows[row] = new(account.Counts)
	}
	r.rows[row].Add(c)
}

// countRefused enters refusals of a bucket into the account, and into the log
// at once or, on a full disk, within a second. lsn is 0 where that is to come.
func (s *Store) countRefused(bucket uint64, c *account.Counts) (lsn wal.LSN, err error) {
	minute := s.clock.Unix() / nsPerMinute
	s.commit.RLock()
	defer s.commit.RUnlock()
	if s.diskFull.Load() {
		s.refusals.add(accountRow{bucket, minute}, c)
	} else if lsn, err = s.log.Append(logrecord.AppendRefused(nil, bucket, minute, c)); err != nil {
		return 0, err
	}
	s.account.Add(s.accountID(bucket), minute, c)
	return lsn, nil
}

// logReserve is what the log has room for before a record of anything but points is
// appended: one that finds none would end the store.
const logReserve = 1 << 20

// checkLogRoom returns an error that wraps coordinator.ErrDiskFull where a record might
// find no room: the newest file of the log has none, and the disk is full. A start
// has no file yet, and makes one with the first record.
func (s *Store) checkLogRoom() error {
	if s.log.Stats().Room >= logReserve {
		return nil
	}
	if free, known := s.freeSpace(); known && free < logReserve {
		return fmt.Errorf("%w: %d bytes are free, and the log needs %d: make space, then try again", coordinator.ErrDiskFull, free, logReserve)
	}
	return nil
}

// logRefusals writes what waits to the log, once that has room for it. The commit lock is held, at least
// shared: account and log then agree for who holds it alone. A failure of the
// log ends the store by itself.
func (s *Store) logRefusals() {
	r := &s.refusals
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.rows) == 0 || s.checkLogRoom() != nil {
		return
	}
	for row, c := range r.rows {
		if _, err := s.log.Append(logrecord.AppendRefused(nil, row.bucket, row.minute, c)); err != nil {
			return
		}
		delete(r.rows, row)
	}
}
